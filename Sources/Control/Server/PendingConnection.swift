import CSystem
import Glibc
import Model
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

  let descriptor: Int32
  /// By then the next message has to be there.
  private(set) var deadline: ContinuousClock.Instant
  /// nil: not identified.
  private(set) var peer: ControlPeer?
  private let process: Int32
  private var challenge: UInt64?
  private var reader: MessageReader
  private var isRefused = false
  private var isOwned = true

  /// In seconds: how long a message may take once a request is being served.
  private static let patience = 10

  /// Takes over a connection; nil: it is another user's.
  init?(_ descriptor: Int32, patience: Duration) {
    guard linux_peer(descriptor) == getuid() else {
      close(descriptor)
      return nil
    }
    self.descriptor = descriptor
    deadline = .now + patience
    process = linux_peer_process(descriptor)
    reader = MessageReader(.hello, from: process)
  }

  deinit {
    if isOwned { close(descriptor) }
  }

  var isLate: Bool { deadline <= .now }

  /// Reads what is there. - Throws: what `MessageReader.read` throws.
  func read() throws(StoreError) -> Step {
    if isRefused { return skip() }
    let result = Result { () throws(StoreError) in try reader.read(from: descriptor) }
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
    var bytes = [UInt8](repeating: 0, count: 4096)
    defer { wipe(&bytes) }
    // SAFETY: the buffer says how long it is.
    let count = unsafe bytes.withUnsafeMutableBytes {
      unsafe recv(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT))
    }
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR)) ? .line(nil) : .ended
  }

  private func wipe(_ bytes: inout [UInt8]) {
    // SAFETY: the buffer says how long it is.
    unsafe bytes.withUnsafeMutableBytes {
      if let start = $0.baseAddress { unsafe linux_explicit_bzero(start, $0.count) }
    }
  }

  /// Answers a client of Keyhole 0.1, in whose protocol the end of the connection ends the answer.
  func refuse(_ answer: [UInt8]) {
    isRefused = true
    _ = MessageChannel.send(answer, to: descriptor, 0)
    shutdown(descriptor, Int32(SHUT_WR))
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
    MessageChannel.send(message, 0, to: descriptor, 1)
  }

  /// Hands over the connection.
  func channel() -> MessageChannel {
    isOwned = false
    return .server(descriptor, challenge ?? 0, from: process, patience: Self.patience)
  }
}

/// Accepts connections, also when the process has no descriptor left: one is kept for that.
struct Acceptor: ~Copyable {
  /// How long nothing is accepted when not even that one is left.
  private static let pause = Duration.milliseconds(100)

  private let listener: Int32
  private var reserve: Int32
  private var pausedUntil: ContinuousClock.Instant?

  init(_ listener: Int32) {
    self.listener = listener
    reserve = Self.open()
  }

  deinit {
    if reserve >= 0 { close(reserve) }
  }

  private static func open() -> Int32 {
    // SAFETY: a variadic call without its variable part.
    unsafe Glibc.open("/dev/null", O_RDONLY | O_CLOEXEC)
  }

  /// The events for poll(2); none while nothing can be accepted.
  var entry: pollfd { pollfd(fd: isPaused ? -1 : listener, events: Int16(POLLIN), revents: 0) }

  /// When connections are accepted again; nil: they are.
  var resumesAt: ContinuousClock.Instant? { pausedUntil.flatMap { $0 > .now ? $0 : nil } }

  private var isPaused: Bool { resumesAt != nil }

  /// Every connection that waits.
  mutating func accept(patience: Duration) -> [PendingConnection] {
    guard !isPaused else { return [] }
    pausedUntil = nil
    if reserve < 0 { reserve = Self.open() }
    var accepted: [PendingConnection] = []
    while accepted.count < 64 {
      let descriptor = linux_accept(listener)
      if descriptor >= 0 {
        if let connection = PendingConnection(descriptor, patience: patience) { accepted.append(connection) }
      } else if errno == EMFILE || errno == ENFILE, reserve >= 0 {
        close(reserve)
        reserve = -1
      } else {
        if errno != EAGAIN, errno != EINTR, errno != ECONNABORTED { pausedUntil = .now + Self.pause }
        break
      }
    }
    return accepted
  }
}
