import Formats
import Model
import SecretMemory
import Testing

@testable import CredentialProtocols

@Suite struct GitCredentialTests {
  private func request(_ lines: String) throws -> GitCredential { try GitCredential(source(lines)) }

  @Test func knownLinesAreReadAndOthersAreIgnored() throws {
    let git = try request(
      """
      capability[]=authtype
      capability[]=state
      protocol=https
      host=example.com:8443
      path=a/b=c.git
      username=anna
      password=p=w d
      password_expiry_utc=2000000000
      oauth_refresh_token=r
      wwwauth[]=Basic realm="x"
      future=1

      host=ignored.example
      """)
    #expect(git.protocol == "https" && git.host == "example.com:8443" && git.path == "a/b=c.git")
    #expect(git.username == "anna" && git.expiry == 2_000_000_000)
    #expect(try git.password?.bytes().text() == "p=w d" && git.refreshToken?.bytes().text() == "r")
    let identity = try #require(git.identity())
    #expect(identity.server == "example.com" && identity.port == 8443 && identity.path == "a/b=c.git")
  }

  @Test(
    arguments: [
      ("example.com", "example.com", nil), ("example.com:443", "example.com", 443), ("[::1]:80", "[::1]", 80),
      ("[::1]", "[::1]", nil), ("example.com:", "example.com:", nil), ("a:99999", "a:99999", nil),
      ("a:080", "a:080", nil), ("::1", ":", 1),
    ] as [(String, ExactString, UInt16?)])
  func portIsApartFromTheHost(host: String, server: ExactString, port: UInt16?) throws {
    let identity = try #require(try request("protocol=https\nhost=\(host)\n").identity())
    #expect(identity.server == server && identity.port == port)
  }

  /// CVE-2020-5260, CVE-2020-11008, CVE-2024-52006: a value that another reader would take for two.
  @Test(arguments: [
    "protocol=https\nhost=a\0b\n", "protocol=https\nhost=a\rb\n", "protocol=https\r\nhost=a\r\n", "host\n",
    "protocol=https\nhost=\u{FF}",
  ])
  func hostileInputIsRefused(lines: String) throws {
    var bytes = Array(lines.utf8)
    if lines.contains("\u{FF}") { bytes = Array("protocol=https\nhost=".utf8) + [0xFF] }
    let source = try ByteSource(SecretBytes(copying: bytes.span))
    #expect(reason { () throws(FormatError) in _ = try GitCredential(source) } != nil)
  }

  @Test(arguments: ["", "host=a\n", "protocol=\nhost=a\n", "protocol=https\nhost=\n", "protocol=https\n"])
  func withoutProtocolAndHostNothingIsMeant(lines: String) throws {
    #expect(try request(lines).identity() == nil)
  }

