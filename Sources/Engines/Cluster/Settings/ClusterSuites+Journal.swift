import ClusterRecords
import EtcdClient
import Model
import VaultRecords

extension ClusterSuites {
  /// How many parts of changes of many settings are not brought into the entries of those, in the suites that were read.
  package var journalled: Int {
    state.use { Array($0.loaded.values) }.reduce(0) { $0 + $1.journalled }
  }

  /// How many settings change entries of their own in one transaction.
  private static let changedAtOnce = 100
  /// How large the sealed parts of a change are at most, together, in bytes.
  static let largestChange = ClusterFormat.largestTransaction - 100_000

  /// The transaction that makes changes of a suite. Many changes are stored together, as a journal, and are then brought into
  /// the entries by further transactions: so they are made all at once as well.
  ///
  /// - Throws: `tooLarge`, `invalidValue`, `locked`.
  func plan(_ changes: [SettingChange], of suite: ItemKey) throws(StoreError) -> CollectionPlan<SuiteEntry> {
    if changes.count <= Self.changedAtOnce { return CollectionPlan(try edits(changes, of: suite)) }
    var plan = CollectionPlan<SuiteEntry>([])
    var (journal, size): ([ItemKey], Int) = ([], 0)
    for start in stride(from: 0, to: changes.count, by: Self.changedAtOnce) {
      let part = Array(changes.dropFirst(start).prefix(Self.changedAtOnce))
      let id = ItemKey.random()
      size += try SettingChange.encode(part).count
      plan.edits.append(CollectionEdit(id, .changes(part)))
      journal.append(id)
    }
    // Padding adds an eighth at most.
    guard size + size / 8 <= Self.largestChange else { throw .tooLarge(limit: Self.largestChange * 8 / 9) }
    plan.journal = journal
    return plan
  }

  private func edits(
    _ changes: [SettingChange], of suite: ItemKey
  ) throws(StoreError) -> [CollectionEdit<SuiteEntry>] {
    var edits: [CollectionEdit<SuiteEntry>] = []
    for change in changes {
      let tag = try session.keys.tag(of: change.name, in: suite)
      switch change {
      case .set(let record): edits.append(CollectionEdit(tag, .setting(record)))
      case .remove: edits.append(CollectionEdit(tag, nil))
      }
    }
    return edits
  }

  /// Brings what the suite's journal holds into the entries. To be called by the one thread that changes the suite.
  func foldJournal(
    of id: ItemKey, _ settings: ClusterCollection<SuiteEntry>
  ) throws(StoreError) {
    while true {
      let (journal, changes, version) = try settings.withCopy { copy in
        (copy.head.journal, copy.head.journal.first.flatMap { copy.view.changes[$0] } ?? [], copy.version)
      }
      guard let first = journal.first else { return }
      var plan = CollectionPlan(try edits(changes, of: id))
      plan.edits.append(CollectionEdit(first, nil))
      plan.journal = Array(journal.dropFirst())
      plan.changesValues = false
      guard let draft = try settings.draft(plan, on: version) else { continue }
      _ = try settings.send(draft)
    }
  }
}
