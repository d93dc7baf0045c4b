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
    guard let device else { return }
    if let path, !isHungUp(device) { detach(path) }
    guard let null = try? Descriptor("/dev/null", .readingAndWriting) else { return }
    null.replace(device)
  }

  /// True when the kernel has dropped the mount already; what is at its path then belongs to others.
  private func isHungUp(_ device: Int32) -> Bool {
    (try? Poll.wait(for: [Poll.Entry(device, [])], until: .now)) == [true]
  }

  private func detach(_ path: String) {
    // Not through a symbolic link that has taken the mount point's place.
    if (try? KernelMount.remove(path, lazily: true, followingLinks: false)) != nil { return }
    // Without privileges only the set-user-id program can. Neither a key of the terminal nor the end of a service that the
    // mount belongs to must end it.
    let words = ["fusermount3", "-u", "-q", "-z", "--", path]
    guard let process = try? spawn(words[0], words, in: .own, keepingSignalMask: true) else { return }
    waitForChild(process)
  }
}
