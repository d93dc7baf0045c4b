public import Model

/// The content that is carried from one store to another: settings, and items with their secrets.
public struct Contents {
  /// The keys with their values, in the order of the file.
  public var settings: [SettingEntry] = []
  /// The items, in the order of the file; two may have one identity.
  public var items: [ItemEntry] = []
  /// The collections of the Secret Service.
  public var collections = ServiceCollections()
  /// How many things of the file are not taken over.
  public var omitted = 0
  /// Their kinds and other remarks, for the user.
  public var remarks: [String] = []

  /// No content.
  public init() {}

  init(_ logins: [LoginRecord], leavingOut omissions: Omissions) {
    var omissions = omissions
    for login in logins {
      if let item = login.item() {
        items.append(item)
      } else {
        omissions.count("entry without a secret", "entries without a secret", named: login.name)
      }
    }
    omitted = omissions.total
    remarks = omissions.remarks
  }
}

/// One key of a suite.
public struct SettingEntry: Sendable {
  /// The suite's name.
  public var suite: ExactString
  /// The key's name, not escaped.
  public var key: ExactString
  /// The value, as the format has it or a reader has typed it.
  public var value: SettingValue
  /// The time for an archive; an import takes the moment of its own.
  public var modified: Timestamp?

  /// - Parameters:
  ///   - suite: the suite's name.
  ///   - key: the key's name.
  ///   - value: the value.
  ///   - modified: when it changed last; nil: the format does not say.
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

  /// The item's primary key.
  public var identity: ItemIdentity
  /// By their full names, such as `user.comment`; without those of the identity.
  public var attributes: [Attribute]
  /// The main secret, in the source that it was found in.
  public var secret: SecretSlice
  /// Its `otpauth:` URI, for one-time codes; nil: it has none.
  public var otpauth: SecretSlice?
  /// Secrets that belong to this item: attachments, hidden fields.
  public var companions: [Companion] = []

  /// An extended attribute of the item's folder.
  public struct Attribute: Hashable, Sendable {
    /// The full name, such as `user.comment`.
    public var name: String
    /// The value as bytes; no NUL ends it.
    public var value: [UInt8]

    /// An attribute of bytes.
    public init(_ name: String, _ value: [UInt8]) {
      self.name = name
      self.value = value
    }

    /// An attribute of text, in UTF-8.
    public init(_ name: String, _ text: String) {
      self.init(name, Array(text.utf8))
    }
  }

  /// An item of its own, at `ACCOUNT/name` of the item that it belongs to.
  public struct Companion {
    /// The name of one that has an `otpauth:` URI for which the keychain has no room, or what else one-time codes need.
    public static let codeName = "otp"

    /// The last part of the companion's account.
    public var name: String
    /// The secret of the companion's item.
    public var secret: SecretSlice
    /// It is there for one-time codes.
    public var isOneTimeCode: Bool

    /// - Parameters:
    ///   - name: the last part of the account.
    ///   - secret: the companion's secret.
    ///   - isOneTimeCode: whether it is there for one-time codes.
    public init(name: String, secret: SecretSlice, isOneTimeCode: Bool = false) {
      self.name = name
      self.secret = secret
      self.isOneTimeCode = isOneTimeCode
    }
  }

  /// An item without `otpauth:` URI and companions.
  public init(_ identity: ItemIdentity, _ attributes: [Attribute] = [], _ secret: SecretSlice) {
    self.identity = identity
    self.attributes = attributes
    self.secret = secret
  }
}

extension ItemIdentity {
  /// The identity in attributes, as an item shows them.
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
