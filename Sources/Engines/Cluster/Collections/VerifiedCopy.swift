import ClusterRecords
import EtcdClient
import Model
import VaultRecords

/// A collection as it was at one revision, of which every entry was opened and their sum compared with the head's.
///
/// It changes from one commit to the next, and only where head and entries of that commit fit together.
struct VerifiedCopy<Content: CollectionContent> {
  struct Known: Sendable {
    var state: EntryState
    var kept: Content.Kept
  }

  let place: CollectionPlace
  private(set) var head: CollectionHead
  /// How often the head was changed.
  private(set) var version: UInt64
  /// The epoch that the head is sealed in: it never goes back.
  private(set) var epoch: UInt32
  /// The revision that changed it last.
  private(set) var modified: Int64
  private(set) var entries = IDTable<Known>()
  private(set) var view = Content.View()

  /// Opens all that is stored. - Throws: `damaged`, `locked`.
  init(
    _ place: CollectionPlace, head stored: KeyValue, entries values: [KeyValue], _ keys: ClusterKeyring
  ) throws(StoreError) {
    self.place = place
    (head, version, epoch) = try Self.open(head: stored, place, keys)
    modified = stored.modified
    let terms = try keys.terms()
    var sum = SetDigest()
    entries.reserveCapacity(values.count)
    var failure: StoreError?
    for value in values {
      let opened: (ItemKey, EntryState, Content)
      // Keys that no commit has put are in no sum, and are left out: the sum says whether one of the others is missing.
      do throws(StoreError) { opened = try Self.open(entry: value, place, keys) } catch {
        if case .damaged = error { continue }
        failure = error
        continue
      }
      let (id, state, content) = opened
      sum += try terms.term(value.key, state)
      entries.updateValue(Known(state: state, kept: content.kept), forKey: id)
      view.put(id, content, replacing: nil)
    }
    guard sum == head.sum, UInt64(entries.count) == head.count else { throw failure ?? Self.incomplete }
  }

  /// The entries as this device has kept them. - Throws: `damaged`, `locked`.
  init(_ place: CollectionPlace, _ record: CollectionRecord, _ keys: ClusterKeyring) throws(StoreError) {
    self.place = place
    (head, version, epoch) = (record.head, record.version, record.epoch)
    modified = record.modified
    let terms = try keys.terms()
    var sum = SetDigest()
    entries.reserveCapacity(record.entries.count)
    for entry in record.entries {
      let content = try Content(entry.content.span, entry.id)
      sum += try terms.term(place.entry(entry.id), entry.state)
      entries.updateValue(Known(state: entry.state, kept: content.kept), forKey: entry.id)
      view.put(entry.id, content, replacing: nil)
    }
    guard sum == head.sum, UInt64(entries.count) == head.count else { throw Self.incomplete }
  }

  /// The copy, to be kept by this device. `content` gives an entry as it is now.
  func record(
    _ content: (ItemKey) throws(StoreError) -> Content
  ) throws(StoreError) -> CollectionRecord {
    var kept: [CollectionRecord.Entry] = []
    kept.reserveCapacity(entries.count)
    for (id, known) in entries {
      kept.append(.init(id: id, state: known.state, content: try content(id).encoded()))
    }
    return CollectionRecord(
      head: head, version: version, epoch: epoch, modified: modified, entries: kept)
  }

  static func open(
    head stored: KeyValue, _ place: CollectionPlace, _ keys: ClusterKeyring
  ) throws(StoreError) -> (CollectionHead, UInt64, UInt32) {
    let version = UInt64(clamping: stored.version)
    let (content, epoch) = try RecordSeal.open(
      stored.value, at: RecordPlace(.head, place.head, version: version), for: place.purpose, keys)
    return (try CollectionHead(content.span), version, epoch)
  }

  private static func open(
    entry value: KeyValue, _ place: CollectionPlace, _ keys: ClusterKeyring
  ) throws(StoreError) -> (ItemKey, EntryState, Content) {
    guard let id = place.id(value.key) else { throw .damaged(what: "a key of the cluster") }
    let version = UInt64(clamping: value.version)
    let (bytes, _) = try RecordSeal.open(
      value.value, at: RecordPlace(.entry, value.key, version: version), for: place.purpose, keys)
    let entry = try CollectionEntry(bytes.span)
    return (
      id, EntryState(version: version, operation: entry.operation), try Content(entry.content.span, id)
    )
  }

