public import Model

/// The content that is carried from one store to another: settings, and items with their secrets.
public struct Contents {
  public var settings: [SettingEntry] = []
  public var items: [ItemEntry] = []
  /// How many things of the file are not taken over.
  public var omitted = 0
  /// What they are, and what else a person should know: for people.
  public var remarks: [String] = []

  public init() {}

  init(_ logins: [LoginRecord], leavingOut omissions: Omissions) {
    var omissions = omissions
    for login in logins {
      if let item = login.item() {
        items.append(item)
      } else {
        omissions.count("entry without a secret", "entries without a secret")
      }
    }
    omitted = omissions.total
    remarks = omissions.remarks
  }
}

/// One key of a suite.
public struct SettingEntry: Sendable {
  public var suite: ExactString
  public var key: ExactString
  public var value: SettingValue
  /// What an archive shows; an import takes the moment of its own.
  public var modified: Timestamp?

  public init(suite: ExactString, key: ExactString, value: SettingValue, modified: Timestamp? = nil) {
    self.suite = suite
    self.key = key
    self.value = value
    self.modified = modified
  }
}

/// One item; its secret stands where it was found.
public struct ItemEntry {
  /// The attribute of a companion that names its item by the item's path: `belongsTo`, without `user.`.
  public static let belongsTo = ItemIdentity.belongsTo

  public var identity: ItemIdentity
  /// By their full names, such as `user.comment`; without those of the identity.
  public var attributes: [Attribute]
  public var secret: SecretSlice
  /// Its `otpauth:` URI, for one-time codes; nil: it has none.
  public var otpauth: SecretSlice?
  /// Secrets that belong to this item: attachments, hidden fields.
  public var companions: [Companion] = []

  public struct Attribute: Hashable, Sendable {
    public var name: String
    public var value: [UInt8]

    public init(_ name: String, _ value: [UInt8]) {
      self.name = name
      self.value = value
    }

    public init(_ name: String, _ text: String) {
      self.init(name, Array(text.utf8))
    }
  }

  /// An item of its own, at `ACCOUNT/name` of the item that it belongs to.
  public struct Companion {
    /// The name of one that has an `otpauth:` URI for which the keychain has no room, or what else one-time codes need.
    public static let codeName = "otp"

    public var name: String
    public var secret: SecretSlice
    /// It is there for one-time codes.
    public var isOneTimeCode: Bool

    public init(name: String, secret: SecretSlice, isOneTimeCode: Bool = false) {
      self.name = name
      self.secret = secret
      self.isOneTimeCode = isOneTimeCode
    }
  }

  public init(_ identity: ItemIdentity, _ attributes: [Attribute] = [], _ secret: SecretSlice) {
    self.identity = identity
    self.attributes = attributes
    self.secret = secret
  }
}

extension ItemIdentity {
  /// What attributes say, as an item shows them.
  init?(_ itemClass: ItemClass, _ attributes: [String: String]) {
    let text = { (name: String) in attributes["user." + name].map { ExactString($0) } }
    switch itemClass {
    case .generic:
      guard let service = text("service"), let account = text("account") else { return nil }
      self = .generic(service: service, account: account)
    case .internet:
      guard let server = text("server") else { return nil }
      let port = attributes["user.port"].map { UInt16(exactly: Digits.number($0.utf8) ?? -1) }
      if case .some(.none) = port { return nil }
      self = .internet(
        InternetIdentity(
          server: server, account: text("account") ?? "", domain: text("domain"), protocol: text("protocol"),
          authenticationType: text("authenticationType"), port: port ?? nil, path: text("path")))
    case .other:
      guard let label = text("keyhole.label") else { return nil }
      self = .other(label: label)
    }
  }

  /// The names that say it.
  static let attributeNames: Set<String> = [
    "user.service", "user.account", "user.server", "user.domain", "user.protocol", "user.authenticationType",
    "user.port", "user.path",
  ]
}
