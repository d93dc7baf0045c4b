package import GRDB
import Platform
package import VaultRecords

/// The columns of all rows as a process has last seen them, with the hash tree over them: a later state is compared leaf by
/// leaf, and nothing is read of a leaf that is the same.
package final class KnownRows {
  private var layout: LeafLayout
  /// Of each leaf, in order.
  private var leaves: [[ItemRow]]
  /// Of each leaf, one after the other.
  private var digests: [UInt8]
  /// Of each page, one after the other, as in a manifest.
  private var pages: [UInt8] = []
  package private(set) var count: UInt64

  init(_ layout: LeafLayout, _ rows: [UInt64: [ItemRow]], _ digests: [UInt64: [UInt8]], _ keys: VaultKeys) {
    self.layout = layout
    leaves = (0..<layout.count).map { rows[$0]?.withoutRoom ?? [] }
    self.digests = (0..<layout.count).flatMap { digests[$0] ?? keys.digest(ofLeaf: $0, []) }
    count = leaves.reduce(0) { $0 + UInt64($1.count) }
    summarize(Set(0..<layout.pageCount), keys)
  }

  package func contains(_ row: ItemRow) -> Bool { leaves[Int(layout.leaf(of: row.tag))].contains(row) }

  /// The row with a tag; nil: there is none.
  package func row(with tag: ItemTag) -> ItemRow? {
    leaves[Int(layout.leaf(of: tag))].first { $0.tag == tag }
  }

  /// Takes over what this process has committed: the rows that it inserted (1) and deleted (-1). What another process has
  /// committed before, and is not known yet, remains a difference.
  package func take(_ changes: [ItemRow: Int], _ layout: LeafLayout, _ keys: VaultKeys) {
    divide(by: layout, keys)
    var changed: [UInt64: [ItemRow]] = [:]
    func rows(_ leaf: UInt64) -> [ItemRow] { changed[leaf] ?? leaves[Int(leaf)] }
    for (row, change) in changes where change < 0 {
      let leaf = layout.leaf(of: row.tag)
      changed[leaf] = rows(leaf).filter { $0.key != row.key }
    }
    for (row, change) in changes where change > 0 {
      let leaf = layout.leaf(of: row.tag)
      changed[leaf] = rows(leaf) + [row]
    }
    set(changed.mapValues { $0.sorted() }, keys)
  }

  private func set(_ changed: [UInt64: [ItemRow]], _ keys: VaultKeys) {
    for (leaf, rows) in changed {
      count = count &- UInt64(leaves[Int(leaf)].count) &+ UInt64(rows.count)
      leaves[Int(leaf)] = rows.withoutRoom
      digests.replaceSubrange([UInt8].rangeOfDigest(leaf), with: keys.digest(ofLeaf: leaf, rows))
    }
    summarize(Set(changed.keys.map { $0 / LeafLayout.leavesPerPage }), keys)
  }

  /// Divides the same rows among other leaves.
  private func divide(by new: LeafLayout, _ keys: VaultKeys) {
    guard new != layout else { return }
    let changed = layout.leavesChanged(in: new)
    let moved = changed.flatMap { $0 < layout.count ? leaves[Int($0)] : [] }
    var rows = Dictionary(grouping: moved) { new.leaf(of: $0.tag) }.mapValues { $0.sorted() }
    for leaf in changed where leaf < new.count { rows[leaf] = rows[leaf] ?? [] }
    let last = min(layout.pageCount, new.pageCount) - 1
    layout = new
    leaves.resize(to: Int(new.count), with: [])
    digests.resize(to: Int(new.count) * LeafLayout.digestSize, with: 0)
    pages.resize(to: Int(new.pageCount) * LeafLayout.digestSize, with: 0)
    count = leaves.reduce(0) { $0 + UInt64($1.count) }
    set(rows, keys)
    summarize([last], keys)
  }

  /// Makes the digests of pages of which leaves have changed.
  private func summarize(_ changed: Set<UInt64>, _ keys: VaultKeys) {
    pages.resize(to: Int(layout.pageCount) * LeafLayout.digestSize, with: 0)
    for page in changed {
      let digest = keys.digest(ofPage: page, digests(ofPage: page))
      pages.replaceSubrange([UInt8].rangeOfDigest(page), with: digest)
    }
  }

  private func digests(ofPage page: UInt64) -> [UInt8] {
    layout.leaves(ofPage: page).flatMap { digests.digest(at: $0) }
  }
}

extension KnownRows {
  /// How the rows that are there differ from those that are known.
  package struct Difference {
    /// The rows of the leaves that have changed, each proven.
    fileprivate var leaves: [UInt64: [ItemRow]] = [:]
    /// Rows that are new, or have another revision or tag.
    package fileprivate(set) var present: [ItemRow] = []
    /// The keys of rows that were known, of which the leaf has no row any more.
    package fileprivate(set) var gone: Set<ItemKey> = []
  }

  /// nil: the leaves that have changed are not those that the manifest answers for. Of the others nothing is read.
  package func difference(
    to manifest: Manifest, _ database: Database, _ keys: VaultKeys
  ) throws -> Difference? {
    divide(by: manifest.leaves, keys)
    var difference = Difference()
    let isProven = try isFalseWhereDamaged {
      let table = DigestTable(database: database, keys: keys)
      for page in 0..<layout.pageCount where pages.digest(at: page) != manifest.pages.digest(at: page) {
        guard try compare(page, table, manifest, &difference) else { return false }
      }
      return true
    }
    difference.gone.subtract(difference.present.map(\.key))
    return isProven ? difference : nil
  }

  private func compare(
    _ page: UInt64, _ table: DigestTable, _ manifest: Manifest, _ difference: inout Difference
  ) throws -> Bool {
    guard let stored = try table.fetch(page, layout, manifest.pages) else { return false }
    for leaf in layout.leaves(ofPage: page) {
      let digest = stored.digest(at: leaf % LeafLayout.leavesPerPage)
      guard digest != digests.digest(at: leaf) else { continue }
      guard let rows = try table.rows(of: leaf, layout), table.keys.digest(ofLeaf: leaf, rows)[...] == digest
      else { return false }
      difference.add(leaf, rows, since: leaves[Int(leaf)])
    }
    return true
  }

  /// Takes over the rows of a difference that was found last.
  package func take(_ difference: Difference, _ keys: VaultKeys) { set(difference.leaves, keys) }
}

extension KnownRows.Difference {
  fileprivate mutating func add(_ leaf: UInt64, _ rows: [ItemRow], since known: [ItemRow]) {
    leaves[leaf] = rows
    let former = Set(known)
    present += rows.filter { !former.contains($0) }
    gone.formUnion(known.map(\.key))
    gone.subtract(rows.map(\.key))
  }
}

extension LeafLayout {
  fileprivate func leaves(ofPage page: UInt64) -> Range<UInt64> {
    let first = page * Self.leavesPerPage
    return first..<min(first + Self.leavesPerPage, count)
  }
}

extension Array {
  fileprivate mutating func resize(to size: Int, with element: Element) {
    while count > size { removeLast() }
    while count < size { append(element) }
  }
}
