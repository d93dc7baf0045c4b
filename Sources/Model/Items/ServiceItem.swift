/// An item as a Secret Service has it: a label and attributes, all of them strings.
package struct ServiceItem: Hashable, Sendable {
  /// The label.
  package var label: String
  /// The attributes, those of the identity among them.
  package var attributes: [ExactString: ExactString]

  /// An item as the service gives it.
  package init(label: String, attributes: [ExactString: ExactString]) {
    self.label = label
    self.attributes = attributes
  }
}

/// The names of attributes that are no part of an identity (`SecretSchema` has those).
private enum Name {
  static let own = "keyhole."
  static let accessible: ExactString = "keyhole.accessible"
  static let access: ExactString = "keyhole.access"
  static let programs: ExactString = "keyhole.programs"
  static let lineEnd: ExactString = "keyhole.eol"
  static let sealed: ExactString = "keyhole.sealed"
  /// The class, where the other attributes alone would give another one, or that of Keyhole 0.1.
  static let itemClass: ExactString = "keyhole.class"
  /// The name of an item of the class `other`, where it is not the label.
  static let name: ExactString = "keyhole.name"
  static let genericSchema = ExactString(bytes + Item.genericSchemaAttribute.string)
  /// The prefix of attributes for bytes that no string can hold, in hexadecimal digits.
  static let bytes = "keyhole.bytes."
}

// MARK: From the service

extension ServiceItem {
  /// The item that this is in Keyhole's terms; times, size and the rest are the caller's to add.
  ///
  /// The item has notes of what a client did not give, so that it is stored again as it was. Attributes that no item of a class
  /// with an identity can give back make one of the class `other`.
  ///
  /// `isOfClient`: the attributes are just those that a client gave. A keyring of another program gives an item without a schema
  /// `SecretSchema.none` after a while, so there it counts only where Keyhole has stored it.
  package func item(_ id: ItemID, isOfClient: Bool = false) -> Item {
    let match = match
    var item = decoded(id, match, isOfClient: isOfClient)
    var given = ownAttributes
    if !item.hasGenericSchema, given[SecretSchema.attribute] == SecretSchema.none {
      given[SecretSchema.attribute] = nil
    }
    let present = item.omittedNames
    item.omittedNames = present.union(Self.stored(item).keys.filter { given[$0] == nil && !$0.isOwn })
    // An item that is sealed, or was stored with its class, keeps its identity.
    guard let match, attributes[Name.itemClass] == nil, attributes[Name.sealed] == nil, present.isEmpty else {
      return item
    }
    let isShown = given.keys.allSatisfy { match.names.contains($0) || !match.identity.hasPart($0) }
    guard !isShown || Self.stored(item).filter({ !$0.key.isOwn }) != given else { return item }
    return decoded(id, nil, isOfClient: isOfClient)
  }

  /// The attributes without those that are Keyhole's.
  private var ownAttributes: SecretSchema.Attributes { attributes.filter { !$0.key.isOwn } }

  /// `match`: the identity and where it stands; nil: the class `other`.
  private func decoded(_ id: ItemID, _ match: SecretSchema.Match?, isOfClient: Bool) -> Item {
    var rest = attributes.filter { match?.names.contains($0.key) != true && $0.key != Name.itemClass }
    // Of two items with the same label one has another name.
    let name = rest.removeValue(forKey: Name.name) ?? ExactString(label)
    let identity = match?.identity ?? .other(label: name)
    let isGeneric = rest[SecretSchema.attribute] == SecretSchema.none
    if isGeneric { rest[SecretSchema.attribute] = nil }
    var item = Item(
      id: id, identity: identity, created: Timestamp(seconds: 0), modified: Timestamp(seconds: 0))
    item.label = shownLabel(of: identity)
    let accessible = rest.removeValue(forKey: Name.accessible)
    item.accessibility = accessible.flatMap { Accessibility(rawValue: $0.string) } ?? .whenUnlocked
    // Flags that can't be read must not count as none.
    item.access =
      rest.removeValue(forKey: Name.access).map { AccessFlags(text: $0.string) ?? [.userPresence] } ?? []
    item.programs = rest.removeValue(forKey: Name.programs)
    item.keepsLineEnd = rest.removeValue(forKey: Name.lineEnd) == "exact"
    item.isSealed = rest.removeValue(forKey: Name.sealed) == "true"
    item.attributes = Dictionary(rest.map(Self.shown), uniquingKeysWith: { first, _ in first })
    item.hasGenericSchema = isGeneric && (isOfClient || item.hasGenericSchema)
    return item
  }

  private var identity: ItemIdentity { item(ItemID(rawValue: "")).identity }

  /// nil: an item of the class `other`.
  private var match: SecretSchema.Match? {
    let itemClass = attributes[Name.itemClass]
    guard itemClass != ExactString(ItemClass.other.rawValue) else { return nil }
    // The vault knows the seal of an item by the identity that the item had when it was sealed.
    let isOfFormerKeyhole = attributes[Name.sealed] != nil && itemClass == nil
    return SecretSchema.match(attributes, former: isOfFormerKeyhole)
  }

  private func shownLabel(of identity: ItemIdentity) -> ExactString? {
    let label = ExactString(label)
    return label == Self.defaultLabel(of: identity) ? nil : label
  }

  private static func defaultLabel(of identity: ItemIdentity) -> ExactString {
    switch identity {
    case .generic(let service, _): service
    case .internet(let internet): internet.server
    case .other(let label): label
    }
  }

  private static func shown(_ name: ExactString, _ value: ExactString) -> (ExactString, [UInt8]) {
    guard name.utf8.starts(with: Name.bytes.utf8), let bytes = [UInt8](hexadecimal: value.string) else {
      return (name, Array(value.utf8))
    }
    return (ExactString(String(decoding: name.utf8.dropFirst(Name.bytes.utf8.count), as: UTF8.self)), bytes)
  }
}

