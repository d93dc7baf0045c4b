import CSystem
import Glibc
import Model
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
  mutating func read(from descriptor: Int32) throws(StoreError) -> Progress {
    while true {
      let missing = try missing()
      guard missing.count > 0 else { return .complete }
      let count =
        missing.isSecret
        ? try readSecret(missing.count, descriptor) : try readPlain(missing.count, descriptor)
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
  private mutating func readPlain(_ count: Int, _ descriptor: Int32) throws(StoreError) -> Int {
    var chunk = [UInt8](repeating: 0, count: min(count, 64 * 1024))
    // SAFETY: the buffer says how long it is.
    let received = try unsafe check(chunk.withUnsafeMutableBytes { unsafe receive($0, descriptor) })
    guard received > 0 else { return received }
    if header == nil { head += chunk[..<received] } else { body += chunk[..<received] }
    return received
  }

  /// Memory is taken as bytes come: to announce much and send nothing costs nothing.
  private mutating func readSecret(_ count: Int, _ descriptor: Int32) throws(StoreError) -> Int {
    guard var bytes = secret.take() else { return 0 }
    let before = bytes.count
    do { try bytes.resize(to: before + min(count, 64 * 1024)) } catch { throw .outOfMemory }
    let result = unsafe bytes.withUnsafeMutableBytes { bytes in
      // SAFETY: the bytes that were added.
      unsafe receive(UnsafeMutableRawBufferPointer(rebasing: bytes[before...]), descriptor)
    }
    let received = try check(result)
    do { try bytes.resize(to: before + max(received, 0)) } catch { throw .outOfMemory }
    secret = consume bytes
    return received
  }

  private func check(_ result: (count: Int, isForeign: Bool)) throws(StoreError) -> Int {
    guard !result.isForeign else {
      throw .accessDenied(reason: "the connection is used by another process than the one that made it")
    }
    return result.count
  }

  /// recvmsg(2); a count of -1: nothing is there. `isForeign`: another process than `sender` has sent it.
  private func receive(
    _ bytes: UnsafeMutableRawBufferPointer, _ descriptor: Int32
  ) -> (count: Int, isForeign: Bool) {
    while true {
      var other = linux_sender()
      // SAFETY: the buffer says how long it is.
      let count = unsafe linux_receive_from(descriptor, bytes.baseAddress, bytes.count, &other)
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { return (-1, false) }
      guard count > 0, let sender else { return (max(count, 0), false) }
      return (count, other.process != sender || other.user != getuid())
    }
  }
}
