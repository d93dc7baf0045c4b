import Model
import SecretServiceProtocol
import Store

/// The items of the keychain by their attributes, for searches.
///
/// It has digests of names with values, and which items have them; whether an item really matches is asked of the item.
struct AttributeIndex: Sendable {
  private var items: [Int: Set<ItemID>] = [:]
  private var known: [ItemID: Known] = [:]
  /// How many items the collections have.
  private var counts: [ServiceObject.Collection: Int] = [:]

  private struct Known: Sendable {
    let digests: [Int]
    let collection: ServiceObject.Collection
  }

  init(_ all: some Collection<Item>) {
    known.reserveCapacity(all.count)
    for item in all { insert(item) }
  }

  /// The items of a collection.
  func items(of collection: ServiceObject.Collection) -> [ItemID] {
    known.filter { $0.value.collection == collection }.map(\.key)
  }

  /// nil: the item is not known.
  func collection(of id: ItemID) -> ServiceObject.Collection? { known[id]?.collection }

  /// The further collections that items name.
  var namedCollections: Set<String> {
    Set(counts.keys.compactMap { if case .further(let name) = $0 { name } else { nil } })
  }

  /// The items that may have all these attributes; all items where there are none.
  func candidates(for attributes: StoredAttributes.Attributes) -> [ItemID] {
    let sets = attributes.withoutGenericSchema.map { items[Self.digest($0.key, $0.value)] ?? [] }.sorted {
      $0.count < $1.count
    }
    guard let smallest = sets.first else { return Array(known.keys) }
    return smallest.filter { id in sets.dropFirst().allSatisfy { $0.contains(id) } }
  }

  /// Puts the item in the place of what was known of it.
  mutating func insert(_ item: Item) {
    remove(item.id)
    let digests = StoredAttributes.attributes(of: item).map { Self.digest($0.key, $0.value) }
    let collection = StoredAttributes.collection(of: item)
    known[item.id] = Known(digests: digests, collection: collection)
    counts[collection, default: 0] += 1
    for digest in digests { items[digest, default: []].insert(item.id) }
  }

  mutating func remove(_ id: ItemID) {
    guard let former = known.removeValue(forKey: id) else { return }
    for digest in former.digests {
      items[digest]?.remove(id)
      if items[digest]?.isEmpty == true { items[digest] = nil }
    }
    let left = counts[former.collection, default: 1] - 1
    counts[former.collection] = left == 0 ? nil : left
  }

  private static func digest(_ name: ExactString, _ value: ExactString) -> Int {
    var hasher = Hasher()
    hasher.combine(name)
    hasher.combine(value)
    return hasher.finalize()
  }
}
