import Model
import Platform

/// Takes mounts away.
package enum Unmounting {
  /// umount2(2) where the user may, else by the setuid helper of FUSE.
  ///
  /// - Throws: `Failure`, also for a mount that is in use.
  package static func take(_ path: String, lazily: Bool) throws {
    var error: Errno?
    for _ in 0..<30 {
      error = attempt(path, lazily: lazily)
      guard error == .EBUSY else { break }
      // A command that reads or sets one setting has its file open for less than a millisecond; so has the replay of outside
      // changes, where the process of the mount could not be asked to rest.
      Pause.microseconds(10_000)
    }
    if let error { throw failure(path, error) }
  }

  /// nil: it is unmounted.
  private static func attempt(_ path: String, lazily: Bool) -> Errno? {
    do throws(Errno) {
      try KernelMount.remove(path, lazily: lazily)
      return nil
    } catch {
      guard error == .EPERM else { return error }
    }
    guard let helper = SystemChecks.find("fusermount3") else { return .EBUSY }
    let words = [helper, "-q", "-u"] + (lazily ? ["-z"] : []) + ["--", path]
    return (try? Child.run(words, variables: [])) == 0 ? nil : .EBUSY
  }

  /// How long the process of a mount may take to end after the mount is gone, in seconds.
  package static let patience = 10

  private static func failure(_ path: String, _ error: Errno) -> Failure {
    guard error == .EBUSY else { return Failure(path, "it can't be unmounted: \(error)") }
    if User.real != 0, !Files.allows(.read, "/etc/mtab") {
      return Failure(
        path, "fusermount3 can't unmount without /etc/mtab; `sudo ln -s ../proc/self/mounts /etc/mtab`")
    }
    return Failure(
      path, "it is in use; close the files and leave the folders there, or use `keyhole unmount --lazy`")
  }
}
