import Model

/// What an address of the web says of an internet password: `https://example.com:8443/login`.
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
    port = colon.flatMap { UInt16(place[place.index(after: $0)...]) }
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
struct Login {
  var title = ""
  var account = ""
  var address = ""
  var realm = ""
  var notes = ""
  var created: String?
  var modified: String?
  /// Of the program it comes from: no secrets.
  var attributes: [(String, String)] = []
  var password: Passage?
  /// Further secrets, by name: each becomes an item of its own, for attributes are no place for secrets.
  var secrets: [(name: String, Passage)] = []

  func items() -> [ItemEntry] {
    let web = WebAddress(address)
    let service = title.isEmpty ? web?.host ?? address : title
    let domain = realm.isEmpty ? nil : realm
    let generic = ItemIdentity.generic(service: ExactString(service), account: ExactString(account))
    let identity = web?.identity(account: account, domain: domain) ?? generic
    var items: [ItemEntry] = []
    if let password { items.append(ItemEntry(identity, ownAttributes, password)) }
    for (name, secret) in secrets where !secret.isEmpty {
      let separator = account.isEmpty ? "" : "/"
      items.append(
        ItemEntry(
          .generic(service: ExactString(service), account: ExactString(account + separator + name)), [],
          secret))
    }
    return items
  }

  private var ownAttributes: [ItemEntry.Attribute] {
    var all: [(String, String)] = [("user.keyhole.label", title), ("user.comment", notes)]
    if WebAddress(address) != nil { all.append(("user.url", address)) }
    all += attributes.map { ("user." + $0, $1) }
    all += [("user.keyhole.created", created), ("user.keyhole.modified", modified)].compactMap { name, text in
      text.map { (name, $0) }
    }
    return all.filter { !$0.1.isEmpty }.map { ItemEntry.Attribute($0, $1) }
  }
}
