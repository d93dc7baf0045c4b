public import Glibc

/// A file by its device and inode, independent of its path.
public struct FileID: Hashable, Sendable {
  /// The file system's number (`st_dev`).
  public var device: UInt64
  /// The file's number in its file system (`st_ino`).
  public var inode: UInt64

  /// The identity that stat(2) gives as `st_dev` and `st_ino`.
  public init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }

  /// The identity in a result of stat(2).
  public init(_ status: stat) {
    self.init(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
  }

  /// stat(2): the file that a path leads to, symbolic links followed; nil: there is none, or it can't be read.
  public init?(_ path: String) {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return nil }
    self.init(status)
  }
}
