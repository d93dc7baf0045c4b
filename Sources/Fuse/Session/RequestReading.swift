/// The reading of the session's requests, as an operation that is about to wait sees it.
///
/// To wait on the thread that has read the request costs less than to wake another one. But no other request may wait for it: those that are not read yet would,
/// for some milliseconds.
public struct RequestReading: Sendable {
  private let connection: Connection

  init(_ connection: Connection) { self.connection = connection }

  /// Whether the kernel has further requests of this session that no thread has read yet: poll(2) of the device.
  public var hasUnreadRequest: Bool { connection.hasUnreadRequest }

  /// Has the spare thread read all further requests, so that the calling thread may wait inside its request. Returns false where it has not read it, or there
  /// is no spare thread.
  public func handOver() -> Bool { connection.workers?.handOver() ?? false }
}
