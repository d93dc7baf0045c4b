import ClusterRecords
import EtcdClient
import Model
import SecretMemory
import VaultRecords

/// An item while it is changed: its entry, and what is to be stored with it.
struct ItemWriting {
  let id: ItemKey
  private(set) var entry: ItemEntry
  private let session: ClusterSession
  private var conditions: [KeyCondition] = []
  private var operations: [KeyOperation] = []

  init(_ id: ItemKey, _ entry: ItemEntry, _ session: ClusterSession) {
    (self.id, self.entry, self.session) = (id, entry, session)
  }

  /// The transaction.
  var plan: CollectionPlan<KeychainEntry> {
    var plan = CollectionPlan<KeychainEntry>([CollectionEdit(id, .item(entry))])
    (plan.conditions, plan.operations) = (conditions, operations)
    return plan
  }

  /// Changes the item. Where class, flags or rules become other ones, the keys of its secrets are sealed again.
  ///
  /// `replacesAll`: all secrets are replaced afterwards, so that nothing has to be opened. - Throws: `locked`, `damaged`.
  mutating func set(_ item: Item, replacesAll: Bool = false) throws(StoreError) {
    let old = entry.record
    entry.record.item = item
    entry.record.settleOtpauth()
    let rulesDiffer =
      old.item.accessibility != item.accessibility || old.item.access != item.access
      || old.item.programs != item.programs
    guard rulesDiffer, !replacesAll else { return }
    for (part, sealed) in entry.valueKeys {
      let key = try SecretSeal.openKey(sealed, of: id, part: part, old, session.keys)
      entry.valueKeys[part] = try SecretSeal.seal(key: key, of: id, part: part, entry.record, session.keys)
    }
  }

  /// Replaces the item's secret. - Throws: `tooLarge`, `locked`, `outOfMemory`.
  mutating func put(_ secret: borrowing SecretBytes, part: UInt8) throws(StoreError) {
    let before = entry.version(ofPart: part) ?? 0
    try seal(secret, part, version: before + 1)
    entry.record.secretRevision = before + 1
    entry.record.item.size = secret.count
  }

  /// Gives the item an `otpauth:` URI. - Throws: as `put`.
  mutating func putOtpauth(_ secret: borrowing SecretBytes, _ further: FurtherSecret) throws(StoreError) {
    let part = ItemRecord.FurtherSecret.otpauth
    let before = entry.version(ofPart: part) ?? 0
    try seal(secret, part, version: before + 1)
    let stored = FurtherSecret(size: secret.count, modified: further.modified)
    entry.record.setOtpauth(stored, revision: before + 1)
    entry.record.item.otpauth = stored
  }

  /// Takes the `otpauth:` URI away.
  mutating func removeOtpauth() {
    let part = ItemRecord.FurtherSecret.otpauth
    operations.append(.delete(KeyRange(key: session.paths.secret(id, part: part))))
    entry.valueKeys[part] = nil
    entry.record.setOtpauth(nil, revision: 0)
    entry.record.item.otpauth = nil
  }

  private mutating func seal(
    _ secret: borrowing SecretBytes, _ part: UInt8, version: UInt64
  ) throws(StoreError) {
    let key = session.paths.secret(id, part: part)
    let valueKey = try SecretSeal.makeKey()
    let sealed = try SecretSeal.seal(
      secret, at: RecordPlace(.secret, key, version: version), session.keys.store, key: valueKey)
    entry.valueKeys[part] = try SecretSeal.seal(key: valueKey, of: id, part: part, entry.record, session.keys)
    conditions.append(.version(key: key, equals: Int64(clamping: version) - 1))
    operations.append(.put(key: key, value: sealed, lease: 0))
  }
}
