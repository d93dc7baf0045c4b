import CFuse
import Glibc
import Synchronization

/// One mount of a ``FileSystem``: made, mounted, run, unmounted.
///
/// Made once, mounted once. Whoever drops it should have unmounted it: an object that goes away does so itself.
public final class Session: Sendable {
  struct State {
    var mountPoint: String?
    /// The thread in ``run(threads:)``.
    var runner: pthread_t?
    var isExiting = false
  }

  let connection: Connection
  let state = Mutex(State())

  /// Prepares a session with mount options as `mount.fuse3(8)` has them: `fsname=keyhole`, `nosuid`, `ro`.
  ///
  /// Throws when libfuse does not know an option. In libfuse: `fuse_session_new`.
  public init(_ fileSystem: any FileSystem, options: [String] = []) throws(SessionError) {
    connection = try Connection(fileSystem, options: options)
  }

  deinit {
    unmount()
  }

  /// Tells the kernel what changed.
  public var notifier: Notifier { Notifier(connection: connection) }
}

extension Session {
  /// Mounts; from now on callers wait for ``run(threads:)``.
  ///
  /// `onReady` is called once, on one of the session's threads, when the kernel has begun to ask: whoever looks at the
  /// mount from then on is answered. In libfuse: `fuse_session_mount`.
  public func mount(at path: String, onReady: (@Sendable () -> Void)? = nil) throws(SessionError) {
    guard let session = unsafe connection.session else {
      throw SessionError(.mount, messages: [], errno: .EINVAL)
    }
    connection.whenReady(onReady)
    // SAFETY: the session is alive as long as the connection, and the strings during the calls.
    let (status, messages) = Log.capture { unsafe fuse_session_mount(session, path) }
    let errno = Errno.current
    guard status == 0 else { throw SessionError(.mount, messages: messages, errno: errno) }
    connection.guardDevice()
    state.withLock { $0.mountPoint = path }
  }
}
