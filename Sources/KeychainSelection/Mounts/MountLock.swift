import Glibc
import Platform
import Synchronization

/// A file in the state folder that the process of a mount keeps locked (flock(2)) for as long as it uses the stores.
///
/// `MountRegistration` is in the runtime folder of the mount, and another process of the user may have another one. The kernel
/// drops the lock with the process, however it ends: a file without a lock was left by a process that was killed.
package final class MountLock: Sendable {
  private let path: String
  private let file: Mutex<Int32>

  /// nil: the state folder can't be written.
  package init?(_ mountPoint: String, state: String) {
    let folder = Self.folder(state)
    UserFolders.make(folder)
    for path in Self.files(folder) { Self.removeIfUnused(path) }
    guard let (path, file) = Self.make(in: folder) else { return nil }
    self.path = path
    self.file = Mutex(file)
    let bytes = Array(mountPoint.utf8)
    // SAFETY: the buffer says how long it is.
    _ = unsafe bytes.withUnsafeBytes { unsafe write(file, $0.baseAddress, $0.count) }
  }

  deinit { end() }

  /// The stores are not used any more.
  package func end() {
    file.withLock { file in
      guard file >= 0 else { return }
      unsafe unlink(path)
      close(file)
      file = -1
    }
  }

  /// The mount points of all processes that use the stores of a state folder now, whatever their runtime folder.
  package static func mountPoints(state: String) -> [String] {
    files(folder(state)).filter(isLocked).map(readFile).sorted()
  }

  private static func folder(_ state: String) -> String { state + "/mounts" }

  private static func files(_ folder: String) -> [String] {
    names(in: folder).map { "\(folder)/\($0)" }
  }

  /// A new file, locked. nil: it can't be made.
  private static func make(in folder: String) -> (path: String, file: Int32)? {
    for _ in 0..<10 {
      let path = "\(folder)/\(UInt64.random(in: .min ... .max))"
      // SAFETY: a variadic call with its one argument.
      let file = unsafe open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
      guard file >= 0 else { return nil }
      // Before the lock, another process may have taken it for a file that is left.
      if flock(file, LOCK_EX | LOCK_NB) == 0, hasName(file) { return (path, file) }
      close(file)
    }
    return nil
  }

  private static func hasName(_ file: Int32) -> Bool {
    var status = stat()
    return unsafe fstat(file, &status) == 0 && status.st_nlink > 0
  }

  private static func isLocked(_ path: String) -> Bool {
    // SAFETY: a variadic call without its variable part.
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard file >= 0 else { return false }
    defer { close(file) }
    return flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
  }

  private static func removeIfUnused(_ path: String) {
    // SAFETY: a variadic call without its variable part.
    let file = unsafe open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard file >= 0 else { return }
    defer { close(file) }
    if flock(file, LOCK_EX | LOCK_NB) == 0 { unsafe unlink(path) }
  }
}
