/// A keychain's own name for an item: it stays when the item is renamed or changed.
///
/// A vault's is a random UUID in lower-case text, a Secret Service's the object path.
public struct ItemID: Hashable, Sendable {
  /// The text of the name: it is unique in one keychain, not among several.
  public let rawValue: String

  /// The name as the keychain spells it; it is not checked.
  public init(rawValue: String) {
    self.rawValue = rawValue
  }
}

/// The three folders of `keychain`.
public enum ItemClass: String, CaseIterable, Sendable {
  case generic
  case internet
  case other
}

/// The identity of an item: the attributes that Apple calls the primary key of its class.
public enum ItemIdentity: Hashable, Sendable {
  case generic(service: ExactString, account: ExactString)
  case internet(InternetIdentity)
  /// An item of a Secret Service that is neither; it has a label only.
  case other(label: ExactString)

  /// The class, which is the folder of `keychain` that the item is in.
  public var itemClass: ItemClass {
    switch self {
    case .generic: .generic
    case .internet: .internet
    case .other: .other
    }
  }
}

/// The primary key of an internet password. An absent account and an empty one are the same.
public struct InternetIdentity: Hashable, Sendable {
  /// kSecAttrServer: a host name or an address.
  public var server: ExactString
  /// kSecAttrAccount; empty: none.
  public var account: ExactString
  /// kSecAttrSecurityDomain.
  public var domain: ExactString?
  /// The name in SPECIFICATION.md for kSecAttrProtocol (`https`), or any other string, kept as it is.
  public var `protocol`: ExactString?
  /// The name in SPECIFICATION.md for kSecAttrAuthenticationType (`httpBasic`), or any other string.
  public var authenticationType: ExactString?
  /// Absent is not 0.
  public var port: UInt16?
  /// kSecAttrPath: the path of a URL; nil: none.
  public var path: ExactString?

  /// The key of a server; what is left out is absent, which is not the same as empty but for the account.
  public init(
    server: ExactString, account: ExactString = "", domain: ExactString? = nil,
    protocol: ExactString? = nil, authenticationType: ExactString? = nil, port: UInt16? = nil,
    path: ExactString? = nil
  ) {
    self.server = server
    self.account = account
    self.domain = domain
    self.protocol = `protocol`
    self.authenticationType = authenticationType
    self.port = port
    self.path = path
  }
}

extension ItemIdentity {
  /// The attribute of a companion that names its item by the item's path, without `user.`.
  public static let belongsTo = "belongsTo"

  /// The identity with another account, or another label where the class has no account.
  public func changingAccount(_ change: (String) -> String) -> ItemIdentity {
    switch self {
    case .generic(let service, let account):
      return .generic(service: service, account: ExactString(change(account.string)))
    case .internet(var internet):
      internet.account = ExactString(change(internet.account.string))
      return .internet(internet)
    case .other(let label): return .other(label: ExactString(change(label.string)))
    }
  }

  /// Where a companion of the item is: `ACCOUNT/NAME`, or `NAME` without an account.
  public func companion(_ name: String) -> ItemIdentity {
    changingAccount { $0.isEmpty ? name : "\($0)/\(name)" }
  }
}
