import Glibc

/// The file system that a path is on, as statvfs(3) has it.
package struct Volume: Sendable {
  /// The unit of the counts, in bytes.
  package let blockSize: UInt64
  /// `f_bsize`: the block of the file system, in bytes.
  package let preferredSize: UInt64
  package let blocks: UInt64
  package let freeBlocks: UInt64
  /// Those that users other than root may use.
  package let availableBlocks: UInt64
  package let isReadOnly: Bool

  /// The room that users other than root may use.
  package var availableBytes: UInt64 {
    let (bytes, overflow) = availableBlocks.multipliedReportingOverflow(by: blockSize)
    return overflow ? .max : bytes
  }

  package init(at path: String) throws(Errno) {
    var raw = statvfs()
    try Errno.retrying { unsafe statvfs(path, &raw) }
    self.init(raw)
  }

  package init(of file: borrowing Descriptor) throws(Errno) {
    var raw = statvfs()
    let number = file.number
    try Errno.retrying { unsafe fstatvfs(number, &raw) }
    self.init(raw)
  }

  private init(_ raw: statvfs) {
    blockSize = UInt64(raw.f_frsize)
    preferredSize = UInt64(raw.f_bsize)
    blocks = UInt64(raw.f_blocks)
    freeBlocks = UInt64(raw.f_bfree)
    availableBlocks = UInt64(raw.f_bavail)
    isReadOnly = raw.f_flag & UInt(ST_RDONLY) != 0
  }
}
