import Platform

/// A file as a running mount shows it, written by a command.
enum MountedFile {
  /// Replaces the content of the file at a path in a mount; it is stored when this returns. `options`: of open(2), besides O_WRONLY and
  /// O_NOFOLLOW.
  ///
  /// - Throws: EIO where the mount has just ended, and a file of another file system has its path; the errors of open(2), ftruncate(2),
  ///   write(2) and close(2).
  static func write(_ content: Span<UInt8>, to path: String, _ options: OpenFlags) throws(Errno) {
    // Not truncated by open(2), which would take the content of another file.
    let file = try Descriptor(path, options.union([.writing, .noFollow]))
    guard try Files.fileSystem(of: "/proc/self/fd/\(file.number)") == Files.fuse else { throw .EIO }
    try file.truncate(to: 0)
    try file.write(content)
    try file.close()
  }
}
