package import Model
import Platform
package import VaultRecords

/// A state that an item had, as the item's entry holds it. Its secrets stay where they are as long as it is kept.
package struct ItemVersionRecord: Hashable, Sendable {
  /// The version that the head of the items got with the commit that replaced the state.
  package let number: UInt64
  /// When that was.
  package let replaced: Timestamp
  /// The parts that the commit changed, as `VersionChanges` has them.
  package let changes: UInt8
  /// The state, encoded: it is looked at rarely.
  private var content: [UInt8]

  /// The state of an entry, without the states before it. - Throws: `tooLarge`.
  package init(_ entry: ItemEntry, _ end: ItemEntryChange.Replacement) throws(StoreError) {
    (number, replaced, changes) = (end.number, end.time, end.changes)
    content = try entry.encodedState()
  }

  private enum Tag {
    static let number: UInt8 = 1
    static let replaced: UInt8 = 2
    static let changes: UInt8 = 3
    static let content: UInt8 = 4
  }

  /// In bytes, as it is stored.
  package var size: Int { content.count + 64 }

  var encoded: [UInt8] {
    var writer = FieldWriter(capacity: size)
    writer.put(Tag.number, number)
    writer.put(Tag.replaced, ItemRecord.encode(replaced))
    writer.put(Tag.changes, changes)
    writer.put(Tag.content, content)
    return writer.bytes
  }

  /// - Throws: `damaged`.
  init(_ bytes: Span<UInt8>) throws(StoreError) {
    var (number, replaced): (UInt64?, Timestamp?) = (nil, nil)
    var (changes, content): (UInt8?, [UInt8]?) = (nil, nil)
    var reader = FieldReader(bytes)
    while let field = try reader.next() {
      switch field.tag {
      case Tag.number: number = try field.integer(UInt64.self)
      case Tag.replaced: replaced = try ItemRecord.time(field)
      case Tag.changes: changes = try field.integer(UInt8.self)
      case Tag.content: content = field.bytes.array
      default: throw .damaged(what: "an earlier state of an item")
      }
    }
    (self.number, self.replaced) = (try number.orDamaged(), try replaced.orDamaged())
    (self.changes, self.content) = (try changes.orDamaged(), try content.orDamaged())
  }

  /// The item as it was. - Throws: `damaged`.
  package func state(of key: ItemKey) throws(StoreError) -> ItemEntry {
    let state = try ItemEntry(content.span, key)
    guard !state.isRemoved, state.versions.isEmpty else {
      throw .damaged(what: "an earlier state of an item")
    }
    return state
  }

  /// Stores the same state with other keys. - Throws: `tooLarge`.
  package mutating func setState(_ entry: ItemEntry) throws(StoreError) { content = try entry.encodedState() }
}

extension [ItemVersionRecord] {
  /// The most that the states of one item take together, in bytes; older ones are dropped.
  private static let largestSize = 128 << 10

  /// Those that are kept, where no more than `most` are, and none that was replaced before `oldest`.
  ///
  /// A clock that was set back must not leave older ones than are dropped.
  package func kept(most: Int, since oldest: Timestamp) -> [ItemVersionRecord] {
    let recent = suffix(Swift.max(0, most)).drop { $0.replaced < oldest }
    var size = 0
    return recent.reversed().prefix { version in
      size &+= version.size
      return size <= Self.largestSize
    }.reversed()
  }
}