// MARK: For the service

extension ServiceItem {
  /// An item as the service is to have it.
  package init(_ item: Item) {
    label = Self.label(of: item)
    attributes = Self.stored(item)
    if case .other(let name) = item.identity, name != ExactString(label) { attributes[Name.name] = name }
    if identity != item.identity, !item.omittedNames.isEmpty {
      // The notes are of another identity, which the item had.
      var complete = item
      complete.omittedNames = []
      attributes = Self.stored(complete)
    }
    if identity != item.identity {
      attributes[Name.itemClass] = ExactString(item.identity.itemClass.rawValue)
    }
  }

  /// The attributes that a client of Keyhole's own Secret Service gets.
  package static func attributes(of item: Item) -> SecretSchema.Attributes {
    stored(item).filter { !$0.key.isOwn }
  }

  /// The label that clients see.
  package static func label(of item: Item) -> String {
    (item.label ?? defaultLabel(of: item.identity)).string
  }

  /// The attributes for a service, but for those that say what the others don't: another name, another class.
  private static func stored(_ item: Item) -> SecretSchema.Attributes {
    let name = item.attributes[SecretSchema.attribute].flatMap(Self.text)
    let known = name.flatMap(SecretSchema.named)
    let underSchema = known?.attributes(of: item.identity)
    // A schema that can't have such an identity would have it read as another one.
    let schema = underSchema == nil ? nil : known
    let identity = underSchema ?? SecretSchema.attributes(of: item.identity)
    var attributes = identity
    attributes.merge(schema?.fixed ?? [:]) { present, _ in present }
    if case .internet = item.identity { attributes[SecretSchema.attribute] = SecretSchema.network }
    for name in item.omittedNames { attributes[name] = nil }
    for (name, value) in item.attributes where name != Item.omittedAttribute {
      if let text = Self.text(value), isFree(name, text, item.identity, identity, known, schema) {
        attributes[name] = text
      } else {
        attributes[ExactString(Name.bytes + name.string)] = ExactString(value.hexadecimal)
      }
    }
    if item.hasGenericSchema, item.attributes[SecretSchema.attribute] == nil {
      attributes[SecretSchema.attribute] = SecretSchema.none
    } else if attributes[SecretSchema.attribute] == SecretSchema.none {
      attributes[Name.genericSchema] = ExactString([UInt8(ascii: "1")].hexadecimal)
    }
    attributes[Name.accessible] =
      item.accessibility == .whenUnlocked ? nil : ExactString(item.accessibility.rawValue)
    attributes[Name.access] = item.access.isEmpty ? nil : ExactString(item.access.text)
    attributes[Name.programs] = item.programs
    attributes[Name.lineEnd] = item.keepsLineEnd ? "exact" : nil
    attributes[Name.sealed] = item.isSealed ? "true" : nil
    return attributes
  }

  /// Whether an attribute can have its own name, as it would be read as nothing else. `known`: the schema that the item
  /// names; `schema`: the one that it is stored under.
  private static func isFree(
    _ name: ExactString, _ value: ExactString, _ itemIdentity: ItemIdentity,
    _ identity: SecretSchema.Attributes, _ known: SecretSchema?, _ schema: SecretSchema?
  ) -> Bool {
    if name.isOwn { return false }
    if schema == nil, SecretSchema.replaces(name, value, in: itemIdentity) { return true }
    if identity[name] != nil { return false }
    if name == SecretSchema.attribute {
      switch itemIdentity {
      case .generic: return known == nil || schema != nil
      case .internet: return schema != nil
      case .other: return true
      }
    }
    return !SecretSchema.reads(name, value, asPartOf: itemIdentity, schema)
  }

  /// nil: no string of D-Bus can hold it.
  fileprivate static func text(_ bytes: [UInt8]) -> ExactString? {
    bytes.contains(0) ? nil : ExactString(utf8: bytes)
  }
}

// MARK: - Another name

extension Item {
  /// The attributes of the item that no client of a Secret Service sees: Keyhole's own, and those that no string of D-Bus can hold.
  package var attributesBesideClients: [ExactString: [UInt8]] {
    let ofAttributes: Set<ExactString> = [Item.omittedAttribute, Item.genericSchemaAttribute]
    return attributes.filter {
      !ofAttributes.contains($0.key) && ($0.key.isOwn || ServiceItem.text($0.value) == nil)
    }
  }

  /// Puts the item into the class `other`, as another one has the identity that its label and its attributes give.
  package mutating func becomeOther(
    named name: ExactString, label: ExactString, attributes: SecretSchema.Attributes
  ) {
    identity = .other(label: name)
    self.label = name == label ? nil : label
    // As bytes, they are no schema that would be left out.
    self.attributes = attributes.mapValues { Array($0.utf8) }
  }

  /// The item in the class `other` under a name that is free. Clients find it by the same label and the same attributes.
  package func asOther(named name: ExactString) -> Item {
    var item = self
    item.becomeOther(
      named: name, label: ExactString(ServiceItem.label(of: self)),
      attributes: ServiceItem.attributes(of: self))
    item.attributes.merge(attributesBesideClients) { new, _ in new }
    return item
  }
}

extension ExactString {
  /// Whether the attribute is Keyhole's.
  fileprivate var isOwn: Bool { utf8.starts(with: Name.own.utf8) }
}

extension [UInt8] {
  /// Two digits for each byte, in lower case.
  package var hexadecimal: String {
    map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }

  /// nil: the text is not made of pairs of hexadecimal digits.
  package init?(hexadecimal text: String) {
    let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
    guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
    self = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }
}
