/// The first 16 bytes of HMAC(index key, an item's identity): what finds the item's row, and says which leaf it belongs to.
package struct ItemTag: Hashable {
  package var high: UInt64
  package var low: UInt64

  package init(high: UInt64, low: UInt64) {
    (self.high, self.low) = (high, low)
  }

  /// The first 16 of at least as many bytes.
  init(prefixOf bytes: [UInt8]) {
    high = bytes[0..<8].reduce(0) { $0 << 8 | UInt64($1) }
    low = bytes[8..<16].reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// nil: not 16 bytes.
  package init?(_ bytes: Span<UInt8>) {
    guard let words = ItemKey(bytes) else { return nil }
    (high, low) = (words.high, words.low)
  }

  package var bytes: [UInt8] { ItemKey(high: high, low: low).bytes }
}

/// The columns of an item's row for which the manifest answers.
package struct ItemRow: Hashable {
  package var tag: ItemTag
  package var key: ItemKey
  package var revision: UInt64

  package init(tag: ItemTag, key: ItemKey, revision: UInt64) {
    (self.tag, self.key, self.revision) = (tag, key, revision)
  }
}

extension ItemRow: Comparable {
  /// By tag, revision and key: the order of the table's index.
  package static func < (left: ItemRow, right: ItemRow) -> Bool {
    let (first, second) = (left.tag, right.tag)
    if first != second { return (first.high, first.low) < (second.high, second.low) }
    if left.revision != right.revision { return left.revision < right.revision }
    return left.key < right.key
  }
}
