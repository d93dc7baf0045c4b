import Model
import SecretMemory

/// The attributes of an internet password in a URL: `https://example.com:8443/login`.
struct WebAddress {
  var scheme: String
  var host: String
  var port: UInt16?

  /// nil: the text is no address with a host.
  init?(_ text: String) {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, parts[1].hasPrefix("//"), !parts[0].isEmpty else { return nil }
    scheme = parts[0].lowercased()
    let authority = parts[1].dropFirst(2).prefix { !"/?#".contains($0) }
    let place = authority.split(separator: "@").last ?? ""
    // The host of IPv6 has colons between brackets.
    let colon = place.lastIndex(of: ":").flatMap { place[$0...].contains("]") ? nil : $0 }
    host = String(place[..<(colon ?? place.endIndex)])
    port = colon.flatMap { Digits.number(place[place.index(after: $0)...].utf8) }.flatMap {
      UInt16(exactly: $0)
    }
    guard !host.isEmpty else { return nil }
  }

  func identity(account: String, domain: String? = nil) -> ItemIdentity {
    .internet(
      InternetIdentity(
        server: ExactString(host), account: ExactString(account), domain: domain.map { ExactString($0) },
        protocol: ExactString(scheme), port: port))
  }
}

/// One entry of a password manager, before it has a place in the keychain.
struct LoginRecord {
  var title = ""
  var account = ""
  private(set) var address = ""
  var realm = ""
  var notes = ""
  var created: String?
  var modified: String?
  var password: SecretSlice?
  /// By their names without `user.`: no secrets.
  private(set) var attributes: [(name: String, value: String)] = []
  /// Further secrets, by name: each becomes an item of its own, for attributes are no place for secrets.
  private(set) var secrets: [(name: String, SecretSlice)] = []
  /// The key or URI of its one-time codes.
  private var code: OneTimeCode?
  /// Names of secrets for one-time codes that are no `otpauth:` URI, or another one.
  private var otherCodes: Set<String> = []

  /// Attributes that mean something else in the keychain, or that only some values fit.
  private static let reserved: Set<String> = [
    "service", "account", "server", "domain", "protocol", "authenticationType", "port", "path", "generic",
    "creator", "type", "isInvisible", "isNegative", "comment", "url", ItemEntry.belongsTo,
  ]
  /// An attribute's name may have 255 bytes, `user.` included.
  private static let longestName = 200

  /// The first address names the server, the others are kept as `url-2` and so on.
  mutating func addAddress(_ text: String) {
    guard !text.isEmpty else { return }
    if address.isEmpty { address = text } else { add("url", text) }
  }

  /// A field that is no secret. One without a value says nothing.
  mutating func addField(_ name: String, _ value: String) {
    guard !value.isEmpty else { return }
    let clean = String(name.unicodeScalars.filter { $0 != "\0" }.map(Character.init))
    let isTaken = clean.isEmpty || Self.reserved.contains(clean) || clean.utf8.starts(with: "keyhole.".utf8)
    add(isTaken ? "field.\(clean)" : clean, value)
  }

  /// A field whose value may be secret. An empty one says nothing.
  mutating func addSecret(_ value: SecretSlice, _ name: String) {
    guard !value.isEmpty else { return }
    let base = name.isEmpty ? "secret" : name
    secrets.append((Self.unique(base) { name in secrets.contains { $0.name == name } }, value))
  }

  /// Adds the key or URI of one-time codes, as the manager has it. An empty one is ignored.
  ///
  /// - Parameters:
  ///   - value: the key or URI.
  ///   - key: how codes are computed from a bare key.
  /// - Throws: `FormatError` where it can't be decoded.
  /// - Returns: whether it is the entry's code now; false: it becomes an item of its own.
  @discardableResult
  mutating func addCode(_ value: SecretSlice, _ key: OneTimeKey = OneTimeKey()) throws(FormatError) -> Bool {
    guard !value.isEmpty else { return false }
    if code == nil, let found = try OneTimeCode(value, key) {
      code = found
      return true
    }
    addOtherCode(value)
    return false
  }

  /// Adds what is there for one-time codes and is no `otpauth:` URI, or another one.
  mutating func addOtherCode(_ value: SecretSlice) {
    addSecret(value, ItemEntry.Companion.codeName)
    if let name = secrets.last?.name { otherCodes.insert(name) }
  }

