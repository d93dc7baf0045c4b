import Model
import Platform
import SecretMemory
import Store

/// A connection that has not sent a complete request yet. One thread after the other uses it, never two at once.
final class PendingConnection: @unchecked Sendable {
  enum Step {
    case waiting
    case ended
    case greeting(version: UInt32, identified: Bool)
    case request(Message)
    /// A client of Keyhole 0.1; nil: it was answered, and what else it sends is dropped.
    case line([UInt8]?)
  }

  let socket: StreamSocket
  /// By then the next message has to be there.
  private(set) var deadline: ContinuousClock.Instant
  /// nil: not identified.
  private(set) var peer: ControlPeer?
  private let process: Int32
  private var challenge: UInt64?
  private var reader: MessageReader
  private var isRefused = false

  /// In seconds: how long a message may take once a request is being served.
  private static let patience = 10

  /// nil: it is another user's.
  init?(_ socket: StreamSocket, patience: Duration) {
    let peer = socket.peer
    guard peer.user == User.real else { return nil }
    self.socket = socket
    deadline = .now + patience
    process = peer.process
    reader = MessageReader(.hello, from: process)
  }

  var isLate: Bool { deadline <= .now }

  /// Reads what is there. - Throws: what `MessageReader.read` throws.
  func read() throws(StoreError) -> Step {
    if isRefused { return skip() }
    let result = Result { () throws(StoreError) in try reader.read(from: socket) }
    if challenge == nil, let first = reader.head.first, LineProtocol.isBeginning(first) {
      guard let answer = LineProtocol.answer(to: reader.head) else { return .waiting }
      return .line(answer)
    }
    switch try result.get() {
    case .waiting: return .waiting
    case .ended: return .ended
    case .complete: return try step(reader.header?.challenge, reader.take())
    }
  }

  private func step(_ repeated: UInt64?, _ message: Message) throws(StoreError) -> Step {
    if let challenge {
      guard repeated == challenge else { throw WireReader.unreadable }
      return .request(message)
    }
    switch message.content {
    case .hello(let version, _): return .greeting(version: version, identified: true)
    case .helloUnidentified(let version): return .greeting(version: version, identified: false)
    default: throw WireReader.unreadable
    }
  }

  /// Reads and drops, so that the other side can send on, until it has read the answer.
  private func skip() -> Step {
    // Its bytes may be those of a passphrase.
    guard var bytes = try? SecretBytes(count: 4096) else { return .ended }
    var span = bytes.mutableSpan
    do throws(Errno) {
      guard let received = try socket.receive(into: &span) else { return .line(nil) }
      return received.count > 0 ? .line(nil) : .ended
    } catch {
      return .ended
    }
  }

  /// Answers a client of Keyhole 0.1, in whose protocol the end of the connection ends the answer.
  func refuse(_ answer: [UInt8]) {
    isRefused = true
    _ = MessageChannel.send(answer.span, to: socket, 0)
    socket.endSending()
  }

  /// Greets the other side, which may send its request now; false: it is gone.
  func welcome(_ peer: ControlPeer?, patience: Duration) -> Bool {
    let challenge = UInt64.random(in: 1 ... .max)
    (self.peer, self.challenge) = (peer, challenge)
    reader = MessageReader(.request, from: process)
    deadline = .now + patience
    return send(.hello(version: ControlMessage.version, challenge: challenge))
  }

  /// False: the other side is gone. What is sent here always fits into the socket's buffer.
  @discardableResult
  func send(_ message: ControlMessage) -> Bool {
    MessageChannel.send(message, 0, to: socket, 1)
  }

  /// The connection from the first request on.
  func channel() -> MessageChannel {
    .server(socket, challenge ?? 0, from: process, patience: Self.patience)
  }
}
