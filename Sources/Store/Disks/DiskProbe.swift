import Glibc
public import Model

/// What a disk would answer to a write now, found out without writing to any file that has a name.
public enum DiskProbe {
  /// In bytes: a disk with less is full for every purpose of Keyhole's.
  private static let leastRoom = 1 << 20
  /// What the probe for a quota allocates, in bytes.
  private static let sample = 64 * 1024

  /// Why the disk of a folder takes no write at all; nil: it takes some, or that is not known.
  ///
  /// open(2) with O_TMPFILE: since Linux 6.12, neither statvfs(3) nor access(2) shows that ext4 made itself read-only
  /// after an error of the disk. It costs about 15 µs.
  ///
  /// - Returns: `readOnly` for EROFS, `system` for EIO and for a device that is gone.
  public static func refusal(of folder: String) -> StoreError? {
    let (file, error) = temporaryFile(in: folder)
    if file >= 0 { close(file) }
    switch error {
    case EROFS:
      return .readOnly(reason: "the disk of \(folder) is mounted read-only, or became so after an error")
    case EIO, ENXIO, ENODEV: return .system(errno: error, operation: "writing to the disk of \(folder)")
    default: return nil
    }
  }

  /// What `keyhole doctor` says of the disk of a folder; nil: it takes writes. A folder that is missing is no problem.
  ///
  /// Of two folders on one disk it says the same.
  public static func problem(of folder: String) -> Problem? {
    let disk = MountedDisk(of: folder)
    let subject = disk?.target ?? folder
    switch refusal(of: folder) {
    case .readOnly? where disk?.hasFailed == true:
      return Problem(
        subject: subject, reason: "its disk became read-only after an error",
        remedy:
          "`\(disk?.commandThatChecks ?? "")` checks it and mounts it again (one that is in use: restart the "
          + "machine), `sudo dmesg` shows the error")
    case .readOnly?:
      return Problem(
        subject: subject, reason: "its disk is mounted read-only",
        remedy: "`sudo mount -o remount,rw \(subject.quotedForShell)` makes it writable")
    case .system(let number, _)?:
      let message = unsafe strerror(number).map { unsafe String(cString: $0) } ?? "error \(number)"
      return Problem(
        subject: subject, reason: "its disk takes no writes: \(message)",
        remedy: "`sudo dmesg` shows why; `keyhole backup FILE` on another disk saves what can be read")
    default: return roomProblem(folder, subject)
    }
  }

  private static func roomProblem(_ folder: String, _ subject: String) -> Problem? {
    switch roomError(folder) {
    case EDQUOT:
      return Problem(
        subject: subject, reason: "your quota of its disk is used up: only removing works",
        remedy: "remove files of yours there; `quota -s` of the package quota shows the limits")
    case ENOSPC:
      return Problem(
        subject: subject, reason: "its disk is full: only removing works",
        remedy: "free some room; `df \(subject.quotedForShell)` shows how much there is")
    default: return nil
    }
  }

  /// Why nothing can be stored in a folder for want of room; nil: there is some, or that is not known.
  public static func shortage(of folder: String) -> StoreError? {
    switch roomError(folder) {
    case EDQUOT: .quotaExceeded
    case ENOSPC: .noSpace
    default: nil
    }
  }

  /// ENOSPC or EDQUOT where there is hardly any room; 0: there is, or that is not known.
  private static func roomError(_ folder: String) -> Int32 {
    let (file, error) = temporaryFile(in: folder)
    guard file >= 0 else { return error }
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