  /// Changes how the view is kept, not what it has.
  mutating func rearrange(_ body: (inout Content.View) -> Void) { body(&view) }

  static var incomplete: StoreError {
    .damaged(
      what:
        "what the cluster stores: entries were deleted, replaced or put back by something else than Keyhole; it"
    )
  }
}

extension VerifiedCopy {
  /// The entries that one commit has changed.
  struct Delta {
    /// The last commit; nil: none.
    var operation: Operation?
    var ids: [ItemKey] = []
  }

  /// Takes over the changes of one revision; nil: they are known already. - Throws: `damaged`; then nothing has changed.
  mutating func apply(
    _ changes: [KeyChange], revision: Int64, _ keys: ClusterKeyring
  ) throws(StoreError) -> Delta? {
    guard revision > modified else { return nil }
    var (newHead, rest): (KeyValue?, [KeyChange]) = (nil, [])
    for change in changes {
      switch change {
      case .put(let value) where value.key == place.head: newHead = value
      case .delete(let key, _) where key == place.head: throw Self.incomplete
      default: if place.id(change.key) != nil { rest.append(change) }
      }
    }
    guard let newHead else {
      // Another program's keys are in no sum, and are left out.
      guard rest.allSatisfy({ place.id($0.key).map { entries[$0] == nil } ?? true }) else {
        throw Self.incomplete
      }
      return nil
    }
    let (next, nextVersion, nextEpoch) = try Self.open(head: newHead, place, keys)
    guard nextVersion == version + 1, nextEpoch >= epoch, next.follows(head) else { throw Self.incomplete }
    let terms = try keys.terms()
    var (sum, count) = (head.sum, head.count)
    var puts: [(ItemKey, EntryState, Content)] = []
    var removed: [ItemKey] = []
    for change in rest {
      switch change {
      case .put(let value):
        let opened: (ItemKey, EntryState, Content)
        // The head did open: what does not is no entry of its commit, and the sum says whether it has taken the place of one.
        do throws(StoreError) { opened = try Self.open(entry: value, place, keys) } catch {
          guard let id = place.id(value.key), entries[id] == nil else { throw error }
          continue
        }
        let (id, state, content) = opened
        if let known = entries[id] { sum -= try terms.term(value.key, known.state) } else { count += 1 }
        sum += try terms.term(value.key, state)
        puts.append((id, state, content))
      case .delete(let key, _):
        guard let id = place.id(key), let known = entries[id] else { continue }
        sum -= try terms.term(key, known.state)
        count -= 1
        removed.append(id)
      }
    }
    guard sum == next.sum, count == next.count else { throw Self.incomplete }
    (head, version, modified, epoch) = (next, nextVersion, revision, nextEpoch)
    take(puts, removed)
    return Delta(operation: next.operations.first, ids: puts.map(\.0) + removed)
  }

  private mutating func take(_ puts: [(ItemKey, EntryState, Content)], _ removed: [ItemKey]) {
    for id in removed {
      if let known = entries.removeValue(forKey: id) { view.remove(id, known.kept) }
    }
    for (id, state, content) in puts {
      let old = entries.updateValue(Known(state: state, kept: content.kept), forKey: id)
      view.put(id, content, replacing: old?.kept)
    }
  }

  /// The entries that differ from those of an earlier copy.
  func difference(from earlier: VerifiedCopy) -> [ItemKey] {
    var ids: [ItemKey] = []
    for (id, known) in entries where earlier.entries[id]?.state != known.state { ids.append(id) }
    for id in earlier.entries.keys where entries[id] == nil { ids.append(id) }
    return ids
  }
}

/// A commit to a collection that was not made yet.
struct CollectionDraft<Content: CollectionContent> {
  fileprivate let head: CollectionHead
  fileprivate let epoch: UInt32
  /// The version of the head that it makes.
  let version: UInt64
  fileprivate let puts: [(ItemKey, EntryState, Content)]
  let removed: [ItemKey]
  /// The number by which it is known afterwards whether it was made.
  let operation: Operation
  let transaction: ClusterTransaction
}

