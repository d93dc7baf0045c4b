import Model

/// The attributes of an item as a client gave them, and as they come back.
///
/// The keychain has identities, and attributes beside them; a client has attributes only. `ServiceItem` converts both, by the
/// table of schemas. What that adds to the client's attributes is noted in the item, so that the client gets what it gave.
enum StoredAttributes {
  typealias Attributes = SecretSchema.Attributes

  /// The names of the attributes that the client did not give, with NUL between them.
  private static let omitted: ExactString = "keyhole.omitted"
  /// Notes that the client gave libsecret's schema for no schema, which `ServiceItem` leaves out.
  private static let hasGenericSchema: ExactString = "keyhole.generic-schema"
  /// The type of the content, where it is not plain text.
  private static let contentType: ExactString = "keyhole.content-type"
  private static let own = "keyhole."
  /// The type that clients take as the default.
  static let plainText = "text/plain"

  /// The attributes of an item, as its client gave them.
  static func attributes(of item: Item) -> Attributes {
    let omitted =
      item.attributes[omitted].map { Set($0.split(separator: 0).map { ExactString(utf8: $0) }) } ?? []
    var attributes = ServiceItem(item).attributes.filter { name, _ in
      !name.utf8.starts(with: own.utf8) && !omitted.contains(name)
    }
    if item.attributes[hasGenericSchema] != nil, attributes[SecretSchema.attribute] == nil {
      attributes[SecretSchema.attribute] = SecretSchema.none
    }
    return attributes
  }

  static func label(of item: Item) -> String { ServiceItem(item).label }

  static func contentType(of item: Item) -> String {
    item.attributes[contentType].map { String(decoding: $0, as: UTF8.self) } ?? plainText
  }

  /// Gives an item the label and the attributes of a client; its protection stays as it is.
  ///
  /// `isApart`: the item gets no identity of a generic or internet password, because another one has that.
  static func change(
    _ item: inout Item, label: String, attributes: Attributes, contentType type: String? = nil,
    isApart: Bool = false
  ) {
    let ofAttributes: Set<ExactString> = [omitted, hasGenericSchema]
    let kept = item.attributes.filter {
      $0.key.utf8.starts(with: own.utf8) && !ofAttributes.contains($0.key)
    }
    let read = ServiceItem(label: label, attributes: attributes).item(item.id)
    (item.identity, item.label, item.attributes) = (read.identity, read.label, read.attributes)
    if attributes[SecretSchema.attribute] == SecretSchema.none {
      item.attributes[hasGenericSchema] = [UInt8(ascii: "1")]
    }
    if !isApart {
      let added = Self.attributes(of: item).keys.filter { attributes[$0] == nil }.sorted()
      if !added.isEmpty { item.attributes[omitted] = Array(added.map(\.string).joined(separator: "\0").utf8) }
    }
    if isApart || Self.attributes(of: item) != attributes {
      (item.identity, item.label) = (.other(label: ExactString(label)), nil)
      // As bytes, they are no schema that would be left out.
      item.attributes = attributes.mapValues { Array($0.utf8) }
    }
    item.attributes.merge(kept) { new, _ in new }
    if let type { item.attributes[contentType] = type == plainText ? nil : Array(type.utf8) }
  }

  /// nil: a name is one of Keyhole's own, which clients can't set.
  static func attributes(_ entries: [(String, String)]) -> Attributes? {
    guard !entries.contains(where: { $0.0.hasPrefix(own) }) else { return nil }
    return Dictionary(entries.map { (ExactString($0), ExactString($1)) }) { _, last in last }
  }
}
