import Model

/// An item as a Secret Service has it: a label and attributes, all of them strings.
struct ServiceItem: Hashable {
  var label: String
  var attributes: [ExactString: ExactString]

  init(label: String, attributes: [ExactString: ExactString]) {
    self.label = label
    self.attributes = attributes
  }
}

// MARK: KeePassXC

extension ServiceItem {
  /// KeePassXC has fields instead: some are always there, empty where they say nothing, and none can be removed.
  /// Its items are known by the field that repeats the end of their path.
  func hasFields(_ id: ItemID) -> Bool {
    attributes[Name.uuid].map { id.rawValue.hasSuffix("/" + $0.string) } ?? false
  }

  /// Without what says nothing, and what is KeePassXC's to say.
  func withoutEmptyFields(_ id: ItemID) -> ServiceItem {
    guard hasFields(id) else { return self }
    let attributes = attributes.filter { name, value in
      // Of a generic password also an empty part is one.
      let saysNothing = value.isEmpty && name != Name.service && name != Name.account
      return !saysNothing && !Name.computed.contains(name)
    }
    return ServiceItem(label: label, attributes: attributes)
  }
}

/// The names of attributes: those of libsecret's network schema, and those that are Keyhole's own.
private enum Name {
  static let schema: ExactString = "xdg:schema"
  static let service: ExactString = "service"
  static let account: ExactString = "account"
  static let server: ExactString = "server"
  static let user: ExactString = "user"
  static let domain: ExactString = "domain"
  static let `protocol`: ExactString = "protocol"
  static let authenticationType: ExactString = "authtype"
  static let port: ExactString = "port"
  static let object: ExactString = "object"

  static let uuid: ExactString = "Uuid"
  static let computed: Set<ExactString> = [uuid, "Path", "FDO_SECRETS_CONTENT_TYPE"]

  static let own = "keyhole."
  static let accessible: ExactString = "keyhole.accessible"
  static let access: ExactString = "keyhole.access"
  static let programs: ExactString = "keyhole.programs"
  static let lineEnd: ExactString = "keyhole.eol"
  static let sealed: ExactString = "keyhole.sealed"
  /// The prefix of attributes for bytes that no string can hold, in hexadecimal digits.
  static let bytes = "keyhole.bytes."

  static let network: Set<ExactString> = [
    server, user, domain, `protocol`, authenticationType, port, object,
  ]
}

private enum Schema {
  static let network: ExactString = "org.gnome.keyring.NetworkPassword"
  /// The value that gnome-keyring sooner or later gives an item without one.
  static let none: ExactString = "org.freedesktop.Secret.Generic"
}

// MARK: From the service

extension ServiceItem {
  /// The item that this is in Keyhole's terms; times, size and the rest are the caller's to add.
  func item(_ id: ItemID) -> Item {
    let identity = identity
    var rest = attributes.filter { !Self.names(of: identity).contains($0.key) }
    if rest[Name.schema] == Schema.none { rest[Name.schema] = nil }
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
    return item
  }

  private var identity: ItemIdentity {
    if isNetwork, let server = attributes[Name.server] { return .internet(internet(server)) }
    if let service = attributes[Name.service], let account = attributes[Name.account] {
      return .generic(service: service, account: account)
    }
    return .other(label: ExactString(label))
  }

  /// An item of the network schema, or one without a schema that has a server and is no generic password.
  private var isNetwork: Bool {
    switch attributes[Name.schema] {
    case Schema.network: true
    case nil, Schema.none: attributes[Name.service] == nil || attributes[Name.account] == nil
    default: false
    }
  }

  private func internet(_ server: ExactString) -> InternetIdentity {
    InternetIdentity(
      server: server, account: attributes[Name.user] ?? "", domain: attributes[Name.domain],
      protocol: attributes[Name.protocol], authenticationType: attributes[Name.authenticationType],
      port: attributes[Name.port].flatMap(Self.port), path: attributes[Name.object])
  }

  private static func port(_ text: ExactString) -> UInt16? {
    UInt16(text.string).flatMap { ExactString($0.description) == text ? $0 : nil }
  }

  private static func names(of identity: ItemIdentity) -> Set<ExactString> {
    switch identity {
    case .generic: return [Name.service, Name.account]
    case .internet(let internet):
      // One that is no number belongs to no identity, but must not be lost.
      return internet.port == nil ? Name.network.subtracting([Name.port]) : Name.network
    case .other: return []
    }
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
  init(_ item: Item) {
    let identity = Self.attributes(of: item.identity)
    var attributes = identity
    for (name, value) in item.attributes {
      if !Self.isReserved(name, in: item, identity), let text = Self.text(value) {
        attributes[name] = text
      } else {
        attributes[ExactString(Name.bytes + name.string)] = ExactString(value.hexadecimal)
      }
    }
    if case .internet = item.identity, attributes[Name.schema] == nil {
      attributes[Name.schema] = Schema.network
    }
    attributes[Name.accessible] =
      item.accessibility == .whenUnlocked ? nil : ExactString(item.accessibility.rawValue)
    attributes[Name.access] = item.access.isEmpty ? nil : ExactString(item.access.text)
    attributes[Name.programs] = item.programs
    attributes[Name.lineEnd] = item.keepsLineEnd ? "exact" : nil
    attributes[Name.sealed] = item.isSealed ? "true" : nil
    label = (item.label ?? Self.defaultLabel(of: item.identity)).string
    self.attributes = attributes
  }

  private static func attributes(of identity: ItemIdentity) -> [ExactString: ExactString] {
    switch identity {
    case .generic(let service, let account): return [Name.service: service, Name.account: account]
    case .internet(let internet):
      let present: [ExactString: ExactString?] = [
        Name.server: internet.server, Name.user: internet.account.isEmpty ? nil : internet.account,
        Name.domain: internet.domain, Name.protocol: internet.protocol,
        Name.authenticationType: internet.authenticationType,
        Name.port: internet.port.map { ExactString($0.description) }, Name.object: internet.path,
      ]
      return present.compactMapValues { $0 }
    case .other: return [:]
    }
  }

  /// Whether an attribute of this name would be read as something else.
  private static func isReserved(
    _ name: ExactString, in item: Item, _ identity: [ExactString: ExactString]
  ) -> Bool {
    if identity[name] != nil || name.utf8.starts(with: Name.own.utf8) { return true }
    switch item.identity {
    case .internet:
      return name == Name.port
        ? item.attributes[name].flatMap(text).flatMap(port) != nil : Name.network.contains(name)
    case .generic: return name == Name.schema && item.attributes[name].flatMap(text) == Schema.network
    case .other: return false
    }
  }

  /// nil: no string of D-Bus can hold it.
  private static func text(_ bytes: [UInt8]) -> ExactString? {
    bytes.contains(0) ? nil : ExactString(utf8: bytes)
  }

  /// The attributes that find all items of an identity, and perhaps others; nil: none do, as labels can't be searched.
  static func query(for identity: ItemIdentity) -> [ExactString: ExactString]? {
    if case .other = identity { return nil }
    return attributes(of: identity)
  }
}

extension [UInt8] {
  fileprivate var hexadecimal: String {
    map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }

  fileprivate init?(hexadecimal text: String) {
    let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
    guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
    self = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }
}
