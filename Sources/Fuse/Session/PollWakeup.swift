import CFuse

/// Wakes those who wait in `poll(2)`, `select(2)` or `epoll(7)` for a file.
///
/// Keep the latest one of a handle, and drop it when the file is released. In libfuse: `fuse_pollhandle`.
///
/// @unchecked: libfuse only reads the handle until it is destroyed.
@safe public final class PollWakeup: @unchecked Sendable {
  private let handle: OpaquePointer
  private let connection: Connection

  init(_ handle: OpaquePointer, _ connection: Connection) {
    unsafe self.handle = handle
    self.connection = connection
  }

  deinit {
    // SAFETY: libfuse's callback handed it over, and this is its only owner.
    unsafe fuse_pollhandle_destroy(handle)
  }

  /// Has the kernel ask `poll` again.
  ///
  /// In libfuse: `fuse_lowlevel_notify_poll`.
  public func wake() {
    // SAFETY: the connection keeps the session alive.
    _ = unsafe fuse_lowlevel_notify_poll(handle)
  }
}
