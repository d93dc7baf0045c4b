import Formats
import ImportExport
import InMemory
import Model
import SecretMemory
import Store
import Suites
import Testing

/// One-time codes of other password managers as second secrets of items.
@Suite struct OneTimeCodeTests {
  private static let uri = "otpauth://totp/Mail:p?secret=JBSWY3DPEHPK3PXP&issuer=Mail"

  /// An export of Bitwarden with one entry.
  private func bitwarden(_ code: String, password: String = "\"pw\"") throws -> [String] {
    let text = """
      {"encrypted": false, "items": [{"type": 1, "name": "My mail", "login":
      {"username": "p@x", "password": \(password), "totp": "\(code)"}}]}
      """
    let bytes = try source(Array(text.utf8))
    return try reader().read(bytes, as: .bitwarden).lines()
  }

  @Test(arguments: ["JBSWY3DPEHPK3PXP", "jbsw y3dp ehpk 3pxp", "JBSWY3DP-EHPK3PXP==="])
  func bareKeyBecomesAURI(code: String) throws {
    let lines = try bitwarden(code)
    #expect(lines.count == 2)
    #expect(
      lines[1]
        == "  keychain/generic/My mail/p@x otpauth otpauth://totp/My%20mail:p@x?secret=JBSWY3DPEHPK3PXP"
        + "&issuer=My%20mail")
  }

  @Test func keyOfSteamSaysSo() throws {
    let lines = try bitwarden("steam://jbswy3dpehpk3pxp")
    #expect(
      lines.last
        == "  keychain/generic/My mail/p@x otpauth otpauth://totp/My%20mail:p@x?secret=JBSWY3DPEHPK3PXP"
        + "&encoder=steam&issuer=My%20mail")
  }

  /// An export of KeePass with one entry.
  private func keePass(_ fields: [(String, String)]) throws -> [String] {
    let strings = ([("Title", "Mail"), ("UserName", "p"), ("Password", "pw")] + fields).map { name, value in
      "<String><Key>\(name)</Key><Value>\(value)</Value></String>"
    }
    let text = """
      <?xml version="1.0"?><KeePassFile><Root><Group><Name>Root</Name><Entry>\(strings.joined())</Entry></Group></Root></KeePassFile>
      """
    return try reader().read(source(Array(text.utf8)), as: .keepass).lines()
  }

  @Test(arguments: [
    ([("TimeOtp-Secret-Base32", "JBSW Y3DP EHPK 3PXP")], "totp", "JBSWY3DPEHPK3PXP"),
    (
      [
        ("TimeOtp-Secret-Base32", "JBSWY3DPEHPK3PXP"), ("TimeOtp-Length", "8"), ("TimeOtp-Period", "60"),
        ("TimeOtp-Algorithm", "HMAC-SHA-256"),
      ], "totp", "JBSWY3DPEHPK3PXP&digits=8&period=60&algorithm=SHA256"
    ),
    // RFC 4648, section 10.
    ([("TimeOtp-Secret", "foobar")], "totp", "MZXW6YTBOI"),
    ([("TimeOtp-Secret", "fooba")], "totp", "MZXW6YTB"),
    ([("TimeOtp-Secret", "foob")], "totp", "MZXW6YQ"), ([("TimeOtp-Secret-Hex", "666F6f")], "totp", "MZXW6"),
    ([("TimeOtp-Secret-Base64", "Zm9vYmE=")], "totp", "MZXW6YTB"),
    // A field with the key alone has no scheme: these are the key's first characters.
    ([("TimeOtp-Secret", "steam://JBSWY3DPEHPK3PXP")], "totp", "ON2GKYLNHIXS6SSCKNLVSM2EKBCUQUCLGNIFQUA"),
    ([("HmacOtp-Secret-Base64", "c3RlYW06Ly94")], "hotp", "ON2GKYLNHIXS66A&counter=0"),
    ([("HmacOtp-Secret-Hex", "666F"), ("HmacOtp-Counter", "7")], "hotp", "MZXQ&counter=7"),
    ([("HmacOtp-Secret", "fo")], "hotp", "MZXQ&counter=0"),
    ([("TOTP Seed", "jbswy3dpehpk3pxp")], "totp", "JBSWY3DPEHPK3PXP"),
    (
      [("TOTP Settings", "60;8;http://clock"), ("TOTP Seed", "JBSWY3DPEHPK3PXP")], "totp",
      "JBSWY3DPEHPK3PXP&period=60&digits=8"
    ),
    (
      [("TOTP Seed", "JBSWY3DPEHPK3PXP"), ("TOTP Settings", "30;S")], "totp",
      "JBSWY3DPEHPK3PXP&period=30&encoder=steam"
    ),
  ])
  func fieldsOfKeePass(fields: [(String, String)], type: String, rest: String) throws {
    #expect(
      try keePass(fields) == [
        "keychain/generic/Mail/p pw [keyhole.label=Mail]",
        "  keychain/generic/Mail/p otpauth otpauth://\(type)/Mail:p?secret=\(rest)&issuer=Mail",
      ])
  }

  /// Nothing is lost of codes that no URI describes.
  @Test func fieldsOfKeePassThatNoURIHas() throws {
    let lines = try keePass([
      ("TimeOtp-Secret-Base32", "JBSWY3DPEHPK3PXP"), ("TimeOtp-Algorithm", "MD5"), ("TimeOtp-Length", "8"),
      ("HmacOtp-Secret-Hex", "66F"), ("HmacOtp-Counter", "7"), ("TOTP Seed", "steam://JBSWY3DPEHPK3PXP"),
    ])
    #expect(
      lines == [
        "keychain/generic/Mail/p pw [keyhole.label=Mail|HmacOtp-Counter=7|TimeOtp-Algorithm=MD5|TimeOtp-Length=8]",
        "  keychain/generic/Mail/p%2Fotp JBSWY3DPEHPK3PXP", "  keychain/generic/Mail/p%2Fotp-2 66F",
        "  keychain/generic/Mail/p%2Fotp-3 steam://JBSWY3DPEHPK3PXP",
      ])
  }

  @Test(arguments: [
    "steam://JBSW", "otpauth://totp/x?issuer=y", "123456", "otpauth://x/y?secret=JB",
  ])
  func whatIsNeitherIsAnItemOfItsOwn(code: String) throws {
    let lines = try bitwarden(code)
    #expect(lines.count == 2 && lines[1] == "  keychain/generic/My mail/p@x%2Fotp \(code)")
  }

  @Test func entryWithNothingElseHasAnEmptySecret() throws {
    let lines = try bitwarden(Self.uri, password: "null")
    #expect(
      lines.count == 2 && lines[0].hasPrefix("keychain/generic/My mail/p@x  [")
        && lines[1].hasSuffix(Self.uri))
  }

  @Test func linesOfPass() throws {
    var contents = Contents()
    for text in ["pw\ntotp: JBSWY3DPEHPK3PXP\n", "pw\n\(Self.uri)\n\(Self.uri)&digits=8\n"] {
      contents.items.append(try PassEntry.item(source(Array(text.utf8)), path: ["web", "a b"], service: nil))
    }
    #expect(
      try contents.lines() == [
        "keychain/generic/web/a b pw []",
        "  keychain/generic/web/a b otpauth otpauth://totp/web:a%20b?secret=JBSWY3DPEHPK3PXP&issuer=web",
        "keychain/generic/web/a b pw []", "  keychain/generic/web/a b otpauth \(Self.uri)",
        "  keychain/generic/web/a b%2Fotp \(Self.uri)&digits=8",
      ])
  }
}

