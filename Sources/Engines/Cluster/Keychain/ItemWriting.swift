import ClusterRecords
import EtcdClient
import Model
import SecretMemory
import Store
import VaultRecords

/// An item while it is changed: its entry, and what is to be stored with it.
struct ItemWriting {
  let id: ItemKey
  private(set) var entry: ItemEntry
  /// It becomes what a version of it says.
  var isRestoring = false
  /// The item before; nil: it is new.
  private let old: ItemEntry?
  private let session: ClusterSession
  /// The version that the head of the items gets with the change.
  private let number: UInt64
  /// When the item as it is now is replaced.
  private let end: Timestamp
  private var conditions: [KeyCondition] = []
  private var operations: [KeyOperation] = []

  /// `old`: nil for an item that is new.
  init(
    _ id: ItemKey, _ old: ItemEntry?, _ entry: ItemEntry, on items: VerifiedItems, _ session: ClusterSession
  ) {
    (self.id, self.old, self.entry, self.session) = (id, old, entry, session)
    number = items.version + 1
    end = old.map { items.end(of: $0, others: session.pruning.latestOther) } ?? .now
  }

  /// The transaction. What the item was is kept as `retention` says; nil: not, and what is kept stays.
  ///
  /// `changes`: those of the secrets; nil: nothing is kept of this change. - Throws: `locked`, `damaged`, `tooLarge`.
  func plan(
    _ changes: VersionChanges?, _ retention: HistoryRetention?
  ) throws(StoreError) -> ItemsPlan {
    var plan = ItemsPlan([try change(changes, retention)])
    (plan.conditions, plan.operations) = (conditions, operations)
    return plan
  }

  /// The change of the item alone. - Throws: as `plan`.
  func change(
    _ changes: VersionChanges?, _ retention: HistoryRetention?
  ) throws(StoreError) -> ItemEntryChange {
    var change = ItemEntryChange(id, .set(entry, replacesVersions: false))
    guard let old else { return change }
    let item = entry.record.item
    if let retention, item.identity.hasVersions {
      let own = item.retention(retention)
      change.limit = .init(own, at: session.pruning.time)
      let changes = changes?.union(item.changes(since: old.record.item))
      if own.keepsAny, let changes, old.isVersion(changes, isRestoring: isRestoring) {
        change.kept = .init(number: number, time: end, changes: changes.rawValue)
      }
    }
    let isStricter = old.record.item.accessibility.survivesLock && !item.accessibility.survivesLock
    guard isStricter else { return change }
    // The states that are kept are sealed as strictly as the item.
    guard var whole = try change.entry(after: old) else { return change }
    let keys = session.keys
    let accessibility = item.accessibility
    try whole.changeStates(of: id) { (state) throws(StoreError) in
      let former = state.record
      guard former.item.accessibility != former.item.accessibility.stricter(accessibility) else { return }
      state.record.item.accessibility = former.item.accessibility.stricter(accessibility)
      try state.resealKeys(of: id, from: former, keys)
    }
    return ItemEntryChange(id, .set(whole, replacesVersions: true))
  }

  /// Changes the item. Where class, flags or rules become other ones, the keys of its secrets are sealed again.
  ///
  /// `replacesAll`: all secrets are replaced afterwards, so that nothing has to be opened. - Throws: `locked`, `damaged`.
  mutating func set(_ item: Item, replacesAll: Bool = false) throws(StoreError) {
    let former = entry.record
    entry.record.item = item
    entry.record.settleOtpauth()
    guard !former.item.hasSameAccess(as: item), !replacesAll else { return }
    try entry.resealKeys(of: id, from: former, session.keys)
  }

  /// Makes the item, with these attributes, have the secrets of a state that it had. - Throws: `locked`, `damaged`.
  mutating func restore(
    _ state: ItemEntry, as item: Item, keepingOtpauth: Bool
  ) throws(StoreError) {
    let present = entry
    entry.record = present.record
    entry.record.item = item
    entry.record.secretRevision = state.record.secretRevision
    entry.record.furtherSecrets = state.record.furtherSecrets
    entry.valueKeys = state.valueKeys
    if !state.record.item.hasSameAccess(as: item) {
      try entry.resealKeys(of: id, from: state.record, session.keys)
    }
    if keepingOtpauth {
      try keepOtpauth(of: present)
    } else {
      entry.record.item.otpauth = entry.record.otpauth
    }
  }

