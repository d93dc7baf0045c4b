/// How a program names what it keeps in a Secret Service: which attributes are the identity of a generic or an internet
/// password, and which it searches for besides.
///
/// The one table of these conventions. A schema's name is the value of the attribute `xdg:schema`
/// (libsecret's `SecretSchema`).
public struct SecretSchema: Sendable {
  /// The attributes of an item of a Secret Service.
  public typealias Attributes = [ExactString: ExactString]

  /// Where a part of an identity stands.
  private enum Part {
    case attribute(ExactString)
    /// The schema's name itself, where the program has one item of a kind.
    case schemaName
    /// The values of two attributes with a full stop between them; the first one has none.
    case joined(ExactString, ExactString)
  }

  private enum Form {
    case generic(service: Part, account: Part)
    /// `server`, and the account in this attribute; `hasParts`: the others of libsecret's network schema too.
    case internet(account: ExactString, hasParts: Bool)
  }

  /// The value of `xdg:schema`.
  public let name: ExactString
  /// Attributes that the program searches for besides the identity. A new item of this schema gets them.
  public let fixed: Attributes
  private let form: Form

  private init(_ name: ExactString, _ form: Form, fixed: Attributes = [:]) {
    (self.name, self.form, self.fixed) = (name, form, fixed)
  }
}

// MARK: The table

extension SecretSchema {
  /// libsecret's SECRET_SCHEMA_COMPAT_NETWORK: what Keyhole stores internet passwords under.
  public static let network: ExactString = "org.gnome.keyring.NetworkPassword"
  /// libsecret's generic schema, which gnome-keyring sooner or later gives an item without one.
  public static let none: ExactString = "org.freedesktop.Secret.Generic"
  /// The attribute with the schema's name.
  public static let attribute: ExactString = "xdg:schema"

  private static let table = [
    SecretSchema(network, .internet(account: Name.user, hasParts: true)),
    // git's contrib/credential/libsecret. It searches without the schema's name, so it finds the network schema too.
    SecretSchema("org.git.Password", .internet(account: Name.user, hasParts: true)),
    // docker-credential-secretservice: the server is a URL.
    SecretSchema(
      "io.docker.Credentials", .internet(account: Name.username, hasParts: false),
      fixed: ["docker_cli": "1", "label": "Docker Credentials"]),
    // cargo's provider cargo:libsecret: the account is the URL of a registry's index.
    SecretSchema(
      "org.rust-lang.cargo.registry", .generic(service: .schemaName, account: .attribute("url"))),
    // Chrome, Chromium and Electron's safeStorage: one key for each program.
    SecretSchema(
      "chrome_libsecret_os_crypt_password_v2",
      .generic(service: .schemaName, account: .attribute(Name.application))),
    SecretSchema(
      "chrome_libsecret_os_crypt_password",
      .generic(service: .schemaName, account: .attribute(Name.application))),
    // nm-applet and plasma-nm. The account is the property as nmcli(1) writes it: 802-11-wireless-security.psk.
    SecretSchema(
      "org.freedesktop.NetworkManager.Connection",
      .generic(service: .attribute("connection-uuid"), account: .joined("setting-name", "setting-key"))),
  ]

  /// The schema of this name; nil: the table does not have it.
  public static func named(_ name: ExactString) -> SecretSchema? { table.first { $0.name == name } }

  private enum Name {
    static let service: ExactString = "service"
    /// As Keyhole, keytar and Git Credential Manager have it.
    static let account: ExactString = "account"
    /// As Python's keyring, go-keyring (gh) and keyring-rs have it.
    static let username: ExactString = "username"
    static let server: ExactString = "server"
    static let user: ExactString = "user"
    static let domain: ExactString = "domain"
    static let `protocol`: ExactString = "protocol"
    static let authenticationType: ExactString = "authtype"
    static let port: ExactString = "port"
    static let object: ExactString = "object"
    static let application: ExactString = "application"

    static let parts: Set<ExactString> = [domain, `protocol`, authenticationType, port, object]
  }
}

// MARK: From attributes

extension SecretSchema {
  /// The identity that attributes give an item.
  public struct Match: Hashable, Sendable {
    /// Generic or internet.
    public var identity: ItemIdentity
    /// The attributes that the identity has told; the others are the item's own.
    public var names: Set<ExactString>
  }

  /// The identity that the attributes are of; nil: neither a generic nor an internet password.
  ///
  /// `former`: by the rules of Keyhole 0.1, which knew the network schema and `service` with `account` only.
  public static func match(_ attributes: Attributes, former: Bool = false) -> Match? {
    let schema = attributes[attribute] == none ? nil : attributes[attribute]
    if let known = schema.flatMap(named), !former || known.name == network,
      let match = known.match(attributes)
    {
      return match
    }
    if let match = genericMatch(attributes, former: former) { return match }
    return schema == nil ? named(network)?.match(attributes) : nil
  }

  /// `service` with `account`, or with `username`, under whatever schema.
  private static func genericMatch(_ attributes: Attributes, former: Bool) -> Match? {
    let username = attributes[Name.username]
    guard let service = attributes[Name.service],
      let account = attributes[Name.account] ?? (former ? nil : username)
    else { return nil }
    var names: Set<ExactString> = [Name.service, Name.account]
    if username == account { names.insert(Name.username) }
    return Match(identity: .generic(service: service, account: account), names: names)
  }

