import Platform
import Synchronization

/// One mount of a ``FileSystem``: made, mounted, run, unmounted.
///
/// Made once, mounted once. It should be unmounted before it is dropped; deinit does it otherwise.
public final class Session: Sendable {
  struct State {
    var mountPoint: String?
    /// It was to be unmounted, perhaps before it was mounted.
    var isEnded = false
    /// The mount point is not this session's any more.
    var isDetached = false
  }

  let host: Host
  let state = Mutex(State())
  let unmounting = Mutex(())

  /// Prepares a session with mount options as `mount.fuse3(8)` has them: `fsname=keyhole`, `nosuid`, `ro`.
  ///
  /// Throws when libfuse does not know an option. In libfuse: `fuse_session_new`.
  public init(_ fileSystem: any FileSystem, options: [String] = []) throws(SessionError) {
    host = try Host(fileSystem, options: options)
  }

  deinit {
    unmount()
  }

  var connection: Connection { host.connection }

  /// Tells the kernel what changed. The file system may keep it.
  public var invalidator: CacheInvalidator { CacheInvalidator(connection: connection) }
}

extension Session {
  /// Mounts; from now on callers wait for ``run(threads:)``.
  ///
  /// `onReady` is called once, on one of the session's threads, when the kernel has begun to ask: from then on
  /// calls on the mount are answered. `device` is an open /dev/fuse whose file system is mounted there already, by root
  /// for a user. Unmounted before, it is unmounted at once. In libfuse: `fuse_session_mount`.
  public func mount(
    at path: String, through device: Int32? = nil, onReady: (@Sendable () -> Void)? = nil
  ) throws(SessionError) {
    host.whenReady(onReady)
    let (errno, messages) = Log.capture { connection.mount(device.map { "/dev/fd/\($0)" } ?? path) }
    if let errno { throw SessionError(.mount, messages: messages, errno: errno) }
    connection.quietDevice()
    let isEnded = state.withLock { state in
      state.mountPoint = path
      return state.isEnded
    }
    if isEnded { unmount() }
  }
}
