import BusServer
import Model
import SecretMemory
import SecretServiceProtocol

/// The collection `session`: items in memory, which are gone with the service.
struct SessionCollection {
  /// An item without a place in the keychain.
  struct Entry {
    var label: String
    var attributes: StoredAttributes.Attributes
    var secret: BusBytes
    var contentType: String
    let created: Int64
    var modified: Int64

    /// The bytes of all that a client has given.
    fileprivate var size: Int {
      secret.secret.count + label.utf8.count + contentType.utf8.count
        + attributes.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    }
  }

  /// So many items, and so many bytes of secrets, labels and attributes.
  private static let (mostItems, mostBytes) = (1_000, 4 << 20)

  private var entries: [String: Entry] = [:]
  let created = Timestamp.now.seconds

  subscript(name: String) -> Entry? {
    get { entries[name] }
    set { entries[name] = newValue }
  }

  /// In the order in which they were made.
  var names: [String] { entries.keys.sorted { (Int($0) ?? 0) < (Int($1) ?? 0) } }

  func search(_ attributes: StoredAttributes.Attributes) -> [String] {
    names.filter { name in
      attributes.allSatisfy { entries[name]?.attributes[$0.key] == $0.value }
    }
  }

  /// - Throws: `ProtocolError` where there is no room for an item, new or in the place of the one that has its name.
  func requireRoom(for entry: Entry, as name: String) throws(ProtocolError) {
    let others = entries.filter { $0.key != name }
    let bytes = others.values.reduce(0) { $0 + $1.size }
    guard others.count < Self.mostItems, bytes &+ entry.size <= Self.mostBytes else {
      throw .tooMany("the collection `session` is full")
    }
  }
}
