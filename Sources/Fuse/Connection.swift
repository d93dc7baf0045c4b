import CFuse
import Glibc
import Synchronization

/// libfuse's session, alive as long as anybody may still answer through it.
///
/// A reply that was parked can be answered after the unmount, and `fuse_reply_…` reads the session. So each owed reply
/// holds this object, and the session is destroyed with the last of them.
///
/// @unchecked: the pointer is written once, before any other thread can know of the object; libfuse locks the rest.
@safe final class Connection: @unchecked Sendable {
  let fileSystem: any FileSystem
  private(set) var session: OpaquePointer?
  private let ready = Mutex<(@Sendable () -> Void)?>(nil)

  init(_ fileSystem: any FileSystem, options: [String]) throws(SessionError) {
    self.fileSystem = fileSystem
    unsafe session = try newSession(options)
  }

  deinit {
    // SAFETY: nobody holds the connection any more, so no request, no notifier and no loop uses the session.
    if let session = unsafe session { unsafe fuse_session_destroy(session) }
  }
}

extension Connection {
  /// The connection that a request came by.
  static func of(_ request: OpaquePointer) -> Unmanaged<Connection> {
    // SAFETY: the user data is the connection itself, which the running loop and each owed reply keep alive.
    unsafe Unmanaged<Connection>.fromOpaque(unsafe fuse_req_userdata(request))
  }

  /// Says once that the kernel has begun to ask.
  func whenReady(_ action: (@Sendable () -> Void)?) {
    ready.withLock { $0 = action }
  }

  func becameReady() {
    let action = ready.withLock { $0.take() }
    action?()
  }
}

extension Connection {
  private func newSession(_ options: [String]) throws(SessionError) -> OpaquePointer {
    var operations = kernelOperations
    let (session, messages) = unsafe Log.capture {
      // SAFETY: libfuse copies the table and the arguments; the connection outlives the session.
      unsafe withArguments(options) { arguments in
        unsafe fuse_session_new(
          &arguments, &operations, MemoryLayout<fuse_lowlevel_ops>.size,
          Unmanaged.passUnretained(self).toOpaque())
      }
    }
    guard let session = unsafe session else {
      throw SessionError(.create, messages: messages, errno: .EINVAL)
    }
    return unsafe session
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
