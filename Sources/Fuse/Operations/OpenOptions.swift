import CFuse

/// Options for a file or directory that was just opened.
public struct OpenOptions: OptionSet, Sendable {
  /// The bits of the set, in an order of this library's own, not in that of `fuse_file_info`.
  public let rawValue: UInt32

  /// The set of these bits; unknown ones have no effect.
  public init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  /// Each read and write comes to the file system; nothing enters the page cache but private mappings.
  public static let directIO = OpenOptions(rawValue: SHIM_OPEN_DIRECT_IO)
  /// The page cache of this node stays valid: reads that it answers never arrive.
  ///
  /// The cache is the node's, not the handle's: other readers see it too.
  public static let keepCache = OpenOptions(rawValue: SHIM_OPEN_KEEP_CACHE)
  /// `close` sends no `flush`: one round trip less.
  public static let noFlush = OpenOptions(rawValue: SHIM_OPEN_NO_FLUSH)
  /// The kernel may answer later listings of this directory from its cache.
  ///
  /// Only for `opendir`, together with ``keepCache`` from the second time on: without it the kernel drops what it has.
  public static let cacheReaddir = OpenOptions(rawValue: SHIM_OPEN_CACHE_READDIR)
  /// `lseek` answers ESPIPE.
  public static let nonSeekable = OpenOptions(rawValue: SHIM_OPEN_NON_SEEKABLE)
}

/// Where a read comes from.
public struct ReadOrigin: Sendable {
  /// True of a page that the kernel reads into its cache; read(2) of a file with ``OpenOptions/directIO`` is none, and
  /// names its lock owner (FUSE_READ_LOCKOWNER), as page reads don't.
  public let isForPageCache: Bool
}

/// Where a write comes from.
public struct WriteOrigin: Sendable {
  /// The flags that the file was opened with, as in `open(2)`: O_APPEND, O_SYNC, O_NONBLOCK.
  public let flags: Int32
  /// True of a delayed write of a mapped page: then the request names no caller, and the handle may be another
  /// one of the same node. It may come after `flush`.
  public let isFromPageCache: Bool
}

/// How a file is released.
public struct ReleaseOrigin: Sendable {
  /// The flags that the file was opened with, as in `open(2)`.
  public let flags: Int32
  /// Whose locks to drop: the number that `flush` had too.
  public let lockOwner: UInt64
}

/// How much `fsync` wants to be safe on the disk.
public enum SyncScope: Sendable {
  /// The content, and what is needed to read it: `fdatasync(2)`.
  case data
  /// The content and all attributes: `fsync(2)`.
  case everything
}
