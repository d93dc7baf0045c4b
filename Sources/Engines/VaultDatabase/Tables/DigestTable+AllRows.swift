import GRDB
import Platform
package import VaultRecords

// All rows, beside what the manifest answers for.
extension DigestTable {
  /// Whether every page of the index and of the digests can be read.
  package func isReadable() throws -> Bool {
    try isFalseWhereDamaged {
      for statement in [keys.statements.fetchRowsOfIndex, "SELECT page, leaves FROM digest"] {
        let query = try Query(database, statement)
        var limit = try RowLimit(database)
        while try query.step() { try limit.count() }
      }
      return true
    }
  }

  /// Whether all rows are those that the manifest answers for, in the table and in its index. `table`: as of `knownRows`.
  package func isWhole(_ manifest: Manifest, table: RowSum? = nil) throws -> Bool {
    try isFalseWhereDamaged {
      try walk(manifest, table: table ?? sumOfTable(), keepingRows: false) != nil
    }
  }

  /// - Throws: `readOnly` where they are not.
  package func requireWhole(_ manifest: Manifest) throws {
    guard try isWhole(manifest) else { throw Self.altered }
  }

  /// All rows; nil: they are not those that the manifest answers for, in the table and in its index. `table`: the sum of the
  /// table's rows where they were read in this transaction; nil: they are read.
  package func knownRows(_ manifest: Manifest, table: RowSum? = nil) throws -> KnownRows? {
    var known: KnownRows?
    _ = try isFalseWhereDamaged {
      guard let walk = try walk(manifest, table: table ?? sumOfTable(), keepingRows: true) else {
        return false
      }
      known = KnownRows(walk.layout, walk.rows, walk.digests, keys)
      return true
    }
    return known
  }

  private func walk(_ manifest: Manifest, table: RowSum?, keepingRows: Bool) throws -> IndexWalk? {
    try keys.makingDigests { try compare(manifest, table, keepingRows: keepingRows) }
  }

  private func compare(_ manifest: Manifest, _ table: RowSum?, keepingRows: Bool) throws -> IndexWalk? {
    guard let table, let found = try walkIndex(manifest.leaves, keepingRows: keepingRows),
      found.sum == table, found.sum.count == manifest.count
    else { return nil }
    for page in 0..<manifest.leaves.pageCount {
      let stored = try fetch(page, manifest.leaves, manifest.pages)
      guard let stored, stored == found.digests(ofPage: page) else { return nil }
    }
    return found
  }

  /// The result of a walk over the index.
  struct IndexWalk {
    let layout: LeafLayout
    let keys: VaultKeys
    let keepsRows: Bool
    fileprivate(set) var digests: [UInt64: [UInt8]] = [:]
    fileprivate(set) var rows: [UInt64: [ItemRow]] = [:]
    fileprivate(set) var sum = RowSum()

    fileprivate init(_ layout: LeafLayout, _ keys: VaultKeys, keepsRows: Bool) {
      (self.layout, self.keys, self.keepsRows) = (layout, keys, keepsRows)
    }

    fileprivate mutating func add(_ rows: [ItemRow], _ leaf: UInt64) {
      if !rows.isEmpty { digests[leaf] = keys.digest(ofLeaf: leaf, rows) }
      if keepsRows { self.rows[leaf] = rows.withoutRoom }
      for row in rows { sum.add(row) }
    }

    func digests(ofPage page: UInt64) -> [UInt8] {
      let first = page * LeafLayout.leavesPerPage
      return (first..<min(first + LeafLayout.leavesPerPage, layout.count)).flatMap { leaf in
        digests[leaf] ?? keys.digest(ofLeaf: leaf, [])
      }
    }
  }

  /// nil: it is not in order, or has what is no row of an item.
  func walkIndex(_ layout: LeafLayout, keepingRows: Bool) throws -> IndexWalk? {
    var walk = IndexWalk(layout, keys, keepsRows: keepingRows)
    var (leaf, rows): (UInt64, [ItemRow]) = (0, [])
    var last: ItemRow?
    let query = try Query(database, keys.statements.fetchRowsOfIndex)
    while try query.step() {
      guard let row = query.itemRow(at: 0), last.map({ $0 < row }) ?? true else { return nil }
      let next = layout.leaf(of: row.tag)
      if next != leaf {
        walk.add(rows, leaf)
        rows.removeAll(keepingCapacity: true)
      }
      (leaf, last) = (next, row)
      rows.append(row)
    }
    walk.add(rows, leaf)
    return walk
  }

  /// nil: the table is not in order, so that a look for one of its rows may not find it.
  private func sumOfTable() throws -> RowSum? {
    let query = try Query(database, keys.statements.fetchRowsOfTable)
    var (sum, last): (RowSum, ItemKey?) = (RowSum(), nil)
    while try query.step() {
      // In order there is an end to the rows.
      guard let row = query.itemRow(at: 0), last.map({ $0 < row.key }) ?? true else { return nil }
      last = row.key
      sum.add(row)
    }
    return sum
  }
}

/// The sum of rows, in whichever order: equal in this process where the rows are the same.
package struct RowSum: Equatable {
  package private(set) var count: UInt64 = 0
  /// The sum of the rows' hashes, under a key of this process's own.
  private var hash = 0

  package init() {}

  package mutating func add(_ row: ItemRow) {
    count += 1
    hash &+= row.hashValue
  }
}