/// An item's `otpauth:` URI in an import.
@Suite struct OtpauthImportTests {
  private static let uri = "otpauth://totp/s:u?secret=JBSWY3DPEHPK3PXP"
  private static let other = "otpauth://totp/s:u?secret=JBSWY3DPEHPK3PXQ"
  private static let identity = ItemIdentity.generic(service: "s", account: "u")
  private let folder = SuiteFolder.make()

  private func slice(_ text: String) throws -> SecretSlice {
    let bytes = try source(Array(text.utf8))
    return SecretSlice(bytes, bytes.whole)
  }

  private func entry(_ secret: String, _ uri: String?, access: String? = nil) throws -> ItemEntry {
    let attributes = access.map { [ItemEntry.Attribute("user.keyhole.access", $0)] } ?? []
    var entry = ItemEntry(Self.identity, attributes, try slice(secret))
    entry.otpauth = try uri.map(slice)
    return entry
  }

  private func plan(
    _ items: [ItemEntry], _ keychain: KeychainStore, _ conflicts: ImportOptions.Conflicts = .fail,
    _ duplicates: ImportOptions.Duplicates = .number
  ) throws -> ImportPlan {
    var (contents, options) = (Contents(), ImportOptions())
    contents.items = items
    (options.conflicts, options.duplicates) = (conflicts, duplicates)
    return try ImportPlan(contents, settings: settings, keychain: keychain, options)
  }

