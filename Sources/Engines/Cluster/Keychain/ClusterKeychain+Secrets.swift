import ClusterRecords
import EtcdClient
import Model
import SecretMemory
import VaultRecords

extension ClusterKeychain {
  /// How often a secret is read again that was changed while it was read.
  private static let attempts = 8

  /// Reads a secret in one transaction with the head that answers for its item. - Throws: as the protocol.
  func secret(of item: ItemID, part: UInt8) throws(StoreError) -> SecretBytes {
    try session.limited { () throws(StoreError) in try readSecret(of: item, part: part) }
  }

  private func readSecret(of item: ItemID, part: UInt8) throws(StoreError) -> SecretBytes {
    try start()
    guard let id = ItemKey(item) else { throw .notFound }
    let key = session.paths.secret(id, part: part)
    for _ in 0..<Self.attempts {
      let (head, stored) = try read(key)
      if let distrust = collection.distrust { throw distrust }
      guard let modified = try collection.lookAtCopy({ $0.modified }) else { throw .locked }
      guard let head, head.modified == modified else {
        // The copy is behind, or ahead of what was read.
        if let head, head.modified > modified {
          try collection.waitFor(head.modified)
        } else {
          try collection.load()
        }
        continue
      }
      let (isSame, entry) = try collection.withCopy { ($0.modified == modified, $0.items.entries[id]) }
      guard isSame else { continue }
      guard let entry, let version = entry.version(ofPart: part) else { throw .notFound }
      return try open(stored, RecordPlace(.secret, key, version: version), entry, id, part)
    }
    throw .unreachable(reason: "other clients change the keychain all the time")
  }

  private func read(_ key: [UInt8]) throws(StoreError) -> (head: KeyValue?, stored: KeyValue?) {
    do throws(ClusterError) {
      let values = try session.read([KeyRange(key: collection.place.head), KeyRange(key: key)]).values
      return (values[0].first, values[1].first)
    } catch { throw StoreError(error) }
  }

  private func open(
    _ stored: KeyValue?, _ place: RecordPlace, _ entry: ItemEntry, _ id: ItemKey, _ part: UInt8
  ) throws(StoreError) -> SecretBytes {
    guard let sealedKey = entry.valueKeys[part] else { throw .damaged(what: "a secret") }
    let key = try SecretSeal.openKey(sealedKey, of: id, part: part, entry.record, session.keys)
    guard let stored, UInt64(clamping: stored.version) == place.version else {
      throw .damaged(what: "a secret")
    }
    return try SecretSeal.open(stored.value, at: place, session.keys.store, key: key)
  }
}
