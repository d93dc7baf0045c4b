import Control
import Platform
import Synchronization

/// A file in the state folder that the process of a mount keeps locked (flock(2)) for as long as it uses the stores.
///
/// `MountRegistration` is in the runtime folder of the mount, and another process of the user may have another one. The kernel
/// drops the lock with the process, however it ends: a file without a lock was left by a process that was killed.
package final class MountLock: Sendable {
  private let path: String
  private let file: Mutex<Descriptor?>

  /// nil: the state folder can't be written.
  package init?(_ mountPoint: String, state: String) {
    let folder = Self.folder(state)
    UserFolders.make(folder)
    for path in Self.files(folder) { Self.removeIfUnused(path) }
    guard let made = Self.make(in: folder) else { return nil }
    try? made.file.write(Array(mountPoint.utf8))
    path = made.path
    file = Mutex(made.file)
  }

  deinit { end() }

  /// The stores are not used any more.
  package func end() {
    file.withLock { file in
      guard file != nil else { return }
      _ = try? Files.remove(path)
      file = nil
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

  private struct NewFile: ~Copyable {
    let path: String
    let file: Descriptor
  }

  /// A new file, locked. nil: it can't be made.
  private static func make(in folder: String) -> NewFile? {
    for _ in 0..<10 {
      let path = "\(folder)/\(UInt64.random(in: .min ... .max))"
      guard let file = try? Descriptor(path, [.readingAndWriting, .create, .exclusive, .noFollow]) else {
        return nil
      }
      // Before the lock, another process may have taken it for a file that is left.
      if (try? file.tryLock()) == true, let status = try? file.status, status.links > 0 {
        return NewFile(path: path, file: file)
      }
    }
    return nil
  }

  private static func isLocked(_ path: String) -> Bool {
    guard let file = try? Descriptor(path, [.reading, .noFollow, .nonBlocking]) else { return false }
    return (try? file.tryLock(.shared)) == false
  }

  private static func removeIfUnused(_ path: String) {
    guard let file = try? Descriptor(path, [.readingAndWriting, .noFollow, .nonBlocking]) else { return }
    if (try? file.tryLock()) == true { _ = try? Files.remove(path) }
  }
}
