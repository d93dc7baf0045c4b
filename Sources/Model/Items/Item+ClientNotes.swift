// Notes of an item about the attributes that a client of the Secret Service gave, so that the client gets back the same ones.
extension Item {
  /// The attributes that `ServiceItem` adds and the client did not give: their names, with NUL between them. Empty: a client made
  /// the item, and gave them all.
  public static let omittedAttribute: ExactString = "keyhole.omitted"
  /// Present where the client gave libsecret's schema for no schema, `SecretSchema.none`.
  public static let genericSchemaAttribute: ExactString = "keyhole.generic-schema"
  /// The type of the secret's content as the client gave it, where it is not `text/plain`.
  public static let contentTypeAttribute: ExactString = "keyhole.content-type"

  /// The names of attributes that the client did not give.
  public var omittedNames: Set<ExactString> {
    get {
      attributes[Self.omittedAttribute].map {
        Set($0.split(separator: 0).compactMap { ExactString(utf8: $0) })
      } ?? []
    }
    set {
      let names = newValue.sorted().map(\.string).joined(separator: "\0")
      attributes[Self.omittedAttribute] = names.isEmpty ? nil : Array(names.utf8)
    }
  }

  /// Whether a client of Keyhole's Secret Service made the item.
  public var isOfClient: Bool { attributes[Self.omittedAttribute] != nil || hasGenericSchema }

  /// Notes that a client made the item.
  public mutating func noteClient() {
    if !isOfClient { attributes[Self.omittedAttribute] = [] }
  }

  /// Whether the client gave the schema for no schema.
  public var hasGenericSchema: Bool {
    get { attributes[Self.genericSchemaAttribute] != nil }
    set { attributes[Self.genericSchemaAttribute] = newValue ? [UInt8(ascii: "1")] : nil }
  }
}

extension ItemIdentity {
  /// Whether an extended attribute of this name says a part of the identity, also where this item lacks it.
  package func hasPart(_ name: ExactString) -> Bool {
    switch self {
    case .generic: ["service", "account"].contains(name)
    case .internet: Self.internetParts.contains(name)
    case .other: false
    }
  }

  private static let internetParts: Set<ExactString> = [
    "server", "account", "domain", "protocol", "authenticationType", "port", "path",
  ]
}
