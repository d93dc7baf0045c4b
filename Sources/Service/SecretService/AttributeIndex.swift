import Model
import Store

/// The items of the keychain by their attributes, for searches.
///
/// It has digests of names with values, and which items have them; whether an item really matches is asked of the item.
struct AttributeIndex {
  private var items: [Int: Set<ItemID>] = [:]
  private var known: [ItemID: [Int]] = [:]

  init(_ all: some Collection<Item>) {
    known.reserveCapacity(all.count)
    for item in all { insert(item) }
  }

  /// Every item.
  var all: [ItemID] { Array(known.keys) }

  func contains(_ id: ItemID) -> Bool { known[id] != nil }

  /// The items that may have all these attributes; all items where there are none.
  func candidates(for attributes: StoredAttributes.Attributes) -> [ItemID] {
    let sets = attributes.map { items[Self.digest($0.key, $0.value)] ?? [] }.sorted { $0.count < $1.count }
    guard let smallest = sets.first else { return all }
    return smallest.filter { id in sets.dropFirst().allSatisfy { $0.contains(id) } }
  }

  /// Puts the item in the place of what was known of it.
  mutating func insert(_ item: Item) {
    remove(item.id)
    let digests = StoredAttributes.attributes(of: item).map { Self.digest($0.key, $0.value) }
    known[item.id] = digests
    for digest in digests { items[digest, default: []].insert(item.id) }
  }

  mutating func remove(_ id: ItemID) {
    for digest in known.removeValue(forKey: id) ?? [] {
      items[digest]?.remove(id)
      if items[digest]?.isEmpty == true { items[digest] = nil }
    }
  }

  private static func digest(_ name: ExactString, _ value: ExactString) -> Int {
    var hasher = Hasher()
    hasher.combine(name)
    hasher.combine(value)
    return hasher.finalize()
  }
}
