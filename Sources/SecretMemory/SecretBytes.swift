/// The bytes of a secret: not copyable, not printable, and zero when dropped.
///
/// They live in memory that is in no core file, no swap file and, where memfd_secret(2) works, not even in
/// root's view of the process (see `SecretHeap`). Never make a `String`, `Data` or `[UInt8]` of them: each
/// would leave a copy behind.
public struct SecretBytes: ~Copyable {
  /// The length in bytes.
  public private(set) var count: Int
  private var block: SecretBlock

  /// `count` zero bytes.
  ///
  /// - Throws: `SecretMemoryError.exhausted` where the system grants no more locked memory.
  public init(count: Int = 0) throws(SecretMemoryError) {
    block = try SecretHeap.shared.allocate(count)
    self.count = count
  }

  /// `count` zero bytes that read(2) and write(2) can use with every file.
  ///
  /// Files that bypass the page cache, such as Keyhole's own secrets, have the kernel pin the caller's
  /// pages, and that it can't do with memfd_secret(2)'s. These are locked and left out of cores only. A change of the
  /// length may put them into memory that can't be pinned.
  public init(pinnable count: Int) throws(SecretMemoryError) {
    block = try SecretHeap.shared.allocatePinnable(count)
    self.count = count
  }

  /// A copy of `bytes`, which the caller still has to wipe.
  public init(copying bytes: UnsafeRawBufferPointer) throws(SecretMemoryError) {
    try self.init(count: bytes.count)
    unsafe block.bytes.copyMemory(from: bytes)
  }

  /// A copy of `bytes`, which the caller still has to wipe.
  public init(copying bytes: Span<UInt8>) throws(SecretMemoryError) {
    try self.init(count: bytes.count)
    unsafe bytes.withUnsafeBytes { unsafe block.bytes.copyMemory(from: $0) }
  }

  /// A copy of `other`.
  public init(copying other: borrowing SecretBytes) throws(SecretMemoryError) {
    try self.init(count: other.count)
    unsafe other.withUnsafeBytes { unsafe block.bytes.copyMemory(from: $0) }
  }

  deinit {
    SecretHeap.shared.free(block)
  }

  /// Whether there are no bytes.
  public var isEmpty: Bool { count == 0 }

  /// In bytes.
  var capacity: Int { block.capacity }

  /// The most bytes that its mapping ever had.
  var peak: Int { block.peak }

  /// The bytes, lent as long as this value is not changed.
  public var span: Span<UInt8> {
    @_lifetime(borrow self)
    borrowing get {
      // SAFETY: the block holds at least `count` bytes and lives as long as `self`.
      let bytes = unsafe UnsafeRawBufferPointer(rebasing: block.bytes[..<count])
      return unsafe _overrideLifetime(Span(_unsafeBytes: bytes), borrowing: self)
    }
  }

  /// The bytes, lent for changing.
  public var mutableSpan: MutableSpan<UInt8> {
    @_lifetime(&self)
    mutating get {
      // SAFETY: as above.
      let bytes = unsafe UnsafeMutableRawBufferPointer(rebasing: block.bytes[..<count])
      return unsafe _overrideLifetime(MutableSpan(_unsafeBytes: bytes), mutating: &self)
    }
  }

  /// Lends a part of the bytes, also of a property of an object.
  public borrowing func withSpan<Result: ~Copyable, Failure: Error>(
    _ range: Range<Int>, _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(span.extracting(range))
  }

  /// A byte, changed in place.
  public subscript(index: Int) -> UInt8 {
    get { span[index] }
    set {
      var bytes = mutableSpan
      bytes[index] = newValue
    }
  }

  /// A copy in memory that is not protected, for bytes that turn out to be no secret.
  public var unprotected: [UInt8] {
    let bytes = span
    return bytes.indices.map { bytes[$0] }
  }

