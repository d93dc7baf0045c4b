import ClusterRecords
import Model
import VaultRecords

/// The type of a collection's entries.
protocol CollectionContent {
  /// The part of an entry that stays in memory.
  associatedtype Kept: Sendable
  /// The value that is made of all entries.
  associatedtype View: CollectionView where View.Content == Self

  /// - Throws: `damaged`.
  init(_ bytes: Span<UInt8>, _ id: ItemKey) throws(StoreError)

  /// - Throws: `tooLarge`, `invalidValue`.
  func encoded() throws(StoreError) -> [UInt8]

  var kept: Kept { get }
}

/// A value that is made of the entries of a collection, and follows their changes.
protocol CollectionView: Sendable {
  associatedtype Content: CollectionContent

  init()
  mutating func put(_ id: ItemKey, _ content: Content, replacing old: Content.Kept?)
  mutating func remove(_ id: ItemKey, _ old: Content.Kept)
}

/// A change of one entry.
struct CollectionEdit<Content: CollectionContent> {
  var id: ItemKey
  /// nil: the entry goes.
  var content: Content?

  init(_ id: ItemKey, _ content: Content?) {
    (self.id, self.content) = (id, content)
  }
}
