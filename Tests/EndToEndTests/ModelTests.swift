import Glibc
import TestSupport
import Testing

/// Random operations on one value through several handles, against what section 5 says they do.
///
/// The kernel's caches take part here: each commit is looked at by a read, a stat and a mapping at once, in this
/// process, and now and then by another one.
@Suite(.timeLimit(.minutes(2))) struct ModelTests {
  /// A handle, and what it has to hold.
  fileprivate struct Writer {
    let file: OpenFile
    let appends: Bool
    var bytes: [UInt8]
    var isChanged = false
  }

  fileprivate struct Run {
    let keyhole: MountedKeyhole
    var path: String
    var committed: [UInt8]
    var writers: [Writer] = []
    var random: SplitMix64
    var log: [String] = []
  }

  @Test(arguments: ["defaults/s/k", "keychain/generic/s/p/value"], [1, 2] as [UInt64])
  func handlesAgreeWithTheModel(path: String, seed: UInt64) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir -p defaults/s keychain/generic/s/p")
      // A first byte that is no text: stored as data, and as a secret without looking for a newline.
      let first: [UInt8] = [0xFF, 0]
      try System.write(keyhole / path, first)
      var run = Run(keyhole: keyhole, path: path, committed: first, random: SplitMix64(seed: seed))
      for _ in 0..<250 where run.log.last != "wrong" { try run.step() }
      while !run.writers.isEmpty { try run.close() }
      try keyhole.crash()
      #expect(try System.read(keyhole / run.path) == run.committed)
    }
  }
}

extension ModelTests.Run {
  mutating func step() throws {
    switch Int.random(in: 0..<20, using: &random) {
    case 0...2: try open()
    case 3...8: try write()
    case 9...10: try truncate()
    case 11...12: try read()
    case 13...15: try close()
    case 16: try sync()
    case 17: try closeCopy()
    case 18: try truncateByPath()
    default: try rename()
    }
  }

  private mutating func note(_ text: String) {
    log.append(text)
  }

  private mutating func open() throws {
    guard writers.count < 3 else { return }
    let kind = Int.random(in: 0..<4, using: &random)
    let flags = [O_RDWR, O_RDWR | O_TRUNC, O_WRONLY | O_APPEND, O_RDWR][kind]
    note("open \(writers.count) \(["", "O_TRUNC", "O_APPEND", ""][kind])")
    let file = try OpenFile(keyhole / path, flags)
    writers.append(
      ModelTests.Writer(file: file, appends: kind == 2, bytes: kind == 1 || kind == 2 ? [] : committed))
    // O_TRUNC alone takes effect some time after the last close: always followed by a write here.
    if kind == 1 { try write(to: writers.count - 1) }
  }

  private mutating func write() throws {
    guard let index = writers.indices.randomElement(using: &random) else { return }
    try write(to: index)
  }

  private mutating func write(to index: Int) throws {
    let count = [1, 2, 100, 4095, 4096, 5000, 40_000].randomElement(using: &random) ?? 1
    let byte = UInt8.random(in: 0x80...0xFF, using: &random)
    let bytes = [UInt8](repeating: byte, count: count)
    let size = writers[index].bytes.count
    let offset = writers[index].appends ? size : Int.random(in: 0...(size + 10), using: &random)
    note("write \(index) \(count) of \(byte) at \(offset)")
    if writers[index].appends {
      try writers[index].file.write(bytes)
    } else {
      try writers[index].file.write(bytes, at: offset)
    }
    if size < offset { writers[index].bytes += [UInt8](repeating: 0, count: offset - size) }
    let end = min(offset + count, writers[index].bytes.count)
    writers[index].bytes.replaceSubrange(offset..<end, with: bytes)
    writers[index].isChanged = true
  }

