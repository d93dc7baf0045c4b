import ArgumentParser
import CSystem
import Glibc
import KeychainSelection
import Model
import Platform

struct UnmountCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unmount", abstract: "Take the mount away, when everything is stored.")

  @Flag(help: "Also while it is in use: what has files open there keeps them.")
  var lazy = false

  @Argument(help: "The mount; without it, the one of this user's stores.")
  var mountpoint: String?

  func run() throws {
    let places = try StoragePaths.current()
    let records = MountRegistration.all(in: places.runtime)
    let wanted = mountpoint.map(MountPoint.absolute)
    if wanted == nil, records.count > 1 {
      let paths = records.map { $0.path.quotedForShell }.joined(separator: ", ")
      throw Failure(nil, "there are several mounts: \(paths); name the one that is to go")
    }
    let record = records.last { record in wanted.map { $0 == record.path } ?? true }
    guard let path = wanted ?? record?.path else { throw Failure(nil, "nothing is mounted") }
    guard MountTable().entry(at: path)?.type == "fuse.keyhole" else {
      throw Failure(path, "Keyhole is not mounted there")
    }
    let process = record.map { linux_pidfd_open($0.process) } ?? -1
    let isLazy = lazy || record?.isAlive == false
    let pause = isLazy ? nil : record.flatMap { ReplayPause($0, places) }
    try Unmounting.take(path, lazily: isLazy, isResting: pause != nil)
    // Taken away while in use, it serves on for as long as files are open.
    guard process >= 0, !lazy, !Unmounting.wait(for: process) else { return }
    StandardError.write(
      "keyhole: note: files are open there in another mount namespace; the process of the mount ends with the last one\n"
    )
  }
}

enum Unmounting {
  /// umount2(2) where the user may, else by the setuid helper of FUSE.
  ///
  /// - Throws: `Failure`, also for a mount that is in use.
  static func take(_ path: String, lazily: Bool, isResting: Bool = false) throws {
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

  /// Returns when the process has ended, or after ten seconds; false: it has not.
  static func wait(for process: Int32) -> Bool {
    defer { close(process) }
    var entry = pollfd(fd: process, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&entry, 1, 10_000) == 1
  }

  private static func failure(_ path: String, _ error: Int32) -> Failure {
    guard error == EBUSY else { return Failure(path, "it can't be unmounted: \(systemMessage(error))") }
    if getuid() != 0, unsafe access("/etc/mtab", R_OK) != 0 {
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