  private var settings: SettingsStore {
    SettingsStore(engine: PropertyListFolder(folder: folder, stateFolder: folder))
  }

  private func run(_ plan: ImportPlan, _ keychain: KeychainStore) throws {
    defer { SuiteFolder.remove(folder) }
    try ImportRun(settings: settings, keychain: keychain, stateFolder: folder) {
      present, new, path throws(StoreError) in
      guard let present else { return try keychain.permission(forNew: new, path: path, by: .current) }
      return try keychain.permission(for: present, to: .readWrite, new.secrets, path: path, by: .current)
    }.apply(plan) {}
  }

  private func steps(_ plan: ImportPlan) -> [String] {
    plan.lines.map { "\($0.step.rawValue) \($0.path.dropFirst(19))" }
  }

  private func stored(_ keychain: KeychainStore) throws -> (value: String, uri: String?) {
    let item = try #require(try keychain.read { $0[Self.identity] }.first)
    let value = try text(keychain.engine.secret(of: item.id))
    return (
      value, item.otpauth == nil ? nil : try text(keychain.engine.requireOtpauthURIs().otpauth(of: item.id))
    )
  }

  private func text(_ secret: borrowing SecretBytes) -> String {
    unsafe secret.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
  }

  @Test func isStoredComparedAndReplaced() throws {
    let keychain = KeychainStore(engine: MemoryKeychain())
    try run(plan([entry("1", Self.uri)], keychain), keychain)
    #expect(try stored(keychain) == ("1", Self.uri))
    #expect(try steps(plan([entry("1", Self.uri)], keychain)) == ["same u"])
    // Items and secrets that are not in the import stay.
    #expect(try steps(plan([entry("1", nil)], keychain)) == ["same u"])
    #expect(try steps(plan([entry("1", Self.other)], keychain)) == ["conflict u"])
    try run(plan([entry("1", Self.other)], keychain, .keep), keychain)
    #expect(try stored(keychain) == ("1", Self.uri))
    try run(plan([entry("2", nil)], keychain, .replace), keychain)
    #expect(try stored(keychain) == ("2", Self.uri))
    try run(plan([entry("2", Self.other)], keychain, .replace), keychain)
    #expect(try stored(keychain) == ("2", Self.other))
  }

  @Test func whatIsNoURIIsRefusedBeforeAnythingIsDone() throws {
    let keychain = KeychainStore(engine: MemoryKeychain())
    #expect(throws: ImportExportError.self) { try plan([entry("1", "JBSWY3DPEHPK3PXP")], keychain) }
  }

  @Test func secretServiceGetsACompanion() throws {
    let keychain = KeychainStore(engine: MemoryKeychain(holdsOtpauth: false))
    let plan = try plan([entry("1", Self.uri)], keychain)
    #expect(steps(plan) == ["new u", "new u%2Fotp"] && plan.summary.codes == ["keychain/generic/s/u%2Fotp"])
    #expect(!plan.summary.isComplete && plan.summary.line.contains("1 one-time code as items of their own"))
    try run(plan, keychain)
    let companion = try #require(try keychain.read { $0[.generic(service: "s", account: "u/otp")] }.first)
    #expect(companion.attributes["belongsTo"] == Array("keychain/generic/s/u".utf8))
    // One that has nothing else is the secret itself.
    #expect(
      try steps(self.plan([entry("", Self.uri)], KeychainStore(engine: MemoryKeychain(holdsOtpauth: false))))
        == ["new u"])
  }

  @Test func duplicatesAreComparedAndMerged() throws {
    let keychain = KeychainStore(engine: MemoryKeychain())
    let items = [try entry("1", nil), try entry("1", Self.uri), try entry("1", Self.other)]
    #expect(try steps(plan(items, keychain)) == ["new u", "new u (2)", "new u (3)"])
    #expect(try steps(plan(items, keychain, .fail, .merge)) == ["new u", "new u%2Fotp"])
    try run(plan(items, keychain, .fail, .merge), keychain)
    #expect(try stored(keychain) == ("1", Self.uri))
  }
}
