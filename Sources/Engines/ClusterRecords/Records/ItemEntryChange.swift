package import Model
package import VaultRecords

/// A change of an item's entry. Every process that makes it, at whatever time, gets the same entry of the one before.
package struct ItemEntryChange {
  package enum Content {
    /// The item as it is from now on. The states that it had stay; with `replacesVersions`, they are those of the entry.
    ///
    /// A removed item is there again: its last version, which it was made of, goes.
    case set(ItemEntry, replacesVersions: Bool)
    case remove
    /// The item stays, or stays removed.
    case stay
  }

  /// The end of a state that is kept.
  package struct Replacement: Hashable, Sendable {
    package var number: UInt64
    package var time: Timestamp
    package var changes: UInt8

    package init(number: UInt64, time: Timestamp, changes: UInt8) {
      (self.number, self.time, self.changes) = (number, time, changes)
    }
  }

  /// The states that are kept of the item.
  package struct Limit: Hashable, Sendable {
    package var most: UInt32
    /// None that was replaced before.
    package var oldest: Timestamp

    package init(most: Int, oldest: Timestamp) {
      (self.most, self.oldest) = (UInt32(clamping: most), oldest)
    }

    package static let nothing = Limit(most: 0, oldest: Timestamp(seconds: 0))
  }

  package var id: ItemKey
  package var content: Content
  /// nil: what the item was is not kept.
  package var kept: Replacement?
  /// nil: as many as there are.
  package var limit: Limit?

  package init(_ id: ItemKey, _ content: Content, kept: Replacement? = nil, limit: Limit? = nil) {
    (self.id, self.content, self.kept, self.limit) = (id, content, kept, limit)
  }

  /// The entry after the change; nil: there is none any more. - Throws: `tooLarge`.
  package func entry(after old: ItemEntry?) throws(StoreError) -> ItemEntry? {
    var versions = old?.versions ?? []
    if case .set(_, replacesVersions: false) = content, old?.isRemoved == true { _ = versions.popLast() }
    if case .set(let entry, replacesVersions: true) = content { versions = entry.versions }
    if let kept, let old { versions.append(try ItemVersionRecord(old, kept)) }
    if let limit { versions = versions.kept(most: Int(limit.most), since: limit.oldest) }
    switch content {
    case .set(var entry, _):
      (entry.versions, entry.isRemoved) = (versions, false)
      return entry
    case .remove:
      guard var entry = old, kept != nil, !versions.isEmpty else { return nil }
      (entry.versions, entry.isRemoved) = (versions, true)
      return entry
    case .stay:
      guard var entry = old, !entry.isRemoved || !versions.isEmpty else { return nil }
      entry.versions = versions
      return entry
    }
  }
}

extension ItemEntryChange {
  private enum Tag {
    /// Of a change in a part of a journal.
    static let change: UInt8 = 16
    static let entry: UInt8 = 1
    static let replacesVersions: UInt8 = 2
    static let remove: UInt8 = 3
    static let kept: UInt8 = 4
    static let limit: UInt8 = 5
  }

  /// - Throws: `tooLarge`.
  package static func encode(_ changes: [ItemEntryChange]) throws(StoreError) -> [UInt8] {
    var writer = FieldWriter(capacity: 4096)
    for change in changes { writer.put(Tag.change, try change.encoded()) }
    return writer.bytes
  }

  private func encoded() throws(StoreError) -> [UInt8] {
    var writer = FieldWriter(capacity: 512)
    writer.put(raw: id.high)
    writer.put(raw: id.low)
    switch content {
    case .set(let entry, let replacesVersions):
      writer.put(Tag.entry, replacesVersions ? try entry.encoded() : try entry.encodedState())
      if replacesVersions { writer.put(Tag.replacesVersions, [UInt8]()) }
    case .remove: writer.put(Tag.remove, [UInt8]())
    case .stay: break
    }
    if let kept {
      var field = FieldWriter(capacity: 24)
      field.put(raw: kept.number)
      field.put(raw: ItemRecord.encode(kept.time))
      field.put(raw: kept.changes)
      writer.put(Tag.kept, field.bytes)
    }
    if let limit {
      var field = FieldWriter(capacity: 16)
      field.put(raw: limit.most)
      field.put(raw: ItemRecord.encode(limit.oldest))
      writer.put(Tag.limit, field.bytes)
    }
    return writer.bytes
  }

  /// nil: these bytes are no list of changes. - Throws: `damaged`.
  package static func list(_ bytes: Span<UInt8>) throws(StoreError) -> [ItemEntryChange]? {
    guard !bytes.isEmpty, bytes[0] == Tag.change else { return nil }
    var changes: [ItemEntryChange] = []
    var reader = FieldReader(bytes)
    while let field = try reader.next() {
      guard field.tag == Tag.change else { throw .damaged(what: "a change of items") }
      changes.append(try ItemEntryChange(field.bytes))
    }
    return changes
  }

  private init(_ bytes: Span<UInt8>) throws(StoreError) {
    var reader = FieldReader(bytes)
    let id = ItemKey(high: try reader.integer(UInt64.self), low: try reader.integer(UInt64.self))
    self.init(id, .stay)
    var (entry, replacesVersions): (ItemEntry?, Bool) = (nil, false)
    while let field = try reader.next() {
      var part = FieldReader(field.bytes)
      switch field.tag {
      case Tag.entry: entry = try ItemEntry(field.bytes, id)
      case Tag.replacesVersions: replacesVersions = true
      case Tag.remove: content = .remove
      case Tag.kept:
        kept = Replacement(
          number: try part.integer(UInt64.self), time: try ItemRecord.time(&part),
          changes: try part.integer(UInt8.self))
      case Tag.limit:
        limit = Limit(most: Int(try part.integer(UInt32.self)), oldest: try ItemRecord.time(&part))
      default: throw .damaged(what: "a change of items")
      }
    }
    if let entry { content = .set(entry, replacesVersions: replacesVersions) }
  }
}
