package import VaultRecords

/// A collection as it was in one version of its head, opened.
package struct CollectionRecord: Hashable, Sendable {
  package struct Entry: Hashable, Sendable {
    package var id: ItemKey
    package var state: EntryState
    package var content: [UInt8]

    package init(id: ItemKey, state: EntryState, content: [UInt8]) {
      (self.id, self.state, self.content) = (id, state, content)
    }
  }

  package var head: CollectionHead
  /// How often the head was changed.
  package var version: UInt64
  /// The epoch that the head is sealed in.
  package var epoch: UInt32
  /// The revision that changed it last.
  package var modified: Int64
  package var entries: [Entry]

  package init(
    head: CollectionHead, version: UInt64, epoch: UInt32, modified: Int64, entries: [Entry]
  ) {
    (self.head, self.version, self.epoch) = (head, version, epoch)
    (self.modified, self.entries) = (modified, entries)
  }
}
