public import Model

/// The changes by other processes in a keychain since its engine was last asked.
public enum ExternalChanges: Sendable {
  /// Nothing that shows.
  case none
  /// Single items as they are now, each once. One that is as it was known may be among them.
  case items([ItemNews])
  /// Any number of items may have changed: every item as it is now, and no other.
  case everything([Item])

  /// `none` where there is no news.
  public init(_ news: [ItemNews]) { self = news.isEmpty ? .none : .items(news) }

  /// The same changes with each item as `body` shows it; nil: it is not shown, and counts as gone.
  public func mapItems(_ body: (Item) -> Item?) -> ExternalChanges {
    switch self {
    case .none: .none
    case .items(let news): .items(news.map { ItemNews($0.id, $0.item.flatMap(body), origin: $0.origin) })
    case .everything(let items): .everything(items.compactMap(body))
    }
  }
}

/// The present state of an item after a change.
public struct ItemNews: Hashable, Sendable {
  /// The item that something happened to.
  public var id: ItemID
  /// nil: it is gone.
  public var item: Item?
  /// Whether this engine's calls or another process did it.
  public var origin: Change.Origin

  /// - Parameters:
  ///   - id: the item.
  ///   - item: the item as it is now; nil: it is gone.
  ///   - origin: whether this engine's calls or another process did it.
  public init(_ id: ItemID, _ item: Item?, origin: Change.Origin) {
    self.id = id
    self.item = item
    self.origin = origin
  }
}
