import ClusterRecords
import Model
import VaultRecords

extension ClusterCollection {
  /// How many entries are sealed again in one transaction, and how many bytes of them at most.
  private static var resealedAtOnce: Int { 100 }
  private static var resealedBytes: Int { 1 << 20 }

  /// Seals head and entries under the present keys: the head first, which answers for all.
  ///
  /// `content` gives an entry as it is now. `foldJournal` brings what the head's journal holds into the entries; it is called before
  /// each transaction, which is made on a state without a journal: what another client's journal has of an entry would replace what
  /// was sealed again.
  /// - Throws: as `send`.
  func reseal(
    foldingBy foldJournal: () throws(StoreError) -> Void = {},
    _ content: (VerifiedCopy<Content>, ItemKey) throws(StoreError) -> Content?
  ) throws(StoreError) {
    try withWriter { () throws(StoreError) in
      try commit(foldJournal) { _ throws(StoreError) in [] }
      var rest = try withCopy { $0.entries.keys }
      while !rest.isEmpty {
        var taken = 0
        try commit(foldJournal) { copy throws(StoreError) in
          var (edits, bytes): ([CollectionEdit<Content>], Int) = ([], 0)
          taken = 0
          for id in rest.suffix(Self.resealedAtOnce).reversed() {
            let new = copy.entries[id] == nil ? nil : try content(copy, id)
            bytes += try new?.encoded().count ?? 0
            guard bytes <= Self.resealedBytes || edits.isEmpty else { break }
            taken += 1
            if let new { edits.append(CollectionEdit(id, new)) }
          }
          return edits
        }
        rest = rest.dropLast(taken)
      }
    }
  }

  private func commit(
    _ foldJournal: () throws(StoreError) -> Void,
    _ edits: (VerifiedCopy<Content>) throws(StoreError) -> [CollectionEdit<Content>]
  ) throws(StoreError) {
    while true {
      try catchUp()
      try foldJournal()
      let (made, version) = try withCopy { copy throws(StoreError) in
        (try copy.head.journal.isEmpty ? edits(copy) : nil, copy.version)
      }
      guard let edits = made else { continue }
      var plan = CollectionPlan(edits)
      plan.changesValues = false
      guard let draft = try draft(plan, on: version) else { continue }
      if try send(draft) == .made { return }
    }
  }
}
