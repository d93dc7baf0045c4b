/// The file system's number for a file or directory, by which the kernel asks for it.
///
/// The kernel learns a number from a reply with an ``Entry``, and may use it until as many lookups as it was given
/// have been taken back by ``FileSystem/forget(_:lookups:)``. In libfuse: `fuse_ino_t`.
public struct NodeID: RawRepresentable, Hashable, Sendable {
  /// The number as the kernel has it; 0 stands for no file.
  public let rawValue: UInt64

  /// A number of the file system's choice, except 0, and except 1 for anything but the top directory.
  public init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// The top directory: `FUSE_ROOT_ID`, known to the kernel without a lookup.
  public static let root = NodeID(rawValue: 1)
}

/// The file system's number for one open file or directory, handed back with each operation on it.
///
/// In libfuse: `fuse_file_info.fh`.
public struct FileHandle: RawRepresentable, Hashable, Sendable {
  /// The number as the kernel has it; any value is valid.
  public let rawValue: UInt64

  /// A number of the file system's choice. The kernel does not interpret it.
  public init(rawValue: UInt64) {
    self.rawValue = rawValue
  }
}
