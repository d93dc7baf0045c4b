package import Model
import Platform
package import VaultRecords

/// One of many changes of items that are made together. It concerns no secret's content.
package enum ItemEntryChange {
  case set(ItemKey, ItemEntry)
  case remove(ItemKey)

  package var id: ItemKey {
    switch self {
    case .set(let id, _), .remove(let id): id
    }
  }

  private static let tagOfSet: UInt8 = 16
  private static let tagOfRemove: UInt8 = 17

  /// - Throws: `tooLarge`.
  package static func encode(_ changes: [ItemEntryChange]) throws(StoreError) -> [UInt8] {
    var writer = FieldWriter(capacity: 4096)
    for change in changes {
      switch change {
      case .set(let id, let entry):
        let content = try entry.encoded()
        var item = FieldWriter(capacity: 16 + content.count)
        item.put(raw: id.high)
        item.put(raw: id.low)
        item.put(raw: content)
        writer.put(tagOfSet, item.bytes)
      case .remove(let id): writer.put(tagOfRemove, id)
      }
    }
    return writer.bytes
  }

  /// nil: these bytes are no list of changes. - Throws: `damaged`.
  package static func list(_ bytes: Span<UInt8>) throws(StoreError) -> [ItemEntryChange]? {
    guard !bytes.isEmpty, bytes[0] == tagOfSet || bytes[0] == tagOfRemove else { return nil }
    var changes: [ItemEntryChange] = []
    var reader = FieldReader(bytes)
    while let field = try reader.next() {
      switch field.tag {
      case tagOfSet:
        var item = FieldReader(field.bytes)
        let id = ItemKey(high: try item.integer(UInt64.self), low: try item.integer(UInt64.self))
        changes.append(.set(id, try ItemEntry(item.remainder, id)))
      case tagOfRemove: changes.append(.remove(try ItemKey(field.bytes).orDamaged()))
      default: throw .damaged(what: "a change of items")
      }
    }
    return changes
  }
}
