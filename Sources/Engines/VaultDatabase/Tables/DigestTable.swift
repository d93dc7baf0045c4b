package import GRDB
import Model
package import VaultRecords

/// The hash tree (Merkle, 1987) over the columns of all items' rows, during one transaction: the leaves' digests are in pages,
/// and the pages' in the manifest.
///
/// So one row, or that there is none, is proven by the rows of one leaf, by one page, and by the manifest.
package struct DigestTable {
  let database: Database
  let keys: VaultKeys

  package init(database: Database, keys: VaultKeys) {
    (self.database, self.keys) = (database, keys)
  }

  /// The rows that a leaf has, in order; nil: they are not those that the manifest answers for.
  package func rows(ofLeafWith tag: ItemTag, _ manifest: Manifest) throws -> [ItemRow]? {
    let leaf = manifest.leaves.leaf(of: tag)
    let page = try fetch(leaf / LeafLayout.leavesPerPage, manifest.leaves, manifest.pages)
    guard let page, let rows = try rows(of: leaf, manifest.leaves) else { return nil }
    let digest = page.digest(at: leaf % LeafLayout.leavesPerPage)
    return digest == keys.digest(ofLeaf: leaf, rows)[...] ? rows : nil
  }

  /// Brings the tree to the rows that have changed, as the manifest has noted them, and the manifest to the tree.
  ///
  /// - Throws: `readOnly` where the other rows of a leaf are not those that the manifest answers for.
  package func update(_ manifest: inout Manifest) throws {
    let changes = manifest.rowChanges
    manifest.rowChanges = [:]
    let (old, new) = (manifest.leaves, manifest.leaves.fitting(items: manifest.count))
    guard !changes.isEmpty || new != old else { return }
    let divided = old.leavesChanged(in: new)
    let pages = Pages(self, manifest)
    let known = try provenRows(of: divided.filter { $0 < old.count }, before: changes, old, pages)
    pages.resize(to: new)
    // Only of rows that are proven: read once more, by the ranges of other leaves, they could be others.
    let rows = new == old ? known : Dictionary(grouping: known.values.joined()) { new.leaf(of: $0.tag) }
    for leaf in divided.union(changes.keys.map { new.leaf(of: $0.tag) }) where leaf < new.count {
      try pages.set(keys.digest(ofLeaf: leaf, (rows[leaf] ?? []).sorted()), of: leaf)
    }
    try pages.store(in: &manifest)
  }

  /// Makes the tree of the rows that are there, and the manifest with it.
  package func rebuild(_ manifest: inout Manifest) throws {
    try keys.makingDigests { try store(allRowsFor: &manifest) }
  }

  private func store(allRowsFor manifest: inout Manifest) throws {
    let layout = LeafLayout.one.fitting(items: manifest.count)
    (manifest.leaves, manifest.pages, manifest.rowChanges) = (layout, [], [:])
    guard let found = try walkIndex(layout, keepingRows: false) else { throw Self.altered }
    let query = try Query(database, "DELETE FROM digest")
    try query.run()
    for page in 0..<layout.pageCount {
      let digests = found.digests(ofPage: page)
      try store(digests, page)
      manifest.pages += keys.digest(ofPage: page, digests)
    }
  }

  static let altered = StoreError.readOnly(
    reason:
      "the vault can only be read: items were deleted, doubled or put back by another program than Keyhole")
}

// MARK: - Rows

/// A page of the index or of the digests that can't be read leaves the items readable: it proves nothing.
package func isFalseWhereDamaged(_ body: () throws -> Bool) throws -> Bool {
  do { return try body() } catch let error as DatabaseError {
    guard error.resultCode == .SQLITE_CORRUPT else { throw error }
    return false
  }
}

extension DigestTable {
  /// nil: one of them is no row of the leaf, or they are not in order.
  func rows(of leaf: UInt64, _ layout: LeafLayout) throws -> [ItemRow]? {
    let tags = layout.tags(of: leaf)
    let query = try Query(database, keys.statements.fetchRowsOfLeaf)
    query.bind(1, ItemTag(high: tags.lowerBound, low: 0))
    query.bind(2, ItemTag(high: tags.upperBound, low: .max))
    var rows: [ItemRow] = []
    while try query.step() {
      keys.counts.rows += 1
      guard let row = query.itemRow(at: 0), layout.leaf(of: row.tag) == leaf,
        rows.last.map({ $0 < row }) ?? true
      else { return nil }
      rows.append(row)
    }
    return rows
  }

  /// The rows of leaves as they are, where they were those that the manifest answers for before `changes`.
  ///
  /// - Throws: `readOnly` where they were not.
  private func provenRows(
    of divided: Set<UInt64>, before changes: [ItemRow: Int], _ layout: LeafLayout, _ pages: Pages
  ) throws -> [UInt64: [ItemRow]] {
    let changesOfLeaf = Dictionary(grouping: changes) { layout.leaf(of: $0.key.tag) }
    var proven: [UInt64: [ItemRow]] = [:]
    for leaf in divided.union(changesOfLeaf.keys) {
      guard let present = try rows(of: leaf, layout),
        let former = Self.rows(present, before: changesOfLeaf[leaf] ?? []),
        try pages.digest(of: leaf) == keys.digest(ofLeaf: leaf, former)[...]
      else { throw Self.altered }
      proven[leaf] = present
    }
    return proven
  }

