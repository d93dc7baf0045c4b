import Model
import Platform
import SecretMemory

/// The bytes of a file while a program writes or reads them: a secret's in locked memory, others' not.
///
/// A copy shares the bytes until one of the two is changed. The bytes of a secret are wiped with the last copy.
enum Content: Sendable {
  case plain([UInt8])
  case secret(SharedSecret)

  static func empty(secret: Bool) throws(StoreError) -> Content {
    guard secret else { return .plain([]) }
    do { return .secret(SharedSecret(try SecretBytes())) } catch { throw .outOfMemory }
  }

  static func secret(_ bytes: consuming SecretBytes) -> Content { .secret(SharedSecret(bytes)) }

  var count: Int {
    switch self {
    case .plain(let bytes): bytes.count
    case .secret(let secret): secret.count
    }
  }

  var isSecret: Bool {
    switch self {
    case .plain: false
    case .secret: true
    }
  }

  func withBytes<Value: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    switch self {
    case .plain(let bytes): try body(bytes.span)
    case .secret(let secret): try secret.withBytes(body)
    }
  }

  /// Puts `bytes` at `offset`; a gap reads as zero bytes.
  mutating func write(_ bytes: Span<UInt8>, at offset: Int) throws(StoreError) {
    switch self {
    case .plain(var plain):
      // Only one may refer to the array, or it would be copied.
      self = .plain([])
      plain.write(bytes, at: offset)
      self = .plain(plain)
    case .secret:
      try changeSecret { (secret) throws(SecretMemoryError) in try secret.write(bytes, at: offset) }
    }
  }

  /// Cuts off the end, or adds zero bytes.
  mutating func resize(to count: Int) throws(StoreError) {
    switch self {
    case .plain(var plain):
      self = .plain([])
      plain.resize(to: count)
      self = .plain(plain)
    case .secret:
      try changeSecret { (secret) throws(SecretMemoryError) in try secret.resize(to: count) }
    }
  }

  mutating func append(_ bytes: Span<UInt8>) throws(StoreError) {
    try write(bytes, at: count)
  }

  /// Whether `other` begins with these bytes and has more.
  func isBeginning(of other: Content) -> Bool {
    let count = count
    guard count < other.count else { return false }
    return withBytes { bytes in
      other.withBytes { more in bytes.hasSameBytes(as: more.extracting(..<count)) }
    }
  }

  private mutating func changeSecret(
    _ change: (inout SecretBytes) throws(SecretMemoryError) -> Void
  ) throws(StoreError) {
    guard case .secret(var secret) = self else { return }
    self = .plain([])
    defer { self = .secret(secret) }
    do {
      if !isKnownUniquelyReferenced(&secret) { secret = try secret.copy() }
      try secret.change(change)
    } catch {
      throw .outOfMemory
    }
  }
}

/// The bytes of a secret that more than one may hold.
///
/// @unchecked: `Content` changes the bytes only while no other copy refers to them.
final class SharedSecret: @unchecked Sendable {
  private var bytes: SecretBytes

  init(_ bytes: consuming SecretBytes) {
    self.bytes = bytes
  }

  var count: Int { bytes.count }

  func withBytes<Value: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try bytes.withSpan(0..<bytes.count, body)
  }

  fileprivate func copy() throws(SecretMemoryError) -> SharedSecret {
    SharedSecret(try SecretBytes(copying: bytes))
  }

  fileprivate func change(
    _ body: (inout SecretBytes) throws(SecretMemoryError) -> Void
  ) throws(SecretMemoryError) {
    try body(&bytes)
  }
}

extension [UInt8] {
  fileprivate mutating func resize(to newCount: Int) {
    if newCount < count {
      removeLast(count - newCount)
    } else {
      append(contentsOf: repeatElement(0, count: newCount - count))
    }
  }

  fileprivate mutating func write(_ bytes: Span<UInt8>, at offset: Int) {
    if offset == count { return append(copying: bytes) }
    // The limit of a value, or of scratch, was checked before.
    resize(to: Swift.max(count, offset + bytes.count))
    var span = mutableSpan
    span.copy(bytes, at: offset)
  }
}