  private mutating func add(_ name: String, _ value: String) {
    var short = name
    while short.utf8.count > Self.longestName { short.removeLast() }
    // NUL is in no attribute.
    let value = value.utf8.contains(0) ? String(value.split(separator: "\0").joined(separator: " ")) : value
    // The first address is not among the attributes yet.
    let isTaken = { (name: String) in name == "url" || attributes.contains { $0.name == name } }
    attributes.append((Self.unique(short, isTaken), value))
  }

  /// `name`, or `name-2` and so on where it is taken.
  private static func unique(_ name: String, _ isTaken: (String) -> Bool) -> String {
    guard isTaken(name) else { return name }
    var number = 2
    while isTaken("\(name)-\(number)") { number += 1 }
    return "\(name)-\(number)"
  }

  /// A date of ISO 8601 in whole seconds; a fraction of a second is left out. nil: it is none.
  static func date(_ text: String) -> String? {
    var text = text
    if let point = text.firstIndex(of: ".") {
      let rest = text[text.index(after: point)...].drop { $0.isASCII && $0.isNumber }
      text = String(text[..<point] + rest)
    }
    return Timestamp(iso8601: text)?.iso8601
  }

  /// The name of the entry for a person.
  var name: String { title.isEmpty ? address.isEmpty ? account : address : title }

  /// The entry as an item with its companions. One without a password has its first secret as such, or none; one that has
  /// nothing but a one-time code, an empty one; and one with nothing but notes, these.
  func item() -> ItemEntry? {
    var secrets = secrets
    let first = password ?? (secrets.isEmpty ? nil : secrets.removeFirst().1)
    guard let password = first ?? code.map({ SecretSlice($0.slice.source, 0..<0) }) else { return note() }
    let web = WebAddress(address)
    let service = title.isEmpty ? web?.host ?? address : title
    let domain = realm.isEmpty ? nil : realm
    let generic = ItemIdentity.generic(service: ExactString(service), account: ExactString(account))
    var entry = ItemEntry(web?.identity(account: account, domain: domain) ?? generic, ownAttributes, password)
    entry.otpauth = code?.uri(issuer: service, account: account)
    entry.companions = secrets.map { name, secret in
      ItemEntry.Companion(name: name, secret: secret, isOneTimeCode: otherCodes.contains(name))
    }
    return entry
  }

  /// The notes as the secret; nil: there are none.
  private func note() -> ItemEntry? {
    var note = self
    note.notes = ""
    guard !notes.isEmpty, let bytes = try? SecretBytes(copying: Array(notes.utf8).span) else { return nil }
    note.password = SecretSlice(ByteSource(bytes), 0..<notes.utf8.count)
    if !attributes.contains(where: { $0.name == "kind" }) { note.addField("kind", "note") }
    return note.item()
  }

  private var ownAttributes: [ItemEntry.Attribute] {
    var all: [(String, String)] = [("user.keyhole.label", title), ("user.comment", notes)]
    if !address.isEmpty { all.append(("user.url", address)) }
    all += attributes.map { ("user." + $0.name, $0.value) }
    all += [("user.keyhole.created", created), ("user.keyhole.modified", modified)].compactMap { name, text in
      text.map { (name, $0) }
    }
    return all.filter { !$0.1.isEmpty }.map { name, text in
      let clean = text.utf8.contains(0) ? text.split(separator: "\0").joined(separator: " ") : text
      return ItemEntry.Attribute(name, String(clean))
    }
  }
}

/// The entries that a reader leaves out, counted by kind.
struct Omissions {
  private static let mostNames = 10

  private var counts: [(one: String, many: String, count: Int, names: [String])] = []

  mutating func count(_ one: String, _ many: String, _ number: Int = 1, named name: String? = nil) {
    guard number > 0 else { return }
    let index = counts.firstIndex { $0.one == one } ?? counts.count
    if index == counts.count { counts.append((one, many, 0, [])) }
    counts[index].count += number
    if let name, !name.isEmpty { counts[index].names.append(name) }
  }

  var remarks: [String] {
    counts.map { kind in
      let names = kind.names.prefix(Self.mostNames).map { "“\($0)”" }.joined(separator: ", ")
      let more = kind.names.count > Self.mostNames ? ", …" : ""
      return "\(kind.count) \(kind.count == 1 ? kind.one : kind.many)"
        + (names.isEmpty ? "" : " (\(names)\(more))")
    }
  }

  var total: Int { counts.reduce(0) { $0 + $1.count } }
}
