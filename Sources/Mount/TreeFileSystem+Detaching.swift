import Fuse
import Synchronization

extension TreeFileSystem {
  /// The mount point is gone from this process's mount namespace, but requests may come, from a copy of the mount in
  /// another one or from files that were open: those are served to their end, and everything else is answered ENOTCONN,
  /// as it will be afterwards.
  ///
  /// `action` is called once when no file is open: now, or by the last release.
  public func detach(_ action: @escaping @Sendable () -> Void) {
    openFiles.withLock { $0.detach(action) }?()
  }

  var isDetached: Bool { openFiles.withLock { $0.isDetached } }

  /// The number of a file that is open from now on.
  func register(_ file: OpenFile) -> FileHandle {
    openFiles.withLock { $0.add() }
    return OpenFiles.number(for: file)
  }

  /// The file is closed, and what was written to it is stored or refused.
  func unregister() {
    openFiles.withLock { $0.remove() }?()
  }
}
