package import Model
package import VaultRecords

// All items, some at a time.
extension ItemTable {
  /// The place of a walk over the rows of one state of the database, and what it has found.
  package struct Walk {
    /// The key of the last row that was read.
    fileprivate var last: ItemKey?
    /// The sum of the rows so far.
    package fileprivate(set) var sum = RowSum()
    package fileprivate(set) var damaged: [ItemKey] = []
    /// A row has no key or no tag, or the rows are not in order: then they are no more than the walk has found.
    package fileprivate(set) var isBroken = false

    package init() {}
  }

  /// Reads the next rows, at most `limit`; empty: there are no more that open.
  package func next(_ limit: Int, _ walk: inout Walk) throws -> [Item] {
    var items: [Item] = []
    items.reserveCapacity(limit)
    while items.isEmpty, try read(limit, &walk, into: &items) == limit {}
    return items
  }

  /// - Returns: how many rows were read.
  private func read(_ limit: Int, _ walk: inout Walk, into items: inout [Item]) throws -> Int {
    guard !walk.isBroken else { return 0 }
    let metadata = keys.metadata
    let query = try Query(database, keys.statements.fetchItemsAfter)
    query.bind(1, walk.last?.bytes ?? [])
    query.bind(2, UInt64(limit))
    var count = 0
    while try query.step() {
      guard let row = query.itemRow(at: 0), walk.last.map({ $0 < row.key }) ?? true else {
        walk.isBroken = true
        return 0
      }
      count += 1
      walk.last = row.key
      walk.sum.add(row)
      do {
        items.append(try open(query.bytes(3), row, under: metadata).record.item)
      } catch StoreError.damaged {
        walk.damaged.append(row.key)
      }
    }
    return count
  }
}
