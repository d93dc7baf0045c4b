import Glibc
import Model

/// A file descriptor that closes itself.
struct Descriptor: ~Copyable {
  let number: Int32

  /// open(2) with O_CLOEXEC, again where a signal came.
  init(_ path: String, _ flags: Int32, mode: mode_t = 0o600) throws(StoreError) {
    number = try FileSystem.retrying("open") { Int(unsafe open(path, flags | O_CLOEXEC, mode)) }.narrowed
  }

  /// Another number for the same open file: a lock of flock(2) lasts as long as either.
  init(copying other: borrowing Descriptor) throws(StoreError) {
    let original = other.number
    number = try FileSystem.retrying("dup") { Int(fcntl(original, F_DUPFD_CLOEXEC, 0)) }.narrowed
  }

  deinit { close(number) }

  /// fstat(2).
  var status: FileStatus {
    get throws(StoreError) {
      var raw = stat()
      try FileSystem.retrying("fstat") { Int(unsafe fstat(number, &raw)) }
      return FileStatus(raw)
    }
  }

  /// fdatasync(2).
  func synchronizeData() throws(StoreError) {
    try FileSystem.retrying("fdatasync") { Int(fdatasync(number)) }
  }

  /// flock(2) without waiting; false: another descriptor holds it.
  func tryLock() throws(StoreError) -> Bool {
    do {
      try FileSystem.retrying("flock") { Int(flock(number, LOCK_EX | LOCK_NB)) }
      return true
    } catch StoreError.system(errno: EWOULDBLOCK, operation: _) {
      return false
    }
  }

  /// Everything from the present position on, but no more than `limit` bytes.
  func read(limit: Int, expecting size: Int) throws(StoreError) -> [UInt8] {
    var bytes: [UInt8] = []
    // One byte more than there should be: so the end is found without another call.
    var room = min(max(size, 0), limit) + 1
    while bytes.count <= limit {
      let chunk = try read(upTo: min(room, limit + 1 - bytes.count))
      if chunk.isEmpty { break }
      bytes = bytes.isEmpty ? chunk : bytes + chunk
      if chunk.count < room { break }
      room = 65536
    }
    return bytes
  }

  private func read(upTo count: Int) throws(StoreError) -> [UInt8] {
    var failure: StoreError?
    // SAFETY: the closure fills the buffer from its start on and says how far.
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      do {
        filled = try FileSystem.retrying("read") {
          unsafe Glibc.read(number, buffer.baseAddress, buffer.count)
        }
      } catch { failure = error as? StoreError ?? .system(errno: EIO, operation: "read") }
    }
    if let failure { throw failure }
    return bytes
  }

  /// write(2) until all is written.
  func write(_ bytes: [UInt8]) throws(StoreError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = try FileSystem.retrying("write") {
        // SAFETY: write(2) gets the buffer's size.
        unsafe rest.withUnsafeBytes { unsafe Glibc.write(number, $0.baseAddress, $0.count) }
      }
      rest = rest.dropFirst(count)
    }
  }
}

extension Int {
  /// A descriptor: never outside of `Int32`.
  fileprivate var narrowed: Int32 { Int32(truncatingIfNeeded: self) }
}
