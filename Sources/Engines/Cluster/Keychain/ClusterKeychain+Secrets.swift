import ClusterRecords
import EtcdClient
import Model
import SecretMemory
import Store
import Synchronization
import VaultRecords

extension ClusterKeychain {
  /// How often a secret is read again that was changed while it was read.
  private static let attempts = 8

  /// Reads a secret, and proves that its item is as the copy has it; where the cluster does not answer, from the copy on this device,
  /// if it keeps one. - Throws: as the protocol.
  func secret(of item: ItemID, part: UInt8) throws(StoreError) -> SecretBytes {
    try fromClusterOrCopy { () throws(StoreError) in
      do throws(StoreError) { return try readSecret(of: item, part: part) } catch .readOnly(let reason) {
        // Of a cluster that was set back, or is another one, no secret is taken.
        throw .unreachable(reason: reason)
      }
    } copy: { offline throws(StoreError) in
      try keptSecret(of: item, part: part, offline)
    }
  }

  private func keptSecret(
    of item: ItemID, part: UInt8, _ offline: OfflineCopy
  ) throws(StoreError) -> SecretBytes {
    let state = try collection.lookAtCopy { copy throws(StoreError) in
      try copy.items.table.state(item, part: part)
    }
    guard let state = state ?? nil else { throw .notFound }
    let place = RecordPlace(.secret, session.paths.secret(state.place), version: 1)
    guard let sealed = try offline.secret(state.place) else {
      throw .unreachable(
        reason: "\(StoreError.noAnswer), and the copy of its secrets on this device does not have this one")
    }
    return try open(sealed, place, state)
  }

  private func readSecret(of item: ItemID, part: UInt8) throws(StoreError) -> SecretBytes {
    try start()
    for _ in 0..<Self.attempts {
      let (state, known) = try collection.withCopyAndExtent { copy throws(StoreError) in
        try copy.items.table.state(item, part: part)
      }
      guard let state else {
        guard try collection.isPresent(known.version) else { continue }
        throw .notFound
      }
      let place = RecordPlace(.secret, session.paths.secret(state.place), version: 1)
      let (stored, head) = try read(place.key, known)
      if let distrust = collection.distrust { throw distrust }
      switch head {
      case .isKnown: break
      case .other(let modified) where modified > known.modified:
        // The copy is behind.
        try collection.waitFor(modified)
        continue
      case .other, .missing:
        try collection.load()
        continue
      }
      do throws(StoreError) {
        let secret = try open(Self.value(stored, place), place, state)
        damagedSecrets.use { _ = $0.remove(state.place.item) }
        return secret
      } catch {
        if case .damaged = error { damagedSecrets.use { _ = $0.insert(state.place.item) } }
        throw error
      }
    }
    throw .unreachable(reason: "other clients change the keychain all the time")
  }

  /// The head of the collection when a secret was read, compared with that of the copy.
  private enum PresentHead {
    case isKnown
    /// `modified`: the revision that changed it last.
    case other(modified: Int64)
    case missing
  }

  /// A cluster of which nothing was changed since the copy was complete has the head that the copy has: then the secret alone is read.
  /// Where it changes all the time, both are read at once.
  private func read(
    _ key: [UInt8], _ known: CopyExtent
  ) throws(StoreError) -> (stored: KeyValue?, head: PresentHead) {
    do throws(ClusterError) {
      let isQuiet = pace.isQuiet
      if isQuiet {
        let (values, revision) = try session.read([KeyRange(key: key)])
        pace.note(revision)
        if revision == known.covered { return (values[0].first, .isKnown) }
      }
      let (values, revision) = try session.read([KeyRange(key: collection.place.head), KeyRange(key: key)])
      // The second reply of one opening does not show that the cluster is quiet from one to the next.
      if !isQuiet { pace.note(revision) }
      guard let head = values[0].first else { return (nil, .missing) }
      guard head.modified == known.modified else { return (nil, .other(modified: head.modified)) }
      collection.noteCovered(revision, at: known.modified)
      return (values[1].first, .isKnown)
    } catch { throw StoreError(error) }
  }

  /// A secret of an item, or of a state that it had, for a change that compares the head.
  ///
  /// - Throws: `notFound` where there is none; `locked`, `damaged`, `unreachable`.
  func opened(_ state: ItemEntry, _ id: ItemKey, _ part: UInt8) throws(StoreError) -> SecretBytes {
    guard let secret = try SecretState(state, id, part) else { throw .notFound }
    let place = RecordPlace(.secret, session.paths.secret(secret.place), version: 1)
    let stored: KeyValue?
    do throws(ClusterError) { stored = try session.read([KeyRange(key: place.key)]).values[0].first } catch {
      throw StoreError(error)
    }
    return try open(Self.value(stored, place), place, secret)
  }

  /// nil: it is not the one that was stored there.
  private static func value(_ stored: KeyValue?, _ place: RecordPlace) -> [UInt8]? {
    guard let stored, UInt64(clamping: stored.version) == place.version else { return nil }
    return stored.value
  }

  private func open(
    _ sealed: [UInt8]?, _ place: RecordPlace, _ state: SecretState
  ) throws(StoreError) -> SecretBytes {
    let key = try SecretSeal.openKey(
      state.sealedKey, of: state.place.item, part: state.place.part, state.record, session.keys)
    guard let sealed else { throw .damaged(what: "a secret") }
    return try SecretSeal.open(sealed, at: place, session.keys.store, key: key)
  }
}

/// Whether anything in the cluster changes, by the replies of the last two readings.
final class ReplyPace: Sendable {
  private let last = Mutex<(revision: Int64, isQuiet: Bool)>((0, false))

  /// The last two replies were of the same revision.
  var isQuiet: Bool { last.withLock { $0.isQuiet } }

  /// Takes note of the revision of a reply.
  func note(_ revision: Int64) { last.withLock { $0 = (revision, revision == $0.revision) } }
}

/// A secret of an item, or of a state that it had, as the item's entry knows it.
struct SecretState {
  var place: SecretPlace
  var sealedKey: [UInt8]
  var record: ItemRecord

  /// nil: there is no such secret. - Throws: `damaged`.
  init?(_ state: ItemEntry, _ id: ItemKey, _ part: UInt8) throws(StoreError) {
    guard let revision = state.revision(ofPart: part) else { return nil }
    guard let key = state.valueKeys[part] else { throw .damaged(what: "a secret") }
    place = SecretPlace(item: id, part: part, revision: revision)
    (sealedKey, record) = (key, state.record)
  }
}

extension ItemTable {
  /// nil: there is no such item, no such state, or it has no such secret. - Throws: `damaged`.
  fileprivate func state(_ item: ItemID, part: UInt8) throws(StoreError) -> SecretState? {
    let found: (id: ItemKey, state: ItemEntry)?
    if let (owner, number) = item.version {
      found = try version(number, of: owner)
    } else {
      found = ItemKey(item).flatMap { id in entries[id].map { (id, $0) } }
    }
    guard let (id, state) = found else { return nil }
    return try SecretState(state, id, part)
  }

  /// A state that an item had; nil: it is not kept. - Throws: `damaged`.
  func version(_ number: UInt64, of owner: ItemID) throws(StoreError) -> (id: ItemKey, state: ItemEntry)? {
    guard let id = ItemKey(owner), let kept = self[id]?.versions.first(where: { $0.number == number }) else {
      return nil
    }
    return (id, try kept.state(of: id))
  }
}
