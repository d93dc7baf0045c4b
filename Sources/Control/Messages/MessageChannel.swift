package import Model
import Platform
package import SecretMemory

/// A connection on which both sides have said `hello`, and send messages from now on.
package final class MessageChannel: Sendable {
  private let socket: StreamSocket
  /// The number that each message of the client repeats; the server's hold 0.
  private let challenge: (sent: UInt64, expected: UInt64)
  /// The only process whose messages are taken; nil: any.
  private let sender: Int32?
  /// How long the other side may take for a message, in seconds.
  private let patience: Int

  private init(_ socket: StreamSocket, _ challenge: (UInt64, UInt64), from sender: Int32?, patience: Int) {
    (self.socket, self.challenge, self.sender) = (socket, challenge, sender)
    self.patience = patience
  }

  /// The client's side.
  static func client(_ socket: StreamSocket, _ challenge: UInt64, patience: Int) -> MessageChannel {
    MessageChannel(socket, (challenge, 0), from: nil, patience: patience)
  }

  /// The server's side.
  static func server(
    _ socket: StreamSocket, _ challenge: UInt64, from sender: Int32, patience: Int
  ) -> MessageChannel {
    MessageChannel(socket, (0, challenge), from: sender, patience: patience)
  }

  /// Ends the connection, also for a thread that waits for a message.
  package func shut() {
    socket.shutDown()
  }
}

extension MessageChannel {
  /// False: the other side is gone, or takes nothing for too long.
  @discardableResult
  package func send(_ message: ControlMessage) -> Bool {
    Self.send(message, challenge.sent, to: socket, patience)
  }

  @discardableResult
  package func send(_ message: ControlMessage, secret: borrowing SecretBytes) -> Bool {
    let body = message.body
    let header = MessageHeader(
      message, bodyLength: body.count, secretLength: secret.count, challenge: challenge.sent)
    return Self.send((header.bytes + body).span, to: socket, patience)
      && Self.send(secret.span, to: socket, patience)
  }

  static func send(
    _ message: ControlMessage, _ challenge: UInt64, to socket: StreamSocket, _ patience: Int
  ) -> Bool {
    let body = message.body
    let header = MessageHeader(message, bodyLength: body.count, secretLength: nil, challenge: challenge)
    return send((header.bytes + body).span, to: socket, patience)
  }

  /// False: the other side is gone, or does not take all within so many seconds.
  static func send(_ bytes: Span<UInt8>, to socket: StreamSocket, _ patience: Int) -> Bool {
    (try? socket.send(bytes, until: .now + .seconds(patience))) != nil
  }
}

extension MessageChannel {
  static let noAnswer = StoreError.unreachable(reason: "the mount's process does not answer")
  static let ended = StoreError.unreachable(reason: "the mount's process has ended the connection")

  /// The next message.
  ///
  /// - Throws: `unreachable` where none comes in time, or the other side is gone; what `MessageReader` throws.
  package func receive() throws(StoreError) -> Message {
    try Self.receive(from: socket, .any, sender, challenge.expected, within: patience)
  }

  static func receive(
    from socket: StreamSocket, _ limits: MessageLimits, _ sender: Int32?, _ challenge: UInt64?,
    within seconds: Int
  ) throws(StoreError) -> Message {
    let deadline = ContinuousClock.now + .seconds(seconds)
    var reader = MessageReader(limits, from: sender)
    while true {
      switch try reader.read(from: socket) {
      case .complete:
        guard challenge == nil || reader.header?.challenge == challenge else { throw WireReader.unreadable }
        return try reader.take()
      case .ended: throw ended
      case .waiting: guard (try? socket.wait(until: deadline)) == true else { throw noAnswer }
      }
    }
  }

  /// The event that ended a `wait`.
  enum Event {
    /// A message, or the end of the other side.
    case input
    case wake
    case late
  }

  /// Returns when something comes, the pipe is written to, or at that moment; nil: there is no limit.
  func wait(or pipe: WakePipe? = nil, until deadline: ContinuousClock.Instant? = nil) -> Event {
    let entries = [Poll.Entry(socket.number), Poll.Entry(pipe?.readEnd)]
    guard let ready = try? Poll.wait(for: entries, until: deadline), ready != [false, false] else {
      return .late
    }
    return ready[1] ? .wake : .input
  }
}