/// The changes of a commit.
struct CollectionPlan<Content: CollectionContent> {
  var edits: [CollectionEdit<Content>]
  /// A value changes, not times alone.
  var changesValues = true
  /// Further conditions and operations of the same transaction.
  var conditions: [KeyCondition] = []
  var operations: [KeyOperation] = []
  /// nil: the head's list stays.
  var journal: [ItemKey]?
  /// nil: as it is.
  var keepsVersions: Bool?

  init(_ edits: [CollectionEdit<Content>]) { self.edits = edits }
}

extension VerifiedCopy {
  /// The transaction that makes a commit on this state. - Throws: `tooLarge`, `invalidValue`, `locked`.
  func draft(
    _ plan: CollectionPlan<Content>, at time: Timestamp, _ keys: ClusterKeyring
  ) throws(StoreError) -> CollectionDraft<Content> {
    let operation = Operation.random()
    let terms = try keys.terms()
    var next = head
    next.note(operation)
    if let journal = plan.journal { next.journal = journal }
    if let keepsVersions = plan.keepsVersions { next.keepsVersions = keepsVersions }
    if plan.changesValues { (next.valueVersion, next.valueTime) = (version + 1, max(time, head.valueTime)) }
    var conditions: [KeyCondition] = [.modified(key: place.head, equals: modified)] + plan.conditions
    var operations = plan.operations
    var puts: [(ItemKey, EntryState, Content)] = []
    var removed: [ItemKey] = []
    for edit in plan.edits {
      let key = place.entry(edit.id)
      let known = entries[edit.id]
      conditions.append(.version(key: key, equals: Int64(clamping: known?.state.version ?? 0)))
      if let known { next.sum -= try terms.term(key, known.state) }
      if let content = edit.content {
        let state = EntryState(version: (known?.state.version ?? 0) + 1, operation: operation)
        next.sum += try terms.term(key, state)
        let entry = CollectionEntry(operation: operation, content: try content.encoded())
        let sealed = try RecordSeal.seal(
          entry.encoded, at: RecordPlace(.entry, key, version: state.version), for: place.purpose, keys)
        operations.append(.put(key: key, value: sealed, lease: 0))
        puts.append((edit.id, state, content))
        if known == nil { next.count += 1 }
      } else if known != nil {
        operations.append(.delete(KeyRange(key: key)))
        removed.append(edit.id)
        next.count -= 1
      }
    }
    let sealed = try RecordSeal.seal(
      next.encoded, at: RecordPlace(.head, place.head, version: version + 1), for: place.purpose, keys)
    operations.append(.put(key: place.head, value: sealed, lease: 0))
    operations += commitBlock(of: next, version + 1)
    return CollectionDraft(
      head: next, epoch: keys.epoch, version: version + 1, puts: puts, removed: removed, operation: operation,
      transaction: ClusterTransaction(
        operations, if: conditions, otherwise: [.read(RangeRequest(KeyRange(key: place.head)))]))
  }

  /// With the last version of a block, the commits that the head is about to forget are stored, and those that were stored long ago go.
  private func commitBlock(of head: CollectionHead, _ version: UInt64) -> [KeyOperation] {
    guard version % CommitBlock.size == CommitBlock.last else { return [] }
    let block = version / CommitBlock.size
    var operations: [KeyOperation] = [
      .put(key: place.commits(block), value: CommitBlock.encode(head.operations), lease: 0)
    ]
    if block >= CommitBlock.most {
      operations.append(.delete(KeyRange(key: place.commits(block - CommitBlock.most))))
    }
    return operations
  }

  /// Takes over a commit that was made on this state. It is the one after a state that was read meanwhile where the versions
  /// say so.
  mutating func take(_ draft: CollectionDraft<Content>, revision: Int64) {
    guard draft.version == version + 1 else { return }
    (head, version, modified, epoch) = (draft.head, draft.version, revision, draft.epoch)
    take(draft.puts, draft.removed)
  }
}

extension CollectionDraft {
  /// Whether a copy is the state that the draft was made on.
  func isBased(on copy: VerifiedCopy<Content>) -> Bool { copy.version + 1 == version }
}
