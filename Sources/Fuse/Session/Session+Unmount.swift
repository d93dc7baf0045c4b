import CFuse
import Glibc
import Platform
import Synchronization

extension Session {
  /// Takes the mount away: callers see the folder below it again, and open files answer ENOTCONN.
  ///
  /// Lazy, so it never fails for being busy. Does nothing when there is no mount any more, or for a second time. Replies
  /// that are still owed can be answered; the answers are dropped. It ends ``run(threads:)`` too.
  public func unmount() {
    // A second caller waits for the first: after it, the process may end.
    unmounting.withLock { _ in
      let (mountPoint, isDetached) = state.withLock { state in
        state.isEnded = true
        return (state.mountPoint.take(), state.isDetached)
      }
      guard let mountPoint else { return }
      exit()
      connection.disconnect(from: isDetached ? nil : mountPoint)
    }
  }

  /// The mount is gone from its mount point, though the kernel may keep the file system for another mount namespace or for
  /// open files: ``unmount()`` then hangs up without touching what is at the mount point now.
  public func forgetMountPoint() {
    state.withLock { $0.isDetached = true }
  }
}

extension Connection {
  /// Unmounts and hangs up, in place of `fuse_session_unmount`, which closes the descriptor: an owed reply on another
  /// thread could then write to whatever gets its number. Here the number stays taken until the last reply is gone.
  /// nil: nothing is to be unmounted.
  func disconnect(from path: String?) {
    guard let session = unsafe session else { return }
    // SAFETY: the session is alive as long as self.
    let device = unsafe fuse_session_fd(session)
    if let path, !isHungUp(device) { detach(path) }
    let null = unsafe Glibc.open("/dev/null", O_RDWR | O_CLOEXEC)
    guard null >= 0 else { return }
    dup2(null, device)
    close(null)
  }

  /// True when the kernel has dropped the mount already; what is at its path then belongs to others.
  private func isHungUp(_ device: Int32) -> Bool {
    var entry = pollfd(fd: device, events: 0, revents: 0)
    return unsafe poll(&entry, 1, 0) == 1 && entry.revents & Int16(POLLERR) != 0
  }

  private func detach(_ path: String) {
    // Not through a symbolic link that has taken the mount point's place.
    if unsafe umount2(path, Int32(MNT_DETACH | UMOUNT_NOFOLLOW)) == 0 { return }
    // Without privileges only the set-user-id program can.
    run(["fusermount3", "-u", "-q", "-z", "--", path])
  }

  private func run(_ words: [String]) {
    var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
    defer { unsafe arguments.forEach { unsafe free($0) } }
    var process: pid_t = 0
    // SAFETY: the list is terminated and its strings are alive until the call returns.
    guard unsafe posix_spawnp(&process, words[0], nil, nil, &arguments, environ) == 0 else { return }
    var status: Int32 = 0
    while unsafe waitpid(process, &status, 0) == -1, Errno.current == .EINTR {}
  }
}
