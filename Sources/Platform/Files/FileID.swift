/// A file by its device and inode, independent of its path.
public struct FileID: Hashable, Sendable {
  /// The number of the file system's device (`st_dev`); it may be another one after the next start of the system.
  public var device: UInt64
  /// The inode's number (`st_ino`), unique within the device while the file is there.
  public var inode: UInt64

  /// The identity that stat(2) gives as `st_dev` and `st_ino`.
  public init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }

  /// stat(2): the file that a path leads to, symbolic links followed; nil: there is none, or it can't be read.
  public init?(_ path: String) {
    guard let status = try? Files.status(path) else { return nil }
    self = status.id
  }
}
