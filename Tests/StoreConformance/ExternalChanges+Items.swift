public import Model
public import Store

extension ExternalChanges {
  /// The items after the changes, in no particular order; nil: there are none. `known`: the items before.
  public func items(since known: [Item] = []) -> [Item]? {
    switch self {
    case .none: return nil
    case .everything(let items): return items
    case .items(let news):
      var present = Dictionary(known.map { ($0.id, $0) }) { _, last in last }
      for news in news { present[news.id] = news.item }
      return Array(present.values)
    }
  }
}
