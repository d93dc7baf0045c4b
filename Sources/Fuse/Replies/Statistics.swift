import CFuse

/// The room on a file system, as `statvfs(3)` shows it.
public struct Statistics: Hashable, Sendable {
  /// The unit of all block counts, in bytes.
  public var blockSize: UInt
  /// The size of the file system in blocks (`f_blocks`).
  public var blocks: UInt
  /// Free blocks, with those that only root may use (`f_bfree`).
  public var freeBlocks: UInt
  /// Free for users without privileges.
  public var availableBlocks: UInt
  /// The number of inodes (`f_files`).
  public var files: UInt
  /// The number of inodes that can still be created (`f_ffree`).
  public var freeFiles: UInt
  /// In bytes.
  public var maximumNameLength: UInt

  /// By default there is no room, blocks have 4,096 bytes and names at most 255.
  public init(
    blockSize: UInt = 4096, blocks: UInt = 0, freeBlocks: UInt = 0, availableBlocks: UInt = 0,
    files: UInt = 0,
    freeFiles: UInt = 0, maximumNameLength: UInt = 255
  ) {
    self.blockSize = blockSize
    self.blocks = blocks
    self.freeBlocks = freeBlocks
    self.availableBlocks = availableBlocks
    self.files = files
    self.freeFiles = freeFiles
    self.maximumNameLength = maximumNameLength
  }
}

extension Statistics {
  var status: statvfs {
    var status = statvfs()
    status.f_bsize = blockSize
    status.f_frsize = blockSize
    status.f_blocks = blocks
    status.f_bfree = freeBlocks
    status.f_bavail = availableBlocks
    status.f_files = files
    status.f_ffree = freeFiles
    status.f_favail = freeFiles
    status.f_namemax = maximumNameLength
    return status
  }
}
