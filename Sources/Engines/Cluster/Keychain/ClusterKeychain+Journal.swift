import ClusterRecords
import EtcdClient
import Model
import VaultRecords

extension ClusterKeychain {
  /// How many operations change items in one transaction.
  private static let changedAtOnce = 120
  /// How many changes a part of the journal has: each may be two operations, and some are further ones.
  private static let partSize = 50
  /// How large the sealed parts of a change are at most, together, in bytes.
  private static let largestChange = ClusterFormat.largestTransaction - 100_000

  /// The transaction that makes a plan. Many changes are stored together, as a journal, and are then brought into the entries by
  /// further transactions: so they are made all at once as well.
  ///
  /// - Throws: `tooLarge`; `unsupported` where as many secrets are to be stored.
  func settled(_ plan: CollectionPlan<KeychainEntry>) throws(StoreError) -> CollectionPlan<KeychainEntry> {
    let removed = plan.edits.filter { $0.content == nil }.map(\.id)
    if plan.edits.count + removed.count + plan.operations.count <= Self.changedAtOnce {
      var direct = plan
      direct.operations += removed.map(removalOfSecrets)
      return direct
    }
    guard plan.conditions.isEmpty, plan.operations.isEmpty else {
      throw ClusterCollection<KeychainEntry>.tooMany
    }
    let changes = plan.edits.compactMap { edit -> ItemEntryChange? in
      switch edit.content {
      case .item(let entry): .set(edit.id, entry)
      case .changes: nil
      case nil: .remove(edit.id)
      }
    }
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

  private func removalOfSecrets(_ id: ItemKey) -> KeyOperation {
    .delete(KeyRange(prefix: session.paths.secrets(id)))
  }

  /// Brings what the journal holds into the items. To be called by the one thread that changes the keychain.
  func foldJournal() throws(StoreError) {
    while true {
      let (journal, changes, version) = try collection.withCopy { copy in
        (copy.head.journal, copy.head.journal.first.flatMap { copy.view.changes[$0] } ?? [], copy.version)
      }
      guard let first = journal.first else { return }
      var plan = CollectionPlan<KeychainEntry>([])
      for change in changes {
        switch change {
        case .set(let id, let entry): plan.edits.append(CollectionEdit(id, .item(entry)))
        case .remove(let id):
          plan.edits.append(CollectionEdit(id, nil))
          plan.operations.append(removalOfSecrets(id))
        }
      }
      plan.edits.append(CollectionEdit(first, nil))
      plan.journal = Array(journal.dropFirst())
      plan.changesValues = false
      guard let draft = try collection.draft(plan, on: version) else { continue }
      _ = try collection.send(draft)
    }
  }
}
