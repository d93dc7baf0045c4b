import Glibc

/// An open descriptor, closed at the latest when it goes.
final class OpenFile: Sendable {
  let descriptor: Int32
  private let open = Claim()

  /// Always O_CLOEXEC: a copy in a program that another test starts would be one more writer.
  init(_ path: String, _ flags: Int32, mode: mode_t = 0o666) throws(Errno) {
    descriptor = try System.check { unsafe Glibc.open(path, flags | O_CLOEXEC, mode) }
  }

  init(descriptor: Int32) {
    self.descriptor = descriptor
  }

  deinit {
    if open.take() { _ = Glibc.close(descriptor) }
  }

  /// close(2) with what it reports. Not tried again on EINTR: the descriptor is gone then too.
  func close() throws(Errno) {
    guard open.take() else { throw .badDescriptor }
    if Glibc.close(descriptor) == -1 { throw Errno.last }
  }

  func duplicate() throws(Errno) -> OpenFile {
    OpenFile(descriptor: try System.check { fcntl(descriptor, F_DUPFD_CLOEXEC, 0) })
  }

  /// One write(2); a short one is not continued.
  @discardableResult
  func write(_ bytes: [UInt8]) throws(Errno) -> Int {
    try System.check { unsafe Glibc.write(descriptor, bytes, bytes.count) }
  }

  @discardableResult
  func write(_ text: String) throws(Errno) -> Int {
    try write(Array(text.utf8))
  }

  @discardableResult
  func write(_ bytes: [UInt8], at offset: Int) throws(Errno) -> Int {
    try System.check { unsafe pwrite(descriptor, bytes, bytes.count, offset) }
  }

  func read(upTo count: Int = 65536) throws(Errno) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let got = try System.check { unsafe Glibc.read(descriptor, &bytes, count) }
    return Array(bytes.prefix(got))
  }

  func read(upTo count: Int, at offset: Int) throws(Errno) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let got = try System.check { unsafe pread(descriptor, &bytes, count, offset) }
    return Array(bytes.prefix(got))
  }

  func readAll() throws(Errno) -> [UInt8] {
    var result: [UInt8] = []
    while true {
      let part = try read()
      if part.isEmpty { return result }
      result += part
    }
  }

  func seek(to offset: Int) throws(Errno) {
    _ = try System.check { lseek(descriptor, offset, SEEK_SET) }
  }

  func sync() throws(Errno) {
    _ = try System.check { fsync(descriptor) }
  }

  func truncate(_ size: Int) throws(Errno) {
    _ = try System.check { ftruncate(descriptor, size) }
  }

  func status() throws(Errno) -> stat {
    var result = stat()
    _ = try System.check { unsafe fstat(descriptor, &result) }
    return result
  }

  var size: Int {
    get throws(Errno) { Int(try status().st_size) }
  }
}

extension OpenFile {
  /// Maps the first `count` bytes for the time of `body`.
  private func withMapping<Result>(
    _ count: Int, _ flags: Int32, protection: Int32 = PROT_READ,
    body: (UnsafeMutableRawBufferPointer) throws -> Result
  ) throws -> Result {
    let address = unsafe mmap(nil, count, protection, flags, descriptor, 0)
    guard let address = unsafe address, unsafe address != MAP_FAILED else { throw Errno.last }
    defer { unsafe munmap(address, count) }
    return try unsafe body(UnsafeMutableRawBufferPointer(start: address, count: count))
  }

  /// The first `count` bytes through a mapping.
  func mapped(_ count: Int, _ flags: Int32, protection: Int32 = PROT_READ) throws -> String {
    String(decoding: try mappedBytes(count, flags, protection: protection), as: UTF8.self)
  }

  func mappedBytes(_ count: Int, _ flags: Int32, protection: Int32 = PROT_READ) throws -> [UInt8] {
    try unsafe withMapping(count, flags, protection: protection) { unsafe [UInt8]($0) }
  }

  /// How many pages of the file's first `count` bytes the kernel holds in its page cache.
  func cachedPages(_ count: Int) throws -> Int {
    try unsafe withMapping(count, MAP_PRIVATE) { memory in
      let page = Int(sysconf(Int32(_SC_PAGESIZE)))
      var resident = [UInt8](repeating: 0, count: (count + page - 1) / page)
      _ = try System.check { unsafe mincore(memory.baseAddress, count, &resident) }
      return resident.count { $0 & 1 == 1 }
    }
  }
}
