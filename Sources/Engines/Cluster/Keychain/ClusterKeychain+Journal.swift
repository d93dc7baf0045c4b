import ClusterRecords
import EtcdClient
import Model
import VaultRecords

/// The changes of items that are made together, and what is stored with them.
struct ItemsPlan {
  /// Of each item one at most.
  var changes: [ItemEntryChange] = []
  /// Further conditions and operations of the same transaction: those of new secrets.
  var conditions: [KeyCondition] = []
  var operations: [KeyOperation] = []

  init(_ changes: [ItemEntryChange] = []) { self.changes = changes }
}

extension ClusterKeychain {
  /// How many parts of changes of many items are not brought into the entries of those.
  package var journalled: Int { collection.journalled }

  /// How many operations change items in one transaction.
  private static let changedAtOnce = 120
  /// How many changes a part of the journal has.
  private static let partSize = 50
  /// How large the sealed parts of a change are at most, together, in bytes.
  private static let largestChange = ClusterFormat.largestTransaction - 100_000

  /// The transaction that makes a plan. Many changes are stored together, as a journal, and are then brought into the entries by
  /// further transactions: so they are made all at once as well.
  ///
  /// - Throws: `tooLarge`; `unsupported` where as many secrets are to be stored.
  func settled(
    _ plan: ItemsPlan, on present: VerifiedItems
  ) throws(StoreError) -> CollectionPlan<KeychainEntry> {
    let made = try direct(
      plan.changes, on: present, room: Self.changedAtOnce - plan.operations.count, size: Self.largestChange)
    if made.count == plan.changes.count {
      var direct = made.plan
      direct.conditions += plan.conditions
      direct.operations += plan.operations
      return direct
    }
    guard plan.conditions.isEmpty, plan.operations.isEmpty else {
      throw ClusterCollection<KeychainEntry>.tooMany
    }
    return try journalled(plan.changes)
  }

  private func journalled(_ changes: [ItemEntryChange]) throws(StoreError) -> CollectionPlan<KeychainEntry> {
    var journalled = CollectionPlan<KeychainEntry>([])
    var (journal, size): ([ItemKey], Int) = ([], 0)
    for start in stride(from: 0, to: changes.count, by: Self.partSize) {
      let part = Array(changes.dropFirst(start).prefix(Self.partSize))
      let id = ItemKey.random()
      size += try ItemEntryChange.encode(part).count
      journalled.edits.append(CollectionEdit(id, .changes(part)))
      journal.append(id)
    }
    // Padding adds an eighth at most.
    guard size + size / 8 <= Self.largestChange, journal.count <= Self.changedAtOnce else {
      throw .tooLarge(limit: Self.largestChange * 8 / 9)
    }
    journalled.journal = journal
    return journalled
  }

  /// Makes as many changes as one transaction has room for, the first ones; and the first one in any case.
  private func direct(
    _ changes: [ItemEntryChange], on items: VerifiedItems, room: Int, size: Int
  ) throws(StoreError) -> (plan: CollectionPlan<KeychainEntry>, count: Int) {
    var plan = CollectionPlan<KeychainEntry>([])
    var (count, rest, bytes) = (0, room, size)
    for change in changes {
      let old = items.table[change.id]
      let new = try change.entry(after: old)
      let unused = try unusedSecrets(change.id, old, new)
      rest -= 1 + unused.count
      bytes -= try new?.encoded().count ?? 0
      guard rest >= 0 && bytes >= 0 || count == 0 else { break }
      plan.edits.append(CollectionEdit(change.id, new.map { .item($0) }))
      plan.operations += unused
      count += 1
    }
    return (plan, count)
  }

  /// Deletes the secrets that neither an item nor a state that it had needs any more.
  private func unusedSecrets(
    _ id: ItemKey, _ old: ItemEntry?, _ new: ItemEntry?
  ) throws(StoreError) -> [KeyOperation] {
    guard let old else { return [] }
    guard let new else { return [.delete(KeyRange(prefix: session.paths.secrets(id)))] }
    let (before, after) = (try old.places(id), try new.places(id))
    var operations: [KeyOperation] = []
    // In the order of their keys, so that those which follow each other go by one operation.
    var (first, last): (SecretPlace?, SecretPlace?) = (nil, nil)
    func end() {
      if let first, let last {
        operations.append(
          .delete(KeyRange(start: session.paths.secret(first), end: session.paths.secret(last) + [0])))
      }
      (first, last) = (nil, nil)
    }
    for place in before.sorted(by: { ($0.part, $0.revision) < ($1.part, $1.revision) }) {
      if after.contains(place) || (first != nil && first?.part != place.part) { end() }
      guard !after.contains(place) else { continue }
      (first, last) = (first ?? place, place)
    }
    end()
    return operations
  }

  /// Brings what the journal holds into the items. To be called by the one thread that changes the keychain.
  func foldJournal() throws(StoreError) {
    while true {
      let (journal, changes, items) = try collection.withCopy { copy in
        (copy.head.journal, copy.head.journal.first.flatMap { copy.view.changes[$0] } ?? [], copy.storedItems)
      }
      guard let first = journal.first else { return }
      var (plan, count) = try direct(
        changes, on: items, room: Self.changedAtOnce, size: Self.largestChange)
      if count < changes.count {
        plan.edits.append(CollectionEdit(first, .changes(Array(changes.dropFirst(count)))))
      } else {
        plan.edits.append(CollectionEdit(first, nil))
        plan.journal = Array(journal.dropFirst())
      }
      plan.changesValues = false
      guard let draft = try collection.draft(plan, on: items.version) else { continue }
      _ = try collection.send(draft)
    }
  }
}

extension ClusterPaths {
  func secret(_ place: SecretPlace) -> [UInt8] {
    secret(place.item, part: place.part, revision: place.revision)
  }
}
