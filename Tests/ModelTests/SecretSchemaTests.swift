import Model
import Testing

/// The table of what other programs store in a Secret Service.
@Suite struct SecretSchemaTests {
  struct Row: CustomTestStringConvertible {
    var program: String
    var attributes: SecretSchema.Attributes
    var identity: ItemIdentity
    /// Attributes that the identity does not tell.
    var rest: Set<ExactString> = []

    var testDescription: String { program }
  }

  private static let rows = [
    Row(
      program: "git-credential-libsecret",
      attributes: [
        "xdg:schema": "org.git.Password", "user": "peter", "server": "example.com", "protocol": "https",
        "port": "8443", "object": "a/b.git",
      ],
      identity: .internet(
        InternetIdentity(
          server: "example.com", account: "peter", protocol: "https", port: 8443, path: "a/b.git")),
      rest: ["xdg:schema"]),
    Row(
      program: "GNOME's network passwords",
      attributes: [
        "xdg:schema": "org.gnome.keyring.NetworkPassword", "user": "u", "server": "h", "protocol": "smb",
        "domain": "d", "authtype": "ntlm", "port": "445", "object": "share",
      ],
      identity: .internet(
        InternetIdentity(
          server: "h", account: "u", domain: "d", protocol: "smb", authenticationType: "ntlm", port: 445,
          path: "share")), rest: ["xdg:schema"]),
    Row(
      program: "docker-credential-secretservice",
      attributes: [
        "xdg:schema": "io.docker.Credentials", "server": "https://index.docker.io/v1/", "username": "peter",
        "docker_cli": "1", "label": "Docker Credentials",
      ],
      identity: .internet(InternetIdentity(server: "https://index.docker.io/v1/", account: "peter")),
      rest: ["xdg:schema", "docker_cli", "label"]),
    Row(
      program: "go-keyring (gh)", attributes: ["service": "gh:github.com", "username": ""],
      identity: .generic(service: "gh:github.com", account: "")),
    Row(
      program: "Python's keyring",
      attributes: ["service": "s", "username": "u", "application": "Python keyring library"],
      identity: .generic(service: "s", account: "u"), rest: ["application"]),
    Row(
      program: "keytar",
      attributes: ["xdg:schema": "org.freedesktop.Secret.Generic", "service": "s", "account": "u"],
      identity: .generic(service: "s", account: "u"), rest: ["xdg:schema"]),
    Row(
      program: "Git Credential Manager",
      attributes: ["xdg:schema": "com.microsoft.GitCredentialManager", "service": "s", "account": "u"],
      identity: .generic(service: "s", account: "u"), rest: ["xdg:schema"]),
    Row(
      program: "Chrome",
      attributes: ["xdg:schema": "chrome_libsecret_os_crypt_password_v2", "application": "chrome"],
      identity: .generic(service: "chrome_libsecret_os_crypt_password_v2", account: "chrome"),
      rest: ["xdg:schema"]),
    Row(
      program: "NetworkManager",
      attributes: [
        "xdg:schema": "org.freedesktop.NetworkManager.Connection", "connection-uuid": "c0ffee",
        "setting-name": "802-11-wireless-security", "setting-key": "psk",
      ], identity: .generic(service: "c0ffee", account: "802-11-wireless-security.psk"), rest: ["xdg:schema"]),
    Row(
      program: "Keyhole", attributes: ["service": "s", "account": "a", "username": "a"],
      identity: .generic(service: "s", account: "a")),
    Row(
      program: "another username", attributes: ["service": "s", "account": "a", "username": "b"],
      identity: .generic(service: "s", account: "a"), rest: ["username"]),
    Row(
      program: "no schema", attributes: ["server": "h", "user": "u", "port": "080"],
      identity: .internet(InternetIdentity(server: "h", account: "u")), rest: ["port"]),
  ]

  @Test(arguments: rows) func isRecognised(row: Row) throws {
    let match = try #require(SecretSchema.match(row.attributes))
    #expect(match.identity == row.identity)
    #expect(Set(row.attributes.keys).subtracting(match.names) == row.rest)
  }

  /// An item of Keyhole's under the schema has all attributes that the program searches for.
  @Test(arguments: rows) func isFoundByItsProgram(row: Row) throws {
    guard let schema = row.attributes["xdg:schema"].flatMap(SecretSchema.named) else {
      let stored = SecretSchema.attributes(of: row.identity)
      let sought = row.attributes.filter { !row.rest.contains($0.key) }
      #expect(sought.allSatisfy { stored[$0.key] == $0.value })
      return
    }
    let stored = try #require(schema.attributes(of: row.identity)).merging(schema.fixed) { first, _ in first }
    #expect(stored.merging(["xdg:schema": schema.name]) { first, _ in first } == row.attributes)
  }

  /// Some search of an item's own kind finds it, so that no second one is made beside it.
  @Test(arguments: rows) func isSought(row: Row) {
    #expect(
      SecretSchema.queries(for: row.identity).contains { query in
        query.allSatisfy { row.attributes[$0.key] == $0.value }
      })
  }

  @Test(
    arguments: [
      ["xdg:schema": "org.gnome.keyring.Note"],
      ["xdg:schema": "org.gnome.OnlineAccounts", "goa-identity": "x"],
      ["xdg:schema": "org.gnome.Evolution.Data.Source", "e-source-uid": "x"],
      ["xdg:schema": "chrome_libsecret_os_crypt_password_v2"], ["xdg:schema": "com.example", "server": "h"],
      [
        "xdg:schema": "org.freedesktop.NetworkManager.Connection", "connection-uuid": "u",
        "setting-name": "a.b",
        "setting-key": "psk",
      ], ["service": "s"], [:],
    ] as [SecretSchema.Attributes])
  func isOther(attributes: SecretSchema.Attributes) {
    #expect(SecretSchema.match(attributes) == nil)
  }

  @Test func formerKeyholeKnewLess() {
    for row in Self.rows where row.attributes["account"] == nil && row.program != "no schema" {
      let isNetwork = row.attributes["xdg:schema"] == SecretSchema.network
      #expect((SecretSchema.match(row.attributes, former: true) != nil) == isNetwork, "\(row.program)")
    }
  }

  @Test func schemaRefusesWhatItCantHave() throws {
    let docker = try #require(SecretSchema.named("io.docker.Credentials"))
    #expect(docker.attributes(of: .internet(InternetIdentity(server: "h", port: 1))) == nil)
    #expect(docker.attributes(of: .generic(service: "s", account: "a")) == nil)
    let chrome = try #require(SecretSchema.named("chrome_libsecret_os_crypt_password_v2"))
    #expect(chrome.attributes(of: .generic(service: "s", account: "a")) == nil)
    let network = try #require(SecretSchema.named("org.freedesktop.NetworkManager.Connection"))
    #expect(network.attributes(of: .generic(service: "u", account: "psk")) == nil)
  }
}
