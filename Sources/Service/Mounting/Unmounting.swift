import Glibc
import Model
import Platform

/// Takes mounts away.
package enum Unmounting {
  /// umount2(2) where the user may, else by the setuid helper of FUSE.
  ///
  /// - Throws: `Failure`, also for a mount that is in use.
  package static func take(_ path: String, lazily: Bool, isResting: Bool = false) throws {
    var error: Int32 = 0
    for _ in 0..<30 {
      error = attempt(path, lazily: lazily)
      if error == 0 { return }
      guard error == EBUSY, !isResting else { break }
      // Its process could not be asked to rest: an echo of an outside change takes less than a millisecond.
      usleep(10_000)
    }
    throw failure(path, error)
  }

  private static func attempt(_ path: String, lazily: Bool) -> Int32 {
    if unsafe umount2(path, lazily ? Int32(MNT_DETACH) : 0) == 0 { return 0 }
    guard errno == EPERM else { return errno }
    let status = run(["fusermount3", "-q", "-u"] + (lazily ? ["-z"] : []) + ["--", path])
    return status == 0 ? 0 : EBUSY
  }

  /// How long the process of a mount may take to end after the mount is gone, in seconds.
  package static let patience = 10

  private static func failure(_ path: String, _ error: Int32) -> Failure {
    guard error == EBUSY else { return Failure(path, "it can't be unmounted: \(systemMessage(error))") }
    if User.real != 0, !Files.allows(.read, "/etc/mtab") {
      return Failure(
        path, "fusermount3 can't unmount without /etc/mtab; `sudo ln -s ../proc/self/mounts /etc/mtab`")
    }
    return Failure(
      path, "it is in use; close the files and leave the folders there, or use `keyhole unmount --lazy`")
  }

  private static func run(_ words: [String]) -> Int32 {
    var pointers = unsafe words.map { unsafe strdup($0) } + [nil]
    defer { unsafe pointers.forEach { unsafe free($0) } }
    var process = pid_t()
    var status: Int32 = 0
    // SAFETY: all strings live until the call returns.
    guard unsafe posix_spawnp(&process, words[0], nil, nil, &pointers, environ) == 0 else { return -1 }
    unsafe waitpid(process, &status, 0)
    return status
  }
}
