import Model
package import SecretMemory
import Synchronization

/// A message as it was received: what it says, and the secret that belongs to it.
package final class Message: Sendable {
  package let content: ControlMessage
  /// How long its body was, in bytes.
  let length: Int
  private let secret: Mutex<SecretBytes?>

  init(_ content: ControlMessage, length: Int, secret: consuming SecretBytes? = nil) {
    (self.content, self.length) = (content, length)
    self.secret = Mutex(secret)
  }

  /// The secret, once; nil: there is none.
  package func takeSecret() -> SecretBytes? {
    secret.withLock { $0.take() }
  }
}

/// The header of a message: its kind, the lengths of the body and of the secret, and the number that the
/// server's `hello` gave to this connection.
struct MessageHeader: Equatable {
  static let length = 20
  private static let noSecret = UInt32.max

  var kind: ControlMessage.Kind
  /// In bytes.
  var bodyLength: Int
  /// In bytes; nil: there is no secret.
  var secretLength: Int?
  var challenge: UInt64

  var bytes: [UInt8] {
    var writer = WireWriter()
    writer.put(kind.rawValue)
    // Room for what a later version needs; 0 until then.
    for _ in 0..<3 { writer.put(0 as UInt8) }
    writer.put(UInt32(clamping: bodyLength))
    writer.put(secretLength.map { UInt32(clamping: $0) } ?? Self.noSecret)
    writer.put(challenge)
    return writer.bytes
  }

  init(_ message: ControlMessage, bodyLength: Int, secretLength: Int?, challenge: UInt64) {
    kind = message.kind
    (self.bodyLength, self.secretLength, self.challenge) = (bodyLength, secretLength, challenge)
  }

  /// - Throws: `WireReader.unreadable`, also for more than `limits` allow.
  init(_ bytes: [UInt8], _ limits: MessageLimits) throws(StoreError) {
    var reader = WireReader(bytes)
    guard let kind = ControlMessage.Kind(rawValue: try reader.integer()) else { throw WireReader.unreadable }
    for _ in 0..<3 { _ = try reader.integer(UInt8.self) }
    let (bodyLength, secretLength) = (try reader.integer(UInt32.self), try reader.integer(UInt32.self))
    self.kind = kind
    self.bodyLength = Int(bodyLength)
    self.secretLength = secretLength == Self.noSecret ? nil : Int(secretLength)
    challenge = try reader.integer()
    guard self.bodyLength <= limits.body, self.secretLength ?? 0 <= limits.secret else {
      throw WireReader.unreadable
    }
  }
}

/// How long a message may be, in bytes.
struct MessageLimits {
  var body: Int
  var secret: Int

  /// Greetings are short, in every version.
  static let hello = MessageLimits(body: 256, secret: 0)
  /// Of a process that has not asked for anything yet.
  static let request = MessageLimits(body: 4 << 20, secret: 2 << 20)
  /// Items travel in messages of no more than a part of this.
  static let any = MessageLimits(body: 64 << 20, secret: 2 << 20)
}