  /// The rows as they were before `changes`; nil: they can't have been.
  private static func rows(_ present: [ItemRow], before changes: [(key: ItemRow, value: Int)]) -> [ItemRow]? {
    let inserted = Set(changes.filter { $0.value > 0 }.map(\.key))
    let deleted = changes.filter { $0.value < 0 }.map(\.key)
    let kept = present.filter { !inserted.contains($0) }
    guard kept.count + inserted.count == present.count else { return nil }
    return deleted.isEmpty ? kept : (kept + deleted).sorted()
  }
}

// MARK: - Pages

extension DigestTable {
  /// The digests of a page; nil: it is not the one that the manifest answers for, whose `digests` of pages are given.
  func fetch(_ page: UInt64, _ layout: LeafLayout, _ digests: [UInt8]) throws -> [UInt8]? {
    let query = try Query(database, "SELECT leaves FROM digest WHERE page = ?")
    query.bind(1, page)
    guard try query.step() else { return nil }
    let content = query.bytes(0)
    guard content.count == Self.size(page, layout),
      keys.digest(ofPage: page, content)[...] == digests.digest(at: page)
    else { return nil }
    return content
  }

  /// In bytes.
  private static func size(_ page: UInt64, _ layout: LeafLayout) -> Int {
    let leaves = min(layout.count - page * LeafLayout.leavesPerPage, LeafLayout.leavesPerPage)
    return Int(leaves) * LeafLayout.digestSize
  }

  private func store(_ digests: [UInt8], _ page: UInt64) throws {
    let query = try Query(database, "INSERT OR REPLACE INTO digest (page, leaves) VALUES (?, ?)")
    query.bind(1, page)
    query.bind(2, digests)
    try query.run()
  }

  private func delete(_ page: UInt64) throws {
    let query = try Query(database, "DELETE FROM digest WHERE page = ?")
    query.bind(1, page)
    try query.run()
  }

  /// The pages of the tree in one transaction, each read once.
  private final class Pages {
    private let table: DigestTable
    private let former: LeafLayout
    private let digestsOfPages: [UInt8]
    private var layout: LeafLayout
    private var present: [UInt64: [UInt8]] = [:]
    private var changed: Set<UInt64> = []

    init(_ table: DigestTable, _ manifest: Manifest) {
      (self.table, digestsOfPages) = (table, manifest.pages)
      (former, layout) = (manifest.leaves, manifest.leaves)
    }

    /// nil: it is not the one that the manifest answers for.
    func fetch(_ page: UInt64) throws -> [UInt8]? {
      if let known = present[page] { return known }
      let digests = try table.fetch(page, former, digestsOfPages)
      present[page] = digests
      return digests
    }

    func digest(of leaf: UInt64) throws -> ArraySlice<UInt8>? {
      try fetch(leaf / LeafLayout.leavesPerPage)?.digest(at: leaf % LeafLayout.leavesPerPage)
    }

    /// Leaves that come into being have to be set.
    func resize(to layout: LeafLayout) { self.layout = layout }

    func set(_ digest: [UInt8], of leaf: UInt64) throws {
      let page = leaf / LeafLayout.leavesPerPage
      try makeReady(page)
      present[page]?.replaceSubrange([UInt8].rangeOfDigest(leaf % LeafLayout.leavesPerPage), with: digest)
    }

    /// Stores the pages that were changed, and their digests in the manifest.
    func store(in manifest: inout Manifest) throws {
      // The last one has become shorter, where leaves were merged.
      if layout.count < former.count { try makeReady(layout.pageCount - 1) }
      var digests = digestsOfPages.prefix(Int(layout.pageCount) * LeafLayout.digestSize)
      for page in changed.sorted() {
        let content = present[page] ?? []
        try table.store(content, page)
        // A new page's is appended.
        let place = [UInt8].rangeOfDigest(page).clamped(to: 0..<digests.count)
        digests.replaceSubrange(place, with: table.keys.digest(ofPage: page, content))
      }
      for page in layout.pageCount..<max(layout.pageCount, former.pageCount) { try table.delete(page) }
      (manifest.leaves, manifest.pages) = (layout, Array(digests))
    }

    /// Reads a page that will be changed, and gives it its new length.
    private func makeReady(_ page: UInt64) throws {
      guard changed.insert(page).inserted else { return }
      var digests: [UInt8] = []
      if page < former.pageCount {
        guard let stored = try fetch(page) else { throw DigestTable.altered }
        digests = stored
      }
      let size = DigestTable.size(page, layout)
      digests = digests.prefix(size) + [UInt8](repeating: 0, count: max(0, size - digests.count))
      present[page] = digests
    }
  }
}

extension [UInt8] {
  /// One of several digests.
  func digest(at index: UInt64) -> ArraySlice<UInt8> { self[Self.rangeOfDigest(index)] }

  static func rangeOfDigest(_ index: UInt64) -> Range<Int> {
    Int(index) * LeafLayout.digestSize..<(Int(index) + 1) * LeafLayout.digestSize
  }
}
