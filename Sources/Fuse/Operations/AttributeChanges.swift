import CFuse

/// The changes for `setattr`: nil leaves an attribute as it is.
public struct AttributeChanges: Sendable {
  /// A time to set.
  public enum TimeChange: Hashable, Sendable {
    /// The present moment (`UTIME_NOW`).
    case now
    case at(Timestamp)
  }

  /// The lower twelve bits of the new mode.
  public var permissions: UInt32?
  /// The new owner, of chown(2).
  public var userID: UInt32?
  /// The new group, of chown(2).
  public var groupID: UInt32?
  /// In bytes; `truncate` and `ftruncate`, never `open` with O_TRUNC, which arrives at `open` itself.
  public var size: Int?
  /// The new time of the last access, of utimensat(2).
  public var accessTime: TimeChange?
  /// The new time of the last change of the content, of utimensat(2).
  public var modificationTime: TimeChange?
  /// The new time of the last change of the attributes; only a kernel that caches writes sends one.
  public var changeTime: Timestamp?
  /// The kernel's own mask of what is set (`FUSE_SET_ATTR_…`), which tells calls apart that mean the same.
  public var mask: Int32

  /// No change at all, to be filled in.
  public init() {
    mask = 0
  }
}

extension AttributeChanges {
  init(_ status: stat, mask: Int32) {
    self.mask = mask
    func ifSet<Value>(_ bit: Int32, _ value: Value) -> Value? { mask & bit == 0 ? nil : value }
    permissions = ifSet(FUSE_SET_ATTR_MODE, status.st_mode & 0o7777)
    userID = ifSet(FUSE_SET_ATTR_UID, status.st_uid)
    groupID = ifSet(FUSE_SET_ATTR_GID, status.st_gid)
    size = ifSet(FUSE_SET_ATTR_SIZE, status.st_size)
    changeTime = ifSet(FUSE_SET_ATTR_CTIME, Timestamp(status.st_ctim))
    // The kernel sets the plain bit too when it asks for "now", so "now" goes first.
    accessTime =
      ifSet(FUSE_SET_ATTR_ATIME_NOW, .now) ?? ifSet(FUSE_SET_ATTR_ATIME, .at(Timestamp(status.st_atim)))
    modificationTime =
      ifSet(FUSE_SET_ATTR_MTIME_NOW, .now) ?? ifSet(FUSE_SET_ATTR_MTIME, .at(Timestamp(status.st_mtim)))
  }
}

extension Timestamp {
  init(_ time: timespec) {
    self.init(seconds: time.tv_sec, nanoseconds: time.tv_nsec)
  }
}
