/// The caller of a request.
///
/// All are zero when the caller has no number in our namespace, and on requests that the kernel makes by itself:
/// release, and writes from the page cache. In libfuse: `fuse_req_ctx`.
public struct Request: Sendable {
  /// The caller's user id for file system access.
  public let userID: UInt32
  /// The caller's group id for file system access.
  public let groupID: UInt32
  /// The calling *thread*: libfuse's header and others call it `pid`, but the process is `Tgid:` in
  /// `/proc/<threadID>/status`.
  public let threadID: Int32
  /// The caller's umask; only mknod, mkdir and create carry one. The kernel has already applied it to their mode.
  public let umask: UInt32
}