  /// Lends the bytes to C functions; the pointer must not leave `body`.
  public borrowing func withUnsafeBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // SAFETY: the block holds at least `count` bytes and lives as long as `self`.
    try unsafe body(UnsafeRawBufferPointer(rebasing: block.bytes[..<count]))
  }

  /// Lends the bytes for changing; the pointer must not leave `body`.
  public mutating func withUnsafeMutableBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // SAFETY: as above.
    try unsafe body(UnsafeMutableRawBufferPointer(rebasing: block.bytes[..<count]))
  }

  /// Cuts off the end (which is wiped), or adds zero bytes.
  ///
  /// - Throws: `SecretMemoryError.exhausted`, only where bytes are added.
  public mutating func resize(to newCount: Int) throws(SecretMemoryError) {
    if newCount > block.capacity {
      try grow(toCapacity: max(newCount, block.capacity + reserve), atLeast: newCount)
    }
    if newCount < count {
      // SAFETY: both bounds lie inside the block.
      unsafe wipe(UnsafeMutableRawBufferPointer(rebasing: block.bytes[newCount..<count]))
      count = newCount
      giveBackRest()
    }
    count = newCount
  }

  /// Puts `bytes` at `offset`; a gap between the end and `offset` reads as zero bytes.
  public mutating func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SecretMemoryError) {
    let end = offset + bytes.count
    if end > count { try resize(to: end) }
    // SAFETY: the block holds at least `end` bytes.
    unsafe UnsafeMutableRawBufferPointer(rebasing: block.bytes[offset..<end]).copyMemory(from: bytes)
  }

  /// The same for bytes that are lent.
  public mutating func write(_ bytes: Span<UInt8>, at offset: Int) throws(SecretMemoryError) {
    try unsafe bytes.withUnsafeBytes { (bytes) throws(SecretMemoryError) in
      try unsafe write(bytes, at: offset)
    }
  }

  /// Adds `bytes` at the end.
  public mutating func append(_ bytes: Span<UInt8>) throws(SecretMemoryError) {
    try write(bytes, at: count)
  }

  /// Adds `bytes` at the end.
  public mutating func append(_ bytes: UnsafeRawBufferPointer) throws(SecretMemoryError) {
    try unsafe write(bytes, at: count)
  }

  /// The most bytes that are kept beyond those that are asked for, where a block can grow in place.
  private static let largestReserve = 256 * 1024

  /// How many bytes growth adds at least. A mapping that can grow in place gets few, as other secrets need locked memory; of
  /// any other block all bytes are copied, so it is doubled.
  private var reserve: Int {
    block.isExtensible ? min(block.capacity / 4, Self.largestReserve) : block.capacity
  }

  /// Gives locked memory of a mapping back, with the bytes behind `count`, which are zero: all memory where less than a quarter
  /// of what the mapping once had is in use, else its share of the limit. Without memory for a smaller block, and with less
  /// than the reserve to give back, the mapping stays.
  private mutating func giveBackRest() {
    guard block.isMapping else { return }
    if count < block.peak / 4, (try? move(toCapacity: count, keeping: count)) != nil { return }
    if block.capacity - count > Self.largestReserve { SecretHeap.shared.shrink(&block, to: count) }
  }

  /// Makes room for more bytes: in the same mapping, else in another block.
  private mutating func grow(toCapacity capacity: Int, atLeast least: Int) throws(SecretMemoryError) {
    if SecretHeap.shared.extend(&block, to: capacity) || SecretHeap.shared.extend(&block, to: least) {
      return
    }
    if capacity > least, (try? move(toCapacity: capacity, keeping: count)) != nil { return }
    try move(toCapacity: least, keeping: count)
  }

  /// Replaces the block by one with the first `kept` bytes of it; the old one is wiped and given back.
  private mutating func move(toCapacity capacity: Int, keeping kept: Int) throws(SecretMemoryError) {
    let moved = try SecretHeap.shared.allocate(capacity)
    unsafe moved.bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: block.bytes[..<kept]))
    SecretHeap.shared.free(block)
    block = moved
    count = min(count, kept)
  }
}

// The block is owned by this value alone; nothing else points into it.
extension SecretBytes: @unchecked Sendable {}

extension SecretBytes {
  /// Compares in a time that depends on the lengths only.
  public static func == (left: borrowing SecretBytes, right: borrowing SecretBytes) -> Bool {
    guard left.count == right.count else { return false }
    return unsafe left.withUnsafeBytes { a in
      unsafe right.withUnsafeBytes { b in
        var difference: UInt8 = 0
        for index in a.indices { unsafe difference |= a[index] ^ b[index] }
        return difference == 0
      }
    }
  }
}
