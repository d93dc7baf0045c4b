import CFuse
import Glibc
import Platform
import Synchronization

/// libfuse's session, alive as long as a reply may be sent through it.
///
/// A reply that was parked can be answered after the unmount, and `fuse_reply_…` reads the session. So each owed reply
/// holds this object, and the session is destroyed with the last of them. It knows nothing of the file system, which may
/// therefore hold a ``CacheInvalidator``.
///
/// @unchecked: the pointer is written once, before any other thread can know of the object; libfuse locks the rest.
@safe final class Connection: @unchecked Sendable {
  private(set) var session: OpaquePointer?
  private let running = Mutex<Workers?>(nil)

  deinit {
    // SAFETY: the last reference to the connection is gone, so no request, no notifier and no loop uses the session.
    if let session = unsafe session { unsafe fuse_session_destroy(session) }
  }
}

extension Connection {
  /// The threads that read its requests; nil: none do.
  var workers: Workers? { running.withLock { $0 } }

  /// Returns false where others read them already.
  func begin(_ workers: Workers) -> Bool {
    running.withLock { running in
      guard running == nil else { return false }
      running = workers
      return true
    }
  }

  /// They hold the connection: without this, neither would go.
  func endWorkers() { running.withLock { $0 = nil } }

  /// Makes the session; `host` is what each request will lead to.
  func open(options: [String], for host: Host) throws(SessionError) {
    var operations = kernelOperations
    let (session, messages) = unsafe Log.capture {
      // SAFETY: libfuse copies the table and the arguments; the thread that runs the session keeps the host.
      unsafe withArguments(options) { arguments in
        unsafe fuse_session_new(
          &arguments, &operations, MemoryLayout<fuse_lowlevel_ops>.size,
          Unmanaged.passUnretained(host).toOpaque())
      }
    }
    guard let session = unsafe session else {
      throw SessionError(.create, messages: messages, errno: .EINVAL)
    }
    unsafe self.session = session
  }

  /// Mounts; `source` is the mount point, or `/dev/fd/N` for a device that is mounted already. In libfuse:
  /// `fuse_session_mount`.
  func mount(_ source: String) -> Errno? {
    guard let session = unsafe session else { return .EINVAL }
    // SAFETY: the session is alive as long as self; so in all methods.
    return unsafe fuse_session_mount(session, source) == 0 ? nil : .current
  }

  /// Has the threads that read requests stop. In libfuse: `fuse_session_exit`.
  func exit() {
    guard let session = unsafe session else { return }
    unsafe fuse_session_exit(session)
  }

  /// The mount is gone, or `exit` was called. In libfuse: `fuse_session_exited`.
  var isExiting: Bool {
    guard let session = unsafe session else { return true }
    return unsafe fuse_session_exited(session) != 0
  }

  /// The descriptor that requests are read from; nil: there is no session. In libfuse: `fuse_session_fd`.
  var device: Int32? {
    guard let session = unsafe session else { return nil }
    return unsafe fuse_session_fd(session)
  }

  /// Whether the kernel has a request that no thread has read yet: poll(2), without waiting.
  var hasUnreadRequest: Bool {
    guard let device else { return false }
    var descriptor = pollfd(fd: device, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&descriptor, 1, 0) > 0
  }

  private func withArguments<Result>(_ options: [String], _ body: (inout fuse_args) -> Result) -> Result {
    // libfuse skips the first argument, a program's name, and splits the others' value at commas.
    let list = options.map { $0.escapingCommas }.joined(separator: ",")
    let words = options.isEmpty ? ["fuse"] : ["fuse", "-o", list]
    var pointers = unsafe words.map { unsafe strdup($0) } + [nil]
    defer { unsafe pointers.forEach { unsafe free($0) } }
    return unsafe pointers.withUnsafeMutableBufferPointer { buffer in
      var arguments = unsafe fuse_args(argc: Int32(words.count), argv: buffer.baseAddress, allocated: 0)
      defer { unsafe fuse_opt_free_args(&arguments) }
      return unsafe body(&arguments)
    }
  }
}

extension String {
  fileprivate var escapingCommas: String {
    reduce(into: "") { text, character in
      if character == "," || character == "\\" { text.append("\\") }
      text.append(character)
    }
  }
}