  private func match(_ attributes: Attributes) -> Match? {
    switch form {
    case .generic(let service, let account):
      guard let plain = read(service, attributes), let leaf = read(account, attributes) else { return nil }
      let identity = ItemIdentity.generic(service: plain, account: leaf)
      // Only what would be stored in the same way again.
      guard let same = self.attributes(of: identity), same.allSatisfy({ attributes[$0.key] == $0.value })
      else { return nil }
      return Match(identity: identity, names: Set(same.keys))
    case .internet(let account, let hasParts):
      guard let server = attributes[Name.server] else { return nil }
      var names: Set<ExactString> = [Name.server, account]
      var identity = InternetIdentity(server: server, account: attributes[account] ?? "")
      if hasParts {
        identity.takeParts(attributes)
        // A port that is no number belongs to no identity, but must not be lost.
        names.formUnion(identity.port == nil ? Name.parts.subtracting([Name.port]) : Name.parts)
      }
      return Match(identity: .internet(identity), names: names)
    }
  }

  private func read(_ part: Part, _ attributes: Attributes) -> ExactString? {
    switch part {
    case .attribute(let name): return attributes[name]
    case .schemaName: return name
    case .joined(let first, let second):
      guard let first = attributes[first], let second = attributes[second] else { return nil }
      return ExactString("\(first.string).\(second.string)")
    }
  }

  /// The port of an attribute; nil: it is no number, or not written as one is.
  public static func port(_ text: ExactString) -> UInt16? {
    UInt16(text.string).flatMap { ExactString($0.description) == text ? $0 : nil }
  }
}

// MARK: For attributes

extension SecretSchema {
  /// The attributes of an identity under this schema; nil: it can't have such an identity.
  public func attributes(of identity: ItemIdentity) -> Attributes? {
    switch (form, identity) {
    case (.generic(let service, let account), .generic(let plain, let leaf)):
      guard let first = write(plain, as: service), let second = write(leaf, as: account) else { return nil }
      return first.merging(second) { first, _ in first }
    case (.internet(let account, let hasParts), .internet(let internet)):
      guard hasParts || !internet.hasParts else { return nil }
      var attributes = internet.parts
      attributes[Name.server] = internet.server
      attributes[account] = internet.account.isEmpty ? nil : internet.account
      return attributes
    default: return nil
    }
  }

  private func write(_ value: ExactString, as part: Part) -> Attributes? {
    switch part {
    case .attribute(let name): return [name: value]
    case .schemaName: return value == name ? [:] : nil
    case .joined(let first, let second):
      guard let dot = value.utf8.firstIndex(of: UInt8(ascii: ".")) else { return nil }
      let (head, tail) = (value.utf8[..<dot], value.utf8[value.utf8.index(after: dot)...])
      guard let head = ExactString(utf8: head), let tail = ExactString(utf8: tail) else { return nil }
      return [first: head, second: tail]
    }
  }

  /// The attributes of an identity without a schema of another program: what Keyhole stores. A generic password has its
  /// account as `account` and as `username`, as programs look for either.
  public static func attributes(of identity: ItemIdentity) -> Attributes {
    switch identity {
    case .generic(let service, let account):
      [Name.service: service, Name.account: account, Name.username: account]
    case .internet: named(network)?.attributes(of: identity) ?? [:]
    case .other: [:]
    }
  }

  /// Whether an attribute beside those of an identity would be read as a part of it.
  public static func reads(
    _ name: ExactString, _ value: ExactString?, asPartOf identity: ItemIdentity, _ schema: SecretSchema?
  ) -> Bool {
    let form = (schema ?? named(network))?.form
    guard case .internet = identity, case .internet(let account, let hasParts) = form else { return false }
    if hasParts, name == Name.port { return value.flatMap(port) != nil }
    return name == Name.server || name == account || (hasParts && Name.parts.contains(name))
  }

  /// Whether an attribute of its own takes the place of one of the identity's: a `username` that is not the account.
  public static func replaces(_ name: ExactString, _ value: ExactString?, in identity: ItemIdentity) -> Bool {
    guard case .generic(_, let account) = identity, let value else { return false }
    return name == Name.username && value != account
  }

  /// Sets of attributes that find, one or another, the items of an identity that programs of the table store, and perhaps
  /// others. Empty: labels can't be searched.
  public static func queries(for identity: ItemIdentity) -> [Attributes] {
    var queries = table.compactMap { schema in
      schema.attributes(of: identity).map { $0.merging([attribute: schema.name]) { first, _ in first } }
    }
    switch identity {
    case .generic(let service, let account):
      queries += [Name.account, Name.username].map { [Name.service: service, $0: account] }
    case .internet: queries.append(attributes(of: identity))
    case .other: break
    }
    return queries
  }
}

extension InternetIdentity {
  fileprivate var parts: SecretSchema.Attributes {
    let present: [ExactString: ExactString?] = [
      "domain": domain, "protocol": `protocol`, "authtype": authenticationType,
      "port": port.map { ExactString($0.description) }, "object": path,
    ]
    return present.compactMapValues { $0 }
  }

  fileprivate var hasParts: Bool { !parts.isEmpty }

  fileprivate mutating func takeParts(_ attributes: SecretSchema.Attributes) {
    (domain, `protocol`) = (attributes["domain"], attributes["protocol"])
    (authenticationType, path) = (attributes["authtype"], attributes["object"])
    port = attributes["port"].flatMap(SecretSchema.port)
  }
}
