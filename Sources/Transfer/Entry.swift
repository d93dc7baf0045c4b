public import Model

/// What is carried from one store to another: settings, and items with their secrets.
public struct Contents: Sendable {
  public var settings: [SettingEntry] = []
  public var items: [ItemEntry] = []
  /// What was left behind, and why: for people.
  public var remarks: [String] = []

  public init() {}
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
public struct ItemEntry: Sendable {
  public var identity: ItemIdentity
  /// By their full names, such as `user.comment`; without those of the identity.
  public var attributes: [Attribute]
  public var secret: Passage

  public struct Attribute: Sendable {
    public var name: String
    public var value: [UInt8]

    public init(_ name: String, _ value: [UInt8]) {
      self.name = name
      self.value = value
    }

    init(_ name: String, _ text: String) {
      self.init(name, Array(text.utf8))
    }
  }

  init(_ identity: ItemIdentity, _ attributes: [Attribute] = [], _ secret: Passage) {
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
      let port = attributes["user.port"].map { UInt16($0) }
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
