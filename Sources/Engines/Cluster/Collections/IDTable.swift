import VaultRecords

/// Values by their ids: rows without gaps, and a table of where they are, so that a value takes little more room than it has.
///
/// There is one for each entry of a collection, of which there may be a million; a `Dictionary` has room for up to three times
/// as many. The ids are random, or codes that are as good as random, so that no hash is needed.
struct IDTable<Value: Sendable>: Sendable {
  private var rows: [(id: ItemKey, value: Value)] = []
  /// A power of two of slots, of which at most seven eighths are taken: 1 more than the row of the id whose place it is, or of one
  /// before it (linear probing); 0: none.
  private var slots: [UInt32] = Array(repeating: 0, count: IDTable.fewestSlots)

  private static var fewestSlots: Int { 4 }

  init() {}

  /// The number of values.
  var count: Int { rows.count }

  /// The ids, in no particular order.
  var keys: [ItemKey] { rows.map(\.id) }

  subscript(id: ItemKey) -> Value? {
    let row = slots[slot(of: id)]
    return row == 0 ? nil : rows[Int(row) - 1].value
  }

  /// Makes room for so many values.
  mutating func reserveCapacity(_ count: Int) {
    rows.reserveCapacity(count)
    if slots.count < Self.slotCount(for: count) { spread(over: Self.slotCount(for: count)) }
  }

  /// Returns the value before; nil: there was none.
  @discardableResult mutating func updateValue(_ value: Value, forKey id: ItemKey) -> Value? {
    let slot = slot(of: id)
    if let row = row(in: slot) {
      defer { rows[row].value = value }
      return rows[row].value
    }
    // An array that grows by itself would get twice the room.
    if rows.count == rows.capacity { rows.reserveCapacity(rows.count + rows.count / 8 + 4) }
    rows.append((id, value))
    slots[slot] = UInt32(clamping: rows.count)
    if Self.slotCount(for: rows.count) > slots.count { spread(over: slots.count * 2) }
    return nil
  }

  /// Returns the value; nil: there was none.
  @discardableResult mutating func removeValue(forKey id: ItemKey) -> Value? {
    let slot = slot(of: id)
    guard let row = row(in: slot) else { return nil }
    // The last row takes the place of the one that goes.
    let last = rows.count - 1
    slots[self.slot(of: rows[last].id)] = slots[slot]
    rows.swapAt(row, last)
    let value = rows[last].value
    close(slot)
    _ = rows.popLast()
    if slots.count > Self.fewestSlots, rows.count * 8 < slots.count {
      rows = Array(rows)
      spread(over: slots.count / 2)
    }
    return value
  }
}

extension IDTable {
  private static func slotCount(for count: Int) -> Int {
    var slots = fewestSlots
    while slots * 7 < count * 8 { slots *= 2 }
    return slots
  }

  private func place(of id: ItemKey) -> Int { Int(truncatingIfNeeded: id.low) & (slots.count - 1) }

  /// The slot of an id, or the free one where it would be.
  private func slot(of id: ItemKey) -> Int {
    var slot = place(of: id)
    while let row = row(in: slot), rows[row].id != id { slot = (slot + 1) & (slots.count - 1) }
    return slot
  }

  private func row(in slot: Int) -> Int? { slots[slot] == 0 ? nil : Int(slots[slot]) - 1 }

  private mutating func spread(over count: Int) {
    slots = Array(repeating: 0, count: count)
    for row in rows.indices { slots[slot(of: rows[row].id)] = UInt32(clamping: row + 1) }
  }

  /// The slots behind a gap move up, as far as their own place lets them.
  private mutating func close(_ gap: Int) {
    let mask = slots.count - 1
    var (gap, next) = (gap, (gap + 1) & mask)
    slots[gap] = 0
    while let row = row(in: next) {
      let distance = (next - place(of: rows[row].id)) & mask
      if distance >= (next - gap) & mask {
        (slots[gap], slots[next]) = (slots[next], 0)
        gap = next
      }
      next = (next + 1) & mask
    }
  }
}

extension IDTable: Sequence {
  /// Goes over ids and values, in no particular order.
  func makeIterator() -> Array<(id: ItemKey, value: Value)>.Iterator { rows.makeIterator() }

  var underestimatedCount: Int { rows.count }
}
