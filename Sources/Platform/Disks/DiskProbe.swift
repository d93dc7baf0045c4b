import Glibc

/// Whether a disk would take a write now, determined without writing to any file that has a name.
package enum DiskProbe {
  /// In bytes: a disk with less is full for every purpose of Keyhole's.
  private static let leastRoom = 1 << 20
  /// The size that the probe for a quota allocates, in bytes.
  private static let sample = 64 * 1024

  /// The errno with which the disk of a folder takes no write at all; 0: it takes some, or that is not known.
  ///
  /// open(2) with O_TMPFILE: since Linux 6.12, neither statvfs(3) nor access(2) shows that ext4 made itself read-only
  /// after an error of the disk. It costs about 15 µs.
  ///
  /// - Returns: EROFS; EIO, ENXIO or ENODEV of a lost disk.
  package static func writeError(in folder: String) -> Int32 {
    let (file, error) = temporaryFile(in: folder)
    if file >= 0 { close(file) }
    return [EROFS, EIO, ENXIO, ENODEV].contains(error) ? error : 0
  }

  /// ENOSPC or EDQUOT where there is hardly any room in a folder; 0: there is, or that is not known.
  package static func roomError(in folder: String) -> Int32 {
    let (file, error) = temporaryFile(in: folder)
    guard file >= 0 else { return error == ENOSPC || error == EDQUOT ? error : 0 }
    defer { close(file) }
    let failure = posix_fallocate(file, 0, sample)
    if failure == ENOSPC || failure == EDQUOT { return failure }
    var room = statvfs()
    guard unsafe fstatvfs(file, &room) == 0, room.f_blocks > 0 else { return 0 }
    let (bytes, overflow) = UInt64(room.f_bavail).multipliedReportingOverflow(by: UInt64(room.f_frsize))
    return !overflow && bytes < leastRoom ? ENOSPC : 0
  }

  private static func temporaryFile(in folder: String) -> (file: Int32, error: Int32) {
    // O_TMPFILE, a macro that Glibc's module does not show: __O_TMPFILE | O_DIRECTORY.
    let flags = O_WRONLY | O_CLOEXEC | 0o20000000 | O_DIRECTORY
    // SAFETY: a variadic call with its one argument.
    let file = unsafe open(folder, flags, 0o600)
    return (file, file >= 0 ? 0 : errno)
  }
}
