import CFuse
import Glibc

/// A moment as files have it: seconds and nanoseconds since 1970 in UTC.
public struct Timestamp: Hashable, Sendable {
  /// Whole seconds since 1970-01-01T00:00:00Z (`tv_sec`); negative before.
  public var seconds: Int
  /// 0 ... 999,999,999.
  public var nanoseconds: Int

  /// `nanoseconds` is below 1,000,000,000.
  public init(seconds: Int, nanoseconds: Int = 0) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }
}

/// The type of a file: the upper bits of `st_mode`, in `inode(7)`.
public struct FileKind: RawRepresentable, Hashable, Sendable {
  /// The file type bits of `st_mode` (`S_IFMT`), and no others.
  public let rawValue: UInt32

  /// Keeps the file type bits of a mode (`S_IFMT`) and drops the rest.
  public init(rawValue: UInt32) {
    self.rawValue = rawValue & S_IFMT
  }

  /// A regular file.
  public static let file = FileKind(rawValue: S_IFREG)
  /// A directory.
  public static let directory = FileKind(rawValue: S_IFDIR)
  /// A symbolic link.
  public static let symbolicLink = FileKind(rawValue: S_IFLNK)
}

/// A file's attributes, as `stat(2)` shows them.
public struct Attributes: Hashable, Sendable {
  /// `st_ino`, shown to people; the kernel itself uses ``Entry/node``.
  public var inode: UInt64
  /// Directory, regular file, symbolic link, …: the file type bits of `st_mode`.
  public var kind: FileKind
  /// The lower twelve bits of `st_mode`.
  public var permissions: UInt32
  /// The number of hard links (`st_nlink`).
  public var linkCount: UInt32
  /// The owner (`st_uid`).
  public var userID: UInt32
  /// The group (`st_gid`).
  public var groupID: UInt32
  /// In bytes. Of a file without direct I/O the kernel reads no further than this, so it must be exact.
  public var size: Int
  /// In units of 512 bytes.
  public var blocks: Int
  /// The block size that programs are advised to use, in bytes.
  public var blockSize: Int
  /// The time of the last access (`st_atim`).
  public var accessTime: Timestamp
  /// The time of the last change of the content (`st_mtim`).
  public var modificationTime: Timestamp
  /// The time of the last change of the attributes (`st_ctim`).
  public var changeTime: Timestamp
  /// Only of a device node.
  public var device: UInt64

  /// Attributes with one link, blocks for the size, and all three times the same.
  public init(
    inode: UInt64, kind: FileKind, permissions: UInt32, linkCount: UInt32 = 1, userID: UInt32 = 0,
    groupID: UInt32 = 0, size: Int = 0, time: Timestamp = Timestamp(seconds: 0)
  ) {
    self.inode = inode
    self.kind = kind
    self.permissions = permissions
    self.linkCount = linkCount
    self.userID = userID
    self.groupID = groupID
    self.size = size
    blocks = (size >> 9) + (size & 511 == 0 ? 0 : 1)
    blockSize = 4096
    accessTime = time
    modificationTime = time
    changeTime = time
    device = 0
  }
}

extension Attributes {
  /// `st_mode`: kind and permissions together.
  public var mode: UInt32 { kind.rawValue | (permissions & 0o7777) }

  var status: stat {
    var status = stat()
    status.st_ino = UInt(inode)
    status.st_mode = mode
    status.st_nlink = UInt(linkCount)
    status.st_uid = userID
    status.st_gid = groupID
    status.st_rdev = UInt(device)
    status.st_size = size
    status.st_blksize = blockSize
    status.st_blocks = blocks
    status.st_atim = timespec(tv_sec: accessTime.seconds, tv_nsec: accessTime.nanoseconds)
    status.st_mtim = timespec(tv_sec: modificationTime.seconds, tv_nsec: modificationTime.nanoseconds)
    status.st_ctim = timespec(tv_sec: changeTime.seconds, tv_nsec: changeTime.nanoseconds)
    return status
  }
}
