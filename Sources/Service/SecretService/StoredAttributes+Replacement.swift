import Model
import Store

extension StoredAttributes {
  /// The change of an item when a client stores another one in its place (CreateItem with `replace`).
  ///
  /// The draft says "an item with the same attributes". To a client, an item that has these and others is another one. But an item
  /// that Keyhole made is the same password where the attributes give its identity (a service and an account, a server and a user): its
  /// further attributes are no client's.
  struct Replacement: Equatable {
    /// The attributes that the item has then: each search that found it before or finds the client's item finds it.
    let attributes: Attributes

    /// nil: it is not the item that the client means.
    ///
    /// These are replaced: an item that has just the wanted attributes, with libsecret's schema for none or without it; and one of
    /// the same identity that no client made, unless it has another value for one of the wanted ones.
    init?(of present: Item, label: String, by wanted: Attributes) {
      let known = StoredAttributes.attributes(of: present)
      if known.withoutGenericSchema == wanted.withoutGenericSchema {
        attributes = wanted
        return
      }
      if case .other = present.identity { return nil }
      guard StoredAttributes.identity(of: wanted, label: label) == present.identity else { return nil }
      // A client searches by just the attributes that it gave; an item with other ones is none of its own.
      guard !present.isOfClient else { return nil }
      if known.has(wanted) {
        attributes = known
        return
      }
      let own = known.filter { present.attributes[$0.key] != nil }
      // Keyhole's schema of internet passwords gives way to the client's.
      let fixed = known.filter { $0.key != SecretSchema.attribute || own[$0.key] != nil }
      guard fixed.allSatisfy({ wanted[$0.key] == nil || wanted[$0.key] == $0.value }) else { return nil }
      // The client's schema may have no room for what Keyhole stores besides the identity.
      let candidates = [
        wanted.merging(known) { wanted, _ in wanted }, wanted.merging(own) { wanted, _ in wanted }, wanted,
      ]
      let fitting = candidates.first {
        StoredAttributes.identity(of: $0, label: label) == present.identity
      }
      guard let fitting else { return nil }
      attributes = fitting
    }
  }

  /// The identity of a new item with these attributes.
  static func identity(of attributes: Attributes, label: String) -> ItemIdentity {
    var item = Item(
      id: ItemID(rawValue: ""), identity: .other(label: ""), created: Timestamp(seconds: 0),
      modified: Timestamp(seconds: 0))
    change(&item, label: label, attributes: attributes)
    return item.identity
  }
}
