import Glibc
import TestSupport
import Testing

/// The operations of fsx: random reads, writes, truncations and mappings against an array of bytes.
///
/// It is a tester of our own, because the original is in no package of Debian, and expects every write to be
/// visible to all readers at once: here a value changes when its writer closes.
@Suite(.timeLimit(.minutes(3))) struct RandomAccessTests {
  static let operations = 40_000
  static let paths = [
    "defaults/s/data", "keychain/generic/s/p/value", "defaults/s/.scratch", "keychain/generic/s/p/scratch",
  ]

  /// Another one each time; a failure names its seed, and `KEYHOLE_SEED` makes the same run again.
  static var seed: UInt64 {
    let chosen = unsafe getenv("KEYHOLE_SEED").flatMap { unsafe UInt64(String(cString: $0)) }
    return chosen ?? UInt64.random(in: 0 ... .max)
  }

  @Test(arguments: paths)
  func fileIsWhatWasWrittenToIt(path: String) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir -p defaults/s keychain/generic/s/p")
      // Never text, so that it is data, and no line end is added or dropped.
      try System.write(keyhole / path, [0xFF, 0, 0xFF])
      var run = try RandomAccess(keyhole / path, seed: Self.seed)
      for _ in 0..<Self.operations {
        try run.step()
        if run.hasFailed { break }
      }
      try run.finish()
      guard !path.contains("scratch") else { return }
      try keyhole.remount()
      run.expect(try System.read(keyhole / path) == run.committed, "the value survives the mount")
    }
  }
}

/// One run: a handle, the content it has to hold, and the value that all other readers have to see.
private struct RandomAccess {
  /// Several pages, and once in a while more than one request can carry.
  static let longest = 20_000
  static let exception = 300_000

  let path: String
  let seed: UInt64
  var random: SplitMix64
  var file: OpenFile
  var own: [UInt8]
  var committed: [UInt8]
  var isChanged = false
  var log: [String] = []
  var hasFailed = false
  /// Scratch has one content for all.
  var isShared: Bool { path.contains("scratch") }

  init(_ path: String, seed: UInt64) throws {
    self.path = path
    self.seed = seed
    random = SplitMix64(seed: seed)
    file = try OpenFile(path, O_RDWR)
    committed = try System.read(path)
    own = committed
  }

  mutating func step() throws {
    switch Int.random(in: 0..<1000, using: &random) {
    case 0..<420: try read()
    case 420..<830: try write()
    case 830..<910: try truncate()
    case 910..<950: try allocate()
    case 950..<970: try map()
    // Commits are rare, as each has to reach the disk: there are some thousand of them all the same.
    case 970..<975: try sync()
    case 975..<980: try closeCopy()
    case 980..<988: try reopen()
    default: try look()
    }
  }

  mutating func finish() throws {
    try file.close()
    commit()
    try lookFromOutside()
  }

  // MARK: Operations

  private mutating func read() throws {
    let offset = Int.random(in: 0...(own.count + 10), using: &random)
    let count = [1, 100, 4096, 5000, Self.exception].randomElement(using: &random) ?? 1
    note("read \(count) at \(offset)")
    let bytes = try file.read(upTo: count, at: offset)
    expect(bytes.isSame(as: own.dropFirst(offset).prefix(count)), "the handle reads what it wrote")
  }

  private mutating func write() throws {
    let isLong = Int.random(in: 0..<1000, using: &random) == 0
    let count = isLong ? Self.exception : [1, 2, 511, 4095, 4096, 4097].randomElement(using: &random) ?? 1
    let offset = Int.random(in: 0...max(0, min(own.count + 5000, Self.longest - count)), using: &random)
    let byte = UInt8.random(in: 0x80...0xFF, using: &random)
    note("write \(count) of \(byte) at \(offset)")
    let bytes = [UInt8](repeating: byte, count: count)
    expect(try file.write(bytes, at: offset) == count, "a write takes all")
    extend(to: offset + count)
    own.replaceSubrange(offset..<offset + count, with: bytes)
    isChanged = true
  }

  private mutating func truncate() throws {
    let size = Int.random(in: 0...min(own.count + 5000, Self.longest), using: &random)
    note("ftruncate to \(size)")
    try file.truncate(size)
    own = Array(own.prefix(size))
    extend(to: size)
    isChanged = true
  }

  private mutating func allocate() throws {
    let offset = Int.random(in: 0...min(own.count + 5000, Self.longest - 5000), using: &random)
    let count = Int.random(in: 1...5000, using: &random)
    note("fallocate \(count) at \(offset)")
    try System.allocate(file, from: offset, count)
    isChanged = isChanged || offset + count > own.count
    extend(to: offset + count)
  }

  private mutating func map() throws {
    guard !committed.isEmpty, !isChanged else { return }
    note("map")
    let bytes = try OpenFile(path, O_RDONLY).mappedBytes(committed.count, MAP_PRIVATE)
    expect(bytes.isSame(as: committed[...]), "a mapping has what was committed")
  }

  private mutating func sync() throws {
    note("fsync")
    try file.sync()
    commit()
    try look()
  }

  private mutating func closeCopy() throws {
    note("close a copy")
    try file.duplicate().close()
    commit()
    try look()
  }

  private mutating func reopen() throws {
    let empties = Int.random(in: 0..<4, using: &random) == 0
    note(empties ? "close, and open with O_TRUNC" : "close and open")
    try file.close()
    commit()
    file = try OpenFile(path, O_RDWR | (empties ? O_TRUNC : 0))
    guard empties else { return }
    own = []
    // An O_TRUNC alone is committed by fsync and by the last close; here by neither until something is written.
    try file.write([0xFE], at: 0)
    own = [0xFE]
    isChanged = true
    if isShared { committed = own }
  }

  // MARK: What has to hold

  private mutating func look() throws {
    try lookFromOutside()
    expect(try file.size == own.count || !isChanged, "the handle knows its size")
  }

  private mutating func lookFromOutside() throws {
    if isShared { committed = own }
    note("look")
    expect(try System.read(path).isSame(as: committed[...]), "a new reader reads what was committed")
    if !isChanged || isShared {
      expect(try System.status(path).st_size == committed.count, "stat knows the size")
    }
  }

  private mutating func commit() {
    guard isChanged else { return }
    committed = own
    isChanged = false
  }

  private mutating func extend(to size: Int) {
    if own.count < size { own += [UInt8](repeating: 0, count: size - own.count) }
  }

  private mutating func note(_ what: String) {
    log.append(what)
    if log.count > 60 { log.removeFirst(30) }
  }

  mutating func expect(_ condition: Bool, _ what: String) {
    if condition || hasFailed { return }
    hasFailed = true
    Issue.record("\(what); seed \(seed), the last steps:\n\(log.suffix(30).joined(separator: "\n"))")
  }
}

extension [UInt8] {
  /// Element by element, as `==` does it here, is a large part of the time of a run.
  fileprivate func isSame(as other: ArraySlice<UInt8>) -> Bool {
    guard count == other.count else { return false }
    return unsafe withUnsafeBytes { left in
      unsafe other.withUnsafeBytes { right in
        guard let left = left.baseAddress, let right = right.baseAddress else { return true }
        // SAFETY: both have `count` bytes.
        return unsafe memcmp(left, right, count) == 0
      }
    }
  }
}
