import CSystem
import Glibc
package import Model
package import SecretMemory

/// A connection on which both sides have said `hello`, and send messages from now on.
package final class MessageChannel: Sendable {
  private let descriptor: Int32
  /// The number that each message of the client repeats; the server's hold 0.
  private let challenge: (sent: UInt64, expected: UInt64)
  /// The only process whose messages are taken; nil: any.
  private let sender: Int32?
  /// How long the other side may take for a message, in seconds.
  private let patience: Int

  /// Takes over a connection.
  private init(_ descriptor: Int32, _ challenge: (UInt64, UInt64), from sender: Int32?, patience: Int) {
    (self.descriptor, self.challenge, self.sender) = (descriptor, challenge, sender)
    self.patience = patience
  }

  /// The client's side.
  static func client(_ descriptor: Int32, _ challenge: UInt64, patience: Int) -> MessageChannel {
    MessageChannel(descriptor, (challenge, 0), from: nil, patience: patience)
  }

  /// The server's side.
  static func server(
    _ descriptor: Int32, _ challenge: UInt64, from sender: Int32, patience: Int
  ) -> MessageChannel {
    MessageChannel(descriptor, (0, challenge), from: sender, patience: patience)
  }

  deinit {
    close(descriptor)
  }

  /// Ends the connection, also for a thread that waits for a message.
  package func shut() {
    shutdown(descriptor, Int32(SHUT_RDWR))
  }
}

extension MessageChannel {
  /// False: the other side is gone, or takes nothing for too long.
  @discardableResult
  package func send(_ message: ControlMessage) -> Bool {
    Self.send(message, challenge.sent, to: descriptor, patience)
  }

  @discardableResult
  package func send(_ message: ControlMessage, secret: borrowing SecretBytes) -> Bool {
    let body = message.body
    let header = MessageHeader(
      message, bodyLength: body.count, secretLength: secret.count, challenge: challenge.sent)
    guard Self.send(header.bytes + body, to: descriptor, patience) else { return false }
    return unsafe secret.withUnsafeBytes { unsafe Self.send($0, to: descriptor, patience) }
  }

  static func send(
    _ message: ControlMessage, _ challenge: UInt64, to descriptor: Int32, _ patience: Int
  ) -> Bool {
    let body = message.body
    let header = MessageHeader(message, bodyLength: body.count, secretLength: nil, challenge: challenge)
    return send(header.bytes + body, to: descriptor, patience)
  }

  static func send(_ bytes: [UInt8], to descriptor: Int32, _ patience: Int) -> Bool {
    unsafe bytes.withUnsafeBytes { unsafe send($0, to: descriptor, patience) }
  }

  private static func send(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, _ patience: Int) -> Bool {
    let deadline = ContinuousClock.now + .seconds(patience)
    var rest = unsafe bytes[...]
    while unsafe !rest.isEmpty {
      let piece = unsafe UnsafeRawBufferPointer(rebasing: rest)
      // SAFETY: the slice says how long it is. MSG_NOSIGNAL: the other side may be gone.
      let count = unsafe Glibc.send(
        descriptor, piece.baseAddress, piece.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN {
        guard wait(for: descriptor, POLLOUT, until: deadline) else { return false }
        continue
      }
      guard count > 0 else { return false }
      unsafe rest = unsafe rest.dropFirst(count)
    }
    return true
  }

  /// False: it is not ready by then.
  static func wait(for descriptor: Int32, _ events: Int32, until deadline: ContinuousClock.Instant) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    while true {
      let left = (deadline - .now) / .milliseconds(1)
      guard left > 0 else { return false }
      // SAFETY: one live structure.
      let count = unsafe poll(&entry, 1, Int32(clamping: Int(min(left.rounded(.up), 1e9))))
      if count < 0, errno == EINTR { continue }
      return count > 0
    }
  }
}

extension MessageChannel {
  static let noAnswer = StoreError.unreachable(reason: "the mount's process does not answer")
  static let ended = StoreError.unreachable(reason: "the mount's process has ended the connection")

  /// The next message.
  ///
  /// - Throws: `unreachable` where none comes in time, or the other side is gone; what `MessageReader` throws.
  package func receive() throws(StoreError) -> Message {
    try Self.receive(from: descriptor, .any, sender, challenge.expected, within: patience)
  }

  static func receive(
    from descriptor: Int32, _ limits: MessageLimits, _ sender: Int32?, _ challenge: UInt64?,
    within seconds: Int
  ) throws(StoreError) -> Message {
    let deadline = ContinuousClock.now + .seconds(seconds)
    var reader = MessageReader(limits, from: sender)
    while true {
      switch try reader.read(from: descriptor) {
      case .complete:
        guard challenge == nil || reader.header?.challenge == challenge else { throw WireReader.unreadable }
        return try reader.take()
      case .ended: throw ended
      case .waiting: guard wait(for: descriptor, POLLIN, until: deadline) else { throw noAnswer }
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

  /// Returns when something comes, the pipe is written to, or after so many milliseconds; -1: never.
  func wait(or pipe: WakePipe? = nil, milliseconds: Int32 = -1) -> Event {
    var watched = [
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: pipe?.readEnd ?? -1, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      // SAFETY: the array says how long it is.
      let count = unsafe poll(&watched, 2, milliseconds)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return .late }
      return watched[1].revents != 0 ? .wake : .input
    }
  }
}