  private mutating func keepOtpauth(of present: ItemEntry) throws(StoreError) {
    let part = ItemRecord.FurtherSecret.otpauth
    guard let revision = present.revision(ofPart: part), let sealed = present.valueKeys[part] else { return }
    entry.record.setOtpauth(present.record.otpauth, revision: revision)
    entry.record.item.otpauth = entry.record.otpauth
    let key = try SecretSeal.openKey(sealed, of: id, part: part, present.record, session.keys)
    entry.valueKeys[part] = try SecretSeal.seal(key: key, of: id, part: part, entry.record, session.keys)
  }

  /// Replaces the item's secret. - Throws: `tooLarge`, `locked`, `outOfMemory`.
  mutating func put(_ secret: borrowing SecretBytes) throws(StoreError) {
    try seal(secret, SecretPlace.main)
    entry.record.secretRevision = number
    entry.record.item.size = secret.count
  }

  /// Gives the item an `otpauth:` URI. - Throws: as `put`.
  mutating func putOtpauth(_ secret: borrowing SecretBytes, _ further: FurtherSecret) throws(StoreError) {
    try seal(secret, ItemRecord.FurtherSecret.otpauth)
    let stored = FurtherSecret(size: secret.count, modified: further.modified)
    entry.record.setOtpauth(stored, revision: number)
    entry.record.item.otpauth = stored
  }

  /// Takes the `otpauth:` URI away.
  mutating func removeOtpauth() {
    entry.valueKeys[ItemRecord.FurtherSecret.otpauth] = nil
    entry.record.setOtpauth(nil, revision: 0)
    entry.record.item.otpauth = nil
  }

  private mutating func seal(_ secret: borrowing SecretBytes, _ part: UInt8) throws(StoreError) {
    let key = session.paths.secret(id, part: part, revision: number)
    let valueKey = try SecretSeal.makeKey()
    let sealed = try SecretSeal.seal(
      secret, at: RecordPlace(.secret, key, version: 1), session.keys.store, key: valueKey)
    entry.valueKeys[part] = try SecretSeal.seal(key: valueKey, of: id, part: part, entry.record, session.keys)
    conditions.append(.created(key: key, equals: 0))
    operations.append(.put(key: key, value: sealed, lease: 0))
  }
}

extension ItemEntry {
  /// Seals the keys of the secrets for the item as it is now. - Throws: `locked`, `damaged`.
  mutating func resealKeys(
    of id: ItemKey, from former: ItemRecord, _ keys: ClusterKeyring
  ) throws(StoreError) {
    for (part, sealed) in valueKeys {
      let key = try SecretSeal.openKey(sealed, of: id, part: part, former, keys)
      valueKeys[part] = try SecretSeal.seal(key: key, of: id, part: part, record, keys)
    }
  }

  /// So many seconds after a change of attributes alone, another one makes no version of its own.
  private static let gathering: Int64 = 60

  /// Whether the item, as it was before these changes, becomes a version: not by its name alone, nor by each step of a series of
  /// attributes; `isRestoring`: an undo of attributes is one, so that it can be taken back.
  fileprivate func isVersion(_ changes: VersionChanges, isRestoring: Bool) -> Bool {
    let changes = changes.subtracting(.name)
    guard !changes.isEmpty else { return false }
    guard changes == .attributes, !isRestoring, let last = versions.last else { return true }
    let isSeries = VersionChanges(rawValue: last.changes).subtracting(.name) == .attributes
    let seconds = Timestamp.now.seconds &- last.replaced.seconds
    return !isSeries || seconds < 0 || seconds >= Self.gathering
  }
}

extension ItemEntryChange.Limit {
  init(_ retention: HistoryRetention, at now: Timestamp) {
    self.init(
      most: retention.keepsAny ? retention.versions : 0,
      oldest: Timestamp(seconds: now.seconds &- Int64(retention.days) &* 86_400))
  }
}
