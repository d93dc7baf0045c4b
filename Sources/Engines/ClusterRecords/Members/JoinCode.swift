import Crypto
package import Model
import Platform
import SecretMemory
import VaultRecords

/// The request of a device that wants to belong to a store.
package struct JoinRequest: Hashable, Sendable {
  package var device: MemberKeys
  /// How many entries the list of members had when the request was made.
  package var position: UInt64

  package init(device: MemberKeys, position: UInt64) {
    (self.device, self.position) = (device, position)
  }

  package var encoded: [UInt8] {
    var writer = FieldWriter(capacity: 1400)
    writer.put(1, position)
    writer.put(2, device.encoded)
    return writer.bytes
  }

  /// - Throws: `damaged`.
  package init(_ bytes: Span<UInt8>) throws(StoreError) {
    var (position, device): (UInt64?, MemberKeys?) = (nil, nil)
    var reader = FieldReader(bytes)
    while let field = try reader.next() {
      switch field.tag {
      case 1: position = try field.integer(UInt64.self)
      case 2: device = try MemberKeys(field.bytes)
      default: throw .damaged(what: "a request to join")
      }
    }
    self.init(device: try device.orDamaged(), position: try position.orDamaged())
  }
}

/// One of the two codes that people type when a device joins: each covers the device's keys, what the store is known by, and all who
/// belonged to it when the request was made.
package struct JoinCode {
  /// The device that shows a code. Each is typed on the other one, which does not take its own.
  package enum Side: String, Sendable {
    case joining = "join"
    case approving = "approve"
  }

  private let bytes: [UInt8]

  /// `log`: the list of members up to the position of the request.
  package init(_ device: MemberKeys, _ log: MemberLog, of side: Side) {
    var writer = FieldWriter(capacity: 1500)
    writer.put(raw: "\(ClusterFormat.prefix)/\(side.rawValue)".utf8)
    writer.put(1, log.store)
    writer.put(2, log.identity)
    writer.put(3, log.digest)
    writer.put(4, device.encoded)
    // Both sides' contents may be an attacker's: fewer bits would be found by trying.
    bytes = Array(SHA256.hash(data: writer.bytes).prefix(16))
  }

  /// 28 symbols in groups, as a recovery code is written. - Throws: `outOfMemory`.
  package func text() throws(StoreError) -> String {
    let code = try RecoveryCode.text(of: SlotSecret(.recoveryCode, secret()))
    return String(decoding: code.unprotected, as: UTF8.self)
  }

  /// Whether a person has typed this code. - Throws: `invalidValue` for a typing error, `outOfMemory`.
  package func isTyped(_ text: String) throws(StoreError) -> Bool {
    let typed = try RecoveryCode.parse(Array(text.utf8).span)
    let own = try secret()
    return typed.bytes == own
  }

  private func secret() throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(copying: bytes.span) } catch { throw .outOfMemory }
  }
}
