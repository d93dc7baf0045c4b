package import Model
package import Platform

extension DiskProbe {
  /// Why the disk of a folder takes no write at all; nil: it takes some, or that is not known.
  ///
  /// - Returns: `readOnly` for EROFS, `system` for EIO and for a device that is gone.
  package static func refusal(of folder: String) -> StoreError? {
    switch writeError(in: folder) {
    case nil: nil
    case .EROFS?: .readOnly(reason: "the disk of \(folder) is mounted read-only, or became so after an error")
    case let error?: .system(error, operation: "writing to the disk of \(folder)")
    }
  }

  /// Why nothing can be stored in a folder for want of room; nil: there is some, or that is not known.
  package static func shortage(of folder: String) -> StoreError? {
    switch roomError(in: folder) {
    case .EDQUOT?: .quotaExceeded
    case .ENOSPC?: .noSpace
    default: nil
    }
  }

  /// The problem of a folder's disk for `keyhole doctor`; nil: it takes writes. A missing folder is no problem.
  ///
  /// Of two folders on one disk it says the same.
  package static func problem(of folder: String) -> Problem? {
    let disk = MountedDisk(of: folder)
    let subject = disk?.target ?? folder
    switch refusal(of: folder) {
    case .readOnly? where disk?.hasFailed == true:
      return Problem(
        subject: subject, reason: "its disk became read-only after an error",
        remedy:
          "`\(disk?.commandThatChecks(quote: \.quotedForShell) ?? "")` checks it and mounts it again (one that is in "
          + "use: restart the machine), `sudo dmesg` shows the error")
    case .readOnly?:
      return Problem(
        subject: subject, reason: "its disk is mounted read-only",
        remedy: "`sudo mount -o remount,rw \(subject.quotedForShell)` makes it writable")
    case .system(let error, _)?:
      return Problem(
        subject: subject, reason: "its disk takes no writes: \(error)",
        remedy: "`sudo dmesg` shows why; `keyhole backup FILE` on another disk saves what can be read")
    default: return roomProblem(folder, subject)
    }
  }

  private static func roomProblem(_ folder: String, _ subject: String) -> Problem? {
    switch shortage(of: folder) {
    case .quotaExceeded?:
      return Problem(
        subject: subject, reason: "your quota of its disk is used up: what it holds can only be removed",
        remedy: "remove files of yours there; `quota -s` of the package quota shows the limits")
    case .noSpace?:
      return Problem(
        subject: subject, reason: "its disk is full: what it holds can only be removed",
        remedy: "free some room; `df \(subject.quotedForShell)` shows how much there is")
    default: return nil
    }
  }
}
