import Model
import SecretServiceProtocol
import Store

/// The attributes of an item as a client gave them, and as they come back.
///
/// The keychain has identities, and attributes beside them; a client has attributes only. `ServiceItem` converts both, by the
/// table of schemas, and notes in the item what that adds to the client's attributes.
enum StoredAttributes {
  typealias Attributes = SecretSchema.Attributes

  private static let own = "keyhole."
  /// So many bytes may the names and values of an item's attributes have.
  static let mostBytes = 1 << 20
  /// The type that clients take as the default.
  static let plainText = "text/plain"

  /// The attributes of an item, as its client gave them.
  static func attributes(of item: Item) -> Attributes { ServiceItem.attributes(of: item) }

  static func label(of item: Item) -> String { ServiceItem.label(of: item) }

  static func contentType(of item: Item) -> String {
    item.attributes[Item.contentTypeAttribute].map { String(decoding: $0, as: UTF8.self) } ?? plainText
  }

  /// The collection that has the item. One with a name that no collection can have is of none but `login`.
  static func collection(of item: Item) -> ServiceObject.Collection {
    let name = item.attributes[Item.collectionAttribute].map { String(decoding: $0, as: UTF8.self) }
    switch name.flatMap({ ServiceObject.Collection(name: $0) }) {
    case .further(let name)?: return .further(name)
    default: return .login
    }
  }

  /// Puts an item into a collection of the keychain.
  static func place(_ item: inout Item, in collection: ServiceObject.Collection) {
    guard case .further(let name) = collection else {
      item.attributes[Item.collectionAttribute] = nil
      return
    }
    item.attributes[Item.collectionAttribute] = Array(name.utf8)
  }

  /// Gives an item the label and the attributes of a client; its protection stays as it is.
  ///
  /// `distinction`: how the item differs from another one that has its identity.
  static func change(
    _ item: inout Item, label: String, attributes: Attributes, contentType type: String? = nil,
    distinction: Distinction = .none
  ) {
    let former = item
    let kept = item.attributesBesideClients
    let read = ServiceItem(label: label, attributes: attributes).item(item.id, isOfClient: true)
    (item.identity, item.label, item.attributes) = (read.identity, read.label, read.attributes)
    if distinction != .none || Self.attributes(of: item) != attributes {
      let name = ExactString(distinction.name(of: former, label))
      item.becomeOther(named: name, label: ExactString(label), attributes: attributes)
    }
    item.attributes.merge(kept) { new, _ in new }
    if former.isOfClient { noteClient(in: &item) }
    if let type { note(type, in: &item) }
  }

  /// Notes that a client made the item. Of the class `other` no note is needed: just its attributes count there.
  static func noteClient(in item: inout Item) {
    if item.identity.itemClass != .other { item.noteClient() }
  }

  /// Notes the type of an item's content; all else stays.
  static func note(_ type: String, in item: inout Item) {
    item.attributes[Item.contentTypeAttribute] = type == plainText ? nil : Array(type.utf8)
  }

  /// nil: a name is one of Keyhole's own, which clients can't set.
  static func attributes(_ entries: [(String, String)]) -> Attributes? {
    guard !entries.contains(where: { $0.0.utf8.starts(with: own.utf8) }) else { return nil }
    return Dictionary(entries.map { (ExactString($0), ExactString($1)) }) { _, last in last }
  }
}

/// How an item differs from another one that has the identity which its attributes and its label give.
///
/// Items of one label, or of the same attributes, are different items to a client; the keychain has one item of an identity.
enum Distinction: Equatable {
  /// There is no other one.
  case none
  /// It has the class `other`, and the label as its name.
  case label
  /// It has the class `other`, and its name is the label with a number.
  case number(Int)

  /// The name of the class `other` for an item with this label. An item that has such a name keeps it.
  fileprivate func name(of item: Item, _ label: String) -> String {
    guard case .number(let number) = self else { return label }
    if case .other(let name) = item.identity, item.label == ExactString(label) { return name.string }
    return Self.name(label, number)
  }

  private static func name(_ label: String, _ number: Int) -> String { "\(label) (\(number))" }

  /// Does a change of an item, which gets another identity as long as the present one is another item's.
  ///
  /// - Throws: as `body`.
  static func resolving<Value>(
    _ keychain: KeychainStore, label: String, _ body: (Distinction) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    for distinction in [Distinction.none, .label] {
      do throws(StoreError) { return try body(distinction) } catch {
        guard error == .exists else { throw error }
      }
    }
    // Another process may take the number at the same time.
    for _ in 0..<4 {
      let number = try freeNumber(keychain, label)
      do throws(StoreError) { return try body(.number(number)) } catch {
        guard error == .exists else { throw error }
      }
    }
    return try body(.number(.random(in: 1_000_000..<1_000_000_000)))
  }

  /// A number from 2 on that no item of this label has, found in steps that grow, as there may be thousands of them.
  private static func freeNumber(_ keychain: KeychainStore, _ label: String) throws(StoreError) -> Int {
    func isTaken(_ number: Int) throws(StoreError) -> Bool {
      try keychain.item(with: .other(label: ExactString(name(label, number)))) != nil
    }
    var (taken, free) = (1, 2)
    while try isTaken(free) { (taken, free) = (free, free * 2) }
    while free - taken > 1 {
      let middle = (taken + free) / 2
      if try isTaken(middle) { taken = middle } else { free = middle }
    }
    return free
  }
}
