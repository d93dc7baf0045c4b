import Synchronization

/// The destination of a request: the file system, and the connection for the reply.
///
/// ``Session`` holds it, and requests arrive only while a session runs, so a request need not hold it.
final class Host: Sendable {
  let fileSystem: any FileSystem
  let connection = Connection()
  private let ready = Mutex<(@Sendable () -> Void)?>(nil)

  init(_ fileSystem: any FileSystem, options: [String]) throws(SessionError) {
    self.fileSystem = fileSystem
    try connection.open(options: options, for: self)
  }
}

extension Host {
  /// Has `action` called once when the kernel begins to ask.
  func whenReady(_ action: (@Sendable () -> Void)?) {
    ready.withLock { $0 = action }
  }

  func becameReady() {
    let action = ready.withLock { $0.take() }
    action?()
  }
}