  @Test func onlyExactlyTheSamePlaceMatches() throws {
    let git = try request("protocol=https\nhost=example.com\n")
    func matches(_ change: (inout InternetIdentity) -> Void) -> Bool {
      var identity = InternetIdentity(server: "example.com", account: "anna", protocol: "https")
      change(&identity)
      return git.matches(.internet(identity))
    }
    #expect(
      matches { _ in } && matches { $0.account = "bert" } && matches { $0.authenticationType = "httpBasic" })
    #expect(!matches { $0.server = "a.example.com" } && !matches { $0.server = "Example.com" })
    #expect(!matches { $0.protocol = "http" } && !matches { $0.protocol = nil } && !matches { $0.port = 443 })
    #expect(!matches { $0.path = "a.git" } && !matches { $0.domain = "d" } && !matches { $0.account = "" })
    #expect(!git.matches(.generic(service: "example.com", account: "anna")))
    let named = try request("protocol=https\nhost=example.com\nusername=anna\npath=a.git\n")
    #expect(
      named.matches(
        .internet(InternetIdentity(server: "example.com", account: "anna", protocol: "https", path: "a.git")))
    )
    #expect(
      !named.matches(.internet(InternetIdentity(server: "example.com", account: "anna", protocol: "https"))))
    #expect(
      !named.matches(
        .internet(InternetIdentity(server: "example.com", account: "bert", protocol: "https", path: "a.git")))
    )
  }

  @Test func secretIsStoredAsGitsOwnHelperDoes() throws {
    let git = try request(
      "protocol=https\nhost=a\nusername=u\npassword=pw\npassword_expiry_utc=5\noauth_refresh_token=t\n")
    let stored = try git.storedSecret()
    #expect(try git.hasPassword(of: stored))
    guard let answer = try git.answer(username: "u", secret: stored) else {
      Issue.record("there is no answer")
      return
    }
    #expect(try GitAnswer.password.value(in: answer).text() == "pw")
    #expect(try GitAnswer.username.value(in: answer).text() == "u")
    #expect(answer.text() == "username=u\npassword=pw\npassword_expiry_utc=5\noauth_refresh_token=t\n")
    #expect(stored.text() == "pw\npassword_expiry_utc=5\noauth_refresh_token=t")
  }

  @Test func aSecretOfSeveralLinesIsNotGiven() throws {
    let git = try request("")
    for text in [
      "pw\nhost=evil\n", "pw\r", "", "\n", "a\0b", "pw\n\nx", "pw\npassword_expiry_utc=1\r\nhost=evil",
    ] {
      let stored = try secret(text)
      #expect(
        reason { () throws(FormatError) in _ = try git.answer(username: "u", secret: stored) }
          != nil,
        "\(text.debugDescription)")
    }
    let stored = try secret("pw\n")
    #expect(
      reason { () throws(FormatError) in
        _ = try git.answer(username: "u\nhost=evil", secret: stored)
      }
        != nil)
    #expect(try git.answer(username: "u", secret: stored)?.text() == "username=u\npassword=pw\n")
  }

  /// Written down from git-credential(1) of git 2.46, not from running it: Debian 12 has an older git.
  @Test func authorizationsOfOtherSchemesAreForAGitThatTakesThem() throws {
    let lines = "protocol=https\nhost=a\nauthtype=Bearer\ncredential=tok==\npassword_expiry_utc=5\n"
    let store = try request("capability[]=authtype\n" + lines)
    #expect(store.isStorable && store.storedIdentity?.account == "Bearer")
    let stored = try store.storedSecret()
    #expect(stored.text() == "tok==\nauthtype=Bearer\npassword_expiry_utc=5")
    let kept = try secret("tok==\nauthtype=Bearer\npassword_expiry_utc=5")
    let get = try request(
      "capability[]=authtype\ncapability[]=state\nstate[]=other:1\nprotocol=https\nhost=a\n")
    #expect(
      try get.answer(username: "Bearer", secret: kept)?.text()
        == "capability[]=authtype\ncredential=tok==\nauthtype=Bearer\npassword_expiry_utc=5\n")
    // The capability comes first, also before a password. A state is no secret of the item: it is not given back.
    let state = "capability[]=authtype\ncapability[]=state\nprotocol=https\nhost=a\n"
    let password = try secret("pw")
    #expect(
      try request(state + "state[]=other:1\n").answer(username: "u", secret: password)?.text()
        == "capability[]=authtype\nusername=u\npassword=pw\n")
    // An older git, and one whose list was emptied.
    #expect(try request("protocol=https\nhost=a\n").answer(username: "Bearer", secret: kept)?.text() == nil)
    #expect(
      try request("capability[]=authtype\ncapability[]=\n").answer(username: "Bearer", secret: kept)?.text()
        == nil)
    #expect(try store.hasPassword(of: kept))
    #expect(try !request("authtype=Basic\ncredential=tok==\n").hasPassword(of: kept))
    #expect(try !request("password=tok==\n").hasPassword(of: kept))
    #expect(try !request("authtype=Bearer\ncredential=tok\n").hasPassword(of: kept))
    for ephemeral in ["1", "true"] { #expect(try !request(lines + "ephemeral=\(ephemeral)\n").isStorable) }
    #expect(try !request("authtype=Bearer\n").isStorable && !request("authtype=\ncredential=x\n").isStorable)
    #expect(try request(lines + "username=anna\n").storedIdentity?.account == "anna")
  }

  @Test func anotherPasswordIsNotErased() throws {
    let stored = try secret("pw")
    #expect(try request("password=pw\n").hasPassword(of: stored))
    #expect(try !request("password=pw2\n").hasPassword(of: stored))
    #expect(try !request("password=\n").hasPassword(of: stored) && !request("").hasPassword(of: stored))
  }
}
