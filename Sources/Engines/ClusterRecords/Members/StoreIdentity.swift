package import Crypto
package import Model
import Platform
import SecretMemory
package import VaultRecords

/// The name of a store in an epoch: the public half of an Ed25519 key that is derived from the master key. There is no way to find
/// another master key with the same one.
package enum StoreIdentity {
  /// 32 bytes. - Throws: `damaged`.
  package static func of(_ master: SymmetricKey, _ store: ItemKey) throws(StoreError) -> [UInt8] {
    let seed = ClusterDerivation.key(master, store, "identity")
    do {
      let key = try seed.withBytes {
        try $0.withBorrowedData { try Curve25519.Signing.PrivateKey(rawRepresentation: $0) }
      }
      return Array(key.publicKey.rawRepresentation)
    } catch { throw StoreError(cluster: error) }
  }
}

/// The slot of a member: the master key of an epoch, sealed to it.
package enum MemberSlot {
  private static func binding(
    _ member: ItemKey, _ store: ItemKey, epoch: UInt32, identity: [UInt8]
  ) -> [UInt8] {
    var writer = FieldWriter(capacity: 128)
    writer.put(raw: ClusterFormat.prefix.utf8)
    writer.put(1, store)
    writer.put(2, RecordKind.slot.rawValue)
    writer.put(3, member)
    writer.put(5, epoch)
    writer.put(6, identity)
    return writer.bytes
  }

  /// - Throws: `damaged`.
  package static func seal(
    _ master: SymmetricKey, to member: MemberKeys, _ store: ItemKey, epoch: UInt32
  ) throws(StoreError) -> [UInt8] {
    let identity = try StoreIdentity.of(master, store)
    var writer = FieldWriter(capacity: 1300)
    writer.put(raw: ClusterFormat.version)
    writer.put(raw: epoch)
    writer.put(
      raw: try member.seal(master, boundTo: binding(member.id, store, epoch: epoch, identity: identity)))
    return writer.bytes
  }

  /// The master key, which is the one that the list of members names. - Throws: `damaged`.
  package static func open(
    _ slot: [UInt8], _ member: MemberSecret, _ log: MemberLog
  ) throws(StoreError) -> SymmetricKey {
    var reader = FieldReader(slot.span)
    guard try reader.integer(UInt8.self) == ClusterFormat.version,
      try reader.integer(UInt32.self) == log.epoch
    else { throw .damaged(what: "the slot of a device") }
    let binding = binding(member.id, log.store, epoch: log.epoch, identity: log.identity)
    let master = try member.open(reader.remainder.array, boundTo: binding)
    guard try StoreIdentity.of(master, log.store) == log.identity else {
      throw .damaged(what: "the slot of a device")
    }
    return master
  }
}
