import Model
import Platform
import SecretMemory

/// Collects the bytes of one message from a socket, as they come, and not a byte of the next one.
struct MessageReader: ~Copyable {
  enum Progress: Equatable {
    case complete
    /// More bytes are needed, and none are there.
    case waiting
    /// The other side has closed the connection.
    case ended
  }

  private let limits: MessageLimits
  /// The only process whose bytes are taken; nil: any.
  private let sender: Int32?
  private(set) var head: [UInt8] = []
  private(set) var header: MessageHeader?
  private var body: [UInt8] = []
  private var secret: SecretBytes?

  init(_ limits: MessageLimits, from sender: Int32? = nil) {
    (self.limits, self.sender) = (limits, sender)
  }

  /// Takes what is there, without waiting.
  ///
  /// - Throws: `damaged` for what is no message, `accessDenied` where another process than `sender` has sent it,
  ///   `outOfMemory`.
  mutating func read(from socket: StreamSocket) throws(StoreError) -> Progress {
    while true {
      let missing = try missing()
      guard missing.count > 0 else { return .complete }
      let count =
        missing.isSecret
        ? try readSecret(missing.count, socket) : try readPlain(missing.count, socket)
      guard count != 0 else { return .ended }
      guard count > 0 else { return .waiting }
    }
  }

  /// The message; only after `complete`.
  mutating func take() throws(StoreError) -> Message {
    guard let header else { throw WireReader.unreadable }
    return Message(try ControlMessage(header.kind, body), length: body.count, secret: secret.take())
  }

  private mutating func missing() throws(StoreError) -> (count: Int, isSecret: Bool) {
    guard head.count == MessageHeader.length else { return (MessageHeader.length - head.count, false) }
    if header == nil { header = try MessageHeader(head, limits) }
    guard let header else { throw WireReader.unreadable }
    guard body.count == header.bodyLength else { return (header.bodyLength - body.count, false) }
    guard let length = header.secretLength else { return (0, false) }
    if secret == nil { secret = try Self.empty() }
    return (length - (secret?.count ?? 0), true)
  }

  private static func empty() throws(StoreError) -> SecretBytes {
    do { return try SecretBytes() } catch { throw .outOfMemory }
  }

  /// -1: nothing is there.
  private mutating func readPlain(_ count: Int, _ socket: StreamSocket) throws(StoreError) -> Int {
    var chunk = [UInt8](repeating: 0, count: min(count, 64 * 1024))
    var span = chunk.mutableSpan
    let received = try receive(into: &span, socket)
    guard received > 0 else { return received }
    if header == nil { head += chunk[..<received] } else { body += chunk[..<received] }
    return received
  }

  /// Memory is taken as bytes come: to announce much and send nothing costs nothing.
  private mutating func readSecret(_ count: Int, _ socket: StreamSocket) throws(StoreError) -> Int {
    guard var bytes = secret.take() else { return 0 }
    let before = bytes.count
    do { try bytes.resize(to: before + min(count, 64 * 1024)) } catch { throw .outOfMemory }
    var span = bytes.mutableSpan
    let received = try receive(into: &span, from: before, socket)
    do { try bytes.resize(to: before + max(received, 0)) } catch { throw .outOfMemory }
    secret = consume bytes
    return received
  }

  /// - Returns: how many bytes came; -1: nothing is there; 0: the other side is gone.
  /// - Throws: `accessDenied` where another process than `sender` has sent them.
  private func receive(
    into bytes: inout MutableSpan<UInt8>, from start: Int = 0, _ socket: StreamSocket
  ) throws(StoreError) -> Int {
    let received: (count: Int, sender: StreamSocket.Credentials)?
    do throws(Errno) { received = try socket.receive(into: &bytes, from: start) } catch { return 0 }
    guard let received else { return -1 }
    guard received.count > 0, let sender else { return received.count }
    guard received.sender.process == sender, received.sender.user == User.real else {
      throw .accessDenied(reason: "the connection is used by another process than the one that made it")
    }
    return received.count
  }
}