  private mutating func truncate() throws {
    guard let index = writers.indices.randomElement(using: &random), !writers[index].appends else { return }
    let size = writers[index].bytes.count
    let length = Int.random(in: 1...(size + 100), using: &random)
    note("ftruncate \(index) from \(size) to \(length)")
    try writers[index].file.truncate(length)
    writers[index].bytes =
      Array(writers[index].bytes.prefix(length)) + [UInt8](repeating: 0, count: max(0, length - size))
    writers[index].isChanged = true
  }

  private mutating func read() throws {
    guard let index = writers.indices.randomElement(using: &random), !writers[index].appends else { return }
    let size = writers[index].bytes.count
    let offset = Int.random(in: 0...size, using: &random)
    note("read \(index) at \(offset)")
    let bytes = try writers[index].file.read(upTo: 5000, at: offset)
    expect(
      bytes == Array(writers[index].bytes.dropFirst(offset).prefix(5000)), "a handle reads what it wrote")
    if writers.count == 1, writers[index].isChanged {
      expect(try writers[index].file.size == size, "a handle knows its size")
    }
  }

  mutating func close() throws {
    guard let index = writers.indices.randomElement(using: &random) else { return }
    note("close \(index)")
    try writers[index].file.close()
    commit(index)
    writers.remove(at: index)
    try look()
  }

  private mutating func sync() throws {
    guard let index = writers.indices.randomElement(using: &random) else { return }
    note("fsync \(index)")
    try writers[index].file.sync()
    commit(index)
    try look()
  }

  private mutating func closeCopy() throws {
    guard let index = writers.indices.randomElement(using: &random) else { return }
    note("close a copy of \(index)")
    try writers[index].file.duplicate().close()
    commit(index)
    try look()
  }

  private mutating func commit(_ index: Int) {
    guard writers[index].isChanged else { return }
    committed = writers[index].appends ? committed + writers[index].bytes : writers[index].bytes
    // Appended bytes are not appended again.
    if writers[index].appends { writers[index].bytes = [] }
    writers[index].isChanged = false
  }

  private mutating func truncateByPath() throws {
    guard writers.isEmpty else { return }
    let length = Int.random(in: 1...(committed.count + 100), using: &random)
    note("truncate from \(committed.count) to \(length)")
    try System.truncate(keyhole / path, length)
    let rest = max(0, length - committed.count)
    committed = Array(committed.prefix(length)) + [UInt8](repeating: 0, count: rest)
    try look()
  }

  /// A value's own name changes under its handles; an item's folder does here.
  private mutating func rename() throws {
    var parts = path.split(separator: "/").map(String.init)
    let place = parts.count == 3 ? 2 : 3
    parts[place] = parts[place] == "moved" ? (place == 2 ? "k" : "p") : "moved"
    let new = parts.joined(separator: "/")
    note("rename to \(new)")
    let depth = place + 1
    let from = path.split(separator: "/").prefix(depth).joined(separator: "/")
    try System.rename(keyhole / from, keyhole / parts.prefix(depth).joined(separator: "/"))
    path = new
    try look()
  }

  /// Compares the file with the value that every new reader has to see.
  private mutating func look() throws {
    expect(try System.read(keyhole / path) == committed, "a new reader reads what was committed")
    if !writers.contains(where: \.isChanged) {
      expect(try System.status(keyhole / path).st_size == committed.count, "stat knows the size")
    }
    if !committed.isEmpty, writers.isEmpty {
      let text = try OpenFile(keyhole / path, O_RDONLY).mapped(committed.count, MAP_PRIVATE)
      expect(text == String(decoding: committed, as: UTF8.self), "a mapping has what was committed")
    }
    if Int.random(in: 0..<10, using: &random) == 0 {
      expect(try keyhole.size(path) == committed.count, "another process sees the committed size")
    }
  }

  private mutating func expect(_ condition: Bool, _ what: String) {
    if condition { return }
    Issue.record("\(what); the last steps:\n\(log.suffix(25).joined(separator: "\n"))")
    // The rest would only follow from this.
    log.append("wrong")
  }
}
