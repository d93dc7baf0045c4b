import KeychainSelection
import Model
import TestSupport
import Testing

/// SPECIFICATION.md, section 2, as the encoding that the tests expect: written from its sentences, not from the code.
enum ExpectedName {
  static func encoded(_ name: String) -> String {
    if name.isEmpty { return "%" }
    var result = ""
    for (index, scalar) in name.unicodeScalars.enumerated() {
      let isEscaped =
        scalar == "/" || scalar == "%" || scalar.value < 0x20 || scalar.value == 0x7F
        || (scalar == "." && index == 0)
      if isEscaped {
        let hex = String(scalar.value, radix: 16, uppercase: true)
        result += "%" + (hex.count == 1 ? "0" : "") + hex
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// The longest beginning of an encoded name of at most 230 bytes that ends at a scalar and in no escape.
  static func beginning(_ encoded: String) -> String {
    var result: [UInt8] = []
    var rest = Array(encoded.unicodeScalars)[...]
    while let first = rest.first {
      let count = first == "%" ? 3 : 1
      let unit = rest.prefix(count).flatMap { Array(String($0).utf8) }
      if result.count + unit.count > 230 { break }
      result += unit
      rest = rest.dropFirst(count)
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// A random name of up to `scalars` scalars, of every kind that the encoding treats differently.
  static func random(scalars: Int, using random: inout SplitMix64) -> String {
    let ranges: [ClosedRange<UInt32>] = [
      0x00...0x1F, 0x20...0x7F, 0x25...0x2F, 0x80...0x7FF, 0x300...0x36F, 0x800...0xD7FF, 0xE000...0xFFFF,
      0x10000...0x10FFFF,
    ]
    var name = String.UnicodeScalarView()
    for _ in 0..<Int.random(in: 0...scalars, using: &random) {
      let range = ranges.randomElement(using: &random) ?? 0x20...0x7F
      if let scalar = Unicode.Scalar(UInt32.random(in: range, using: &random)) { name.append(scalar) }
    }
    return String(name)
  }
}

/// Names in the files of the suites and in the vault, and in the tree when another process opens them.
@Suite struct StoredNameTests {
  /// A plain name and the name in the tree.
  static let names: [(plain: String, encoded: String)] = [
    ("volume", "volume"), ("with space", "with space"), ("a/b", "a%2Fb"), ("100%", "100%25"),
    ("%41", "%2541"),
    ("", "%"), (".hidden", "%2Ehidden"), (".", "%2E"), ("..", "%2E."), ("a.b", "a.b"), ("\u{1}", "%01"),
    ("a\nb", "a%0Ab"), ("tab\t", "tab%09"), ("\u{1F}", "%1F"), ("\u{7F}", "%7F"), ("\u{80}", "\u{80}"),
    ("größe", "größe"), ("日本語", "日本語"), ("🔑", "🔑"), ("a;b", "a;b"), ("-rf", "-rf"), ("*", "*"),
    ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"), ("\u{202E}x", "\u{202E}x"), ("\u{FEFF}", "\u{FEFF}"),
    ("caf\u{E9}", "caf\u{E9}"), ("cafe\u{301}", "cafe\u{301}"),
  ]

  private func isSame(_ left: [String], _ right: [String]) -> Bool {
    left.map { ExactString($0) }.sorted() == right.map { ExactString($0) }.sorted()
  }

  @Test func namesOfKeysAndItemsAreKept() throws {
    let stored = try StoredTree()
    try stored.makeDirectories("defaults/s")
    let encoded = Self.names.map(\.encoded)
    for (plain, encoded) in Self.names {
      #expect(ExpectedName.encoded(plain).utf8.elementsEqual(encoded.utf8))
      try stored.write("defaults/s/\(encoded)", "value of \(encoded)")
      try stored.makeItem("keychain/generic/\(encoded)/\(encoded)", "secret of \(encoded)")
    }
    try stored.reopen()
    #expect(isSame(try stored.list("defaults/s"), encoded))
    #expect(isSame(try stored.list("keychain/generic"), encoded))
    for (plain, encoded) in Self.names {
      let (key, item) = ("defaults/s/\(encoded)", "keychain/generic/\(encoded)/\(encoded)")
      #expect(try stored.text(key) == "value of \(encoded)\n")
      #expect(try stored.text(item + "/value") == "secret of \(encoded)")
      for (name, path) in [
        ("keyhole.name", key), ("keyhole.name", item), ("service", item), ("account", item),
      ] {
        #expect(try stored.attribute(name, path).utf8.elementsEqual(plain.utf8), "\(path): \(name)")
      }
    }
  }

  /// The file of a suite has the plain name, as Foundation's would.
  @Test func suiteHasTheFileOfItsPlainName() throws {
    let stored = try StoredTree(keychain: .none)
    let names = Self.names.filter { !$0.plain.isEmpty && !$0.plain.contains("/") }
    for (_, encoded) in names {
      try stored.makeDirectories("defaults/\(encoded)")
      try stored.write("defaults/\(encoded)/k", "x")
    }
    #expect(isSame(stored.suiteFiles, names.map { $0.plain + ".plist" }))
    try stored.reopen()
    #expect(isSame(try stored.list("defaults"), names.map(\.encoded)))
    for (plain, encoded) in names {
      #expect(try stored.attribute("keyhole.name", "defaults/\(encoded)").utf8.elementsEqual(plain.utf8))
    }
  }

  static let tooLongInTheStore = [
    String(repeating: "a", count: 256),
    String(repeating: "a", count: 229) + "é" + String(repeating: "b", count: 100),
    String(repeating: "a", count: 228) + "/" + String(repeating: "b", count: 100),
    String(repeating: "日", count: 200), String(repeating: "/", count: 100), String(repeating: "🔑", count: 64),
    "." + String(repeating: "x", count: 300), String(repeating: "a", count: 300) + "1",
    String(repeating: "a", count: 300) + "2",
  ]

  @Test func nameTooLongInTheStoreAppearsCut() throws {
    let stored = try StoredTree(keychain: .none)
    let entries = Self.tooLongInTheStore.enumerated().map {
      "<key>\($0.element)</key><integer>\($0.offset)</integer>"
    }
    try stored.writeSuite("long", entries.joined())
    let expected = Self.tooLongInTheStore.map { plain in
      let digest = SHA256Hasher.hash(Array(plain.utf8)).prefix(8).map { byte in
        String(byte >> 4, radix: 16) + String(byte & 0xF, radix: 16)
      }
      return ExpectedName.beginning(ExpectedName.encoded(plain)) + "%~" + digest.joined()
    }
    #expect(isSame(try stored.list("defaults/long"), expected))
    for (number, (plain, name)) in zip(Self.tooLongInTheStore, expected).enumerated() {
      #expect(try stored.text("defaults/long/\(name)") == "\(number)\n")
      #expect(try stored.attribute("keyhole.name", "defaults/long/\(name)") == plain)
      try stored.write("defaults/long/\(name)", "\(number + 100)")
    }
    try stored.reopen()
    for (number, name) in expected.enumerated() {
      #expect(try stored.text("defaults/long/\(name)") == "\(number + 100)\n")
      try stored.remove("defaults/long/\(name)")
    }
    #expect(try stored.list("defaults/long").isEmpty)
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func anyStringIsANameAndComesBack(seed: UInt64) throws {
    let stored = try StoredTree()
    var random = SplitMix64(seed: seed)
    var names: [ExactString: String] = [:]
    while names.count < 100 {
      let plain = ExpectedName.random(scalars: 20, using: &random)
      let encoded = ExpectedName.encoded(plain)
      if encoded.utf8.count <= 255 { names[ExactString(encoded)] = plain }
    }
    let items = names.keys.sorted().prefix(30)
    try stored.makeDirectories("defaults/s")
    for name in names.keys { try stored.write("defaults/s/\(name.string)", "x") }
    for name in items { try stored.makeItem("keychain/generic/s/\(name.string)", "x") }
    try stored.reopen()
    #expect(isSame(try stored.list("defaults/s"), names.keys.map(\.string)))
    #expect(isSame(try stored.list("keychain/generic/s"), items.map(\.string)))
    for (name, plain) in names {
      let read = try stored.attribute("keyhole.name", "defaults/s/\(name.string)")
      #expect(read.utf8.elementsEqual(plain.utf8), "\(name)")
    }
  }

  // MARK: Internet passwords

  static let identities: [(name: String, attributes: [String: String])] =
    [
      ("peter", ["account": "peter"]),
      ("peter;protocol=ssh;port=8080", ["account": "peter", "protocol": "ssh", "port": "8080"]),
      (
        "peter;domain=Realm;protocol=https;auth=httpDigest;port=443;path=%2Fprivate",
        [
          "account": "peter", "domain": "Realm", "protocol": "https", "authenticationType": "httpDigest",
          "port": "443", "path": "/private",
        ]
      ),
      ("%", [:]),
      ("%;protocol=smb", ["protocol": "smb"]),
      ("peter;protocol=gopher", ["account": "peter", "protocol": "gopher"]),
      ("peter;auth=sasl", ["account": "peter", "authenticationType": "sasl"]),
      ("a%3Bb;path=c%3Bd", ["account": "a;b", "path": "c;d"]),
      ("peter;port=65535", ["account": "peter", "port": "65535"]),
      ("a=b;path=c=d", ["account": "a=b", "path": "c=d"]),
    ]
    + protocols.map { ("p;protocol=\($0)", ["account": "p", "protocol": $0]) }
    + authenticationTypes.map { ("p;auth=\($0)", ["account": "p", "authenticationType": $0]) }
  private static let protocols = """
    ftp ftpAccount http irc nntp pop3 smtp socks imap ldap appleTalk afp telnet ssh ftps https httpProxy httpsProxy \
    ftpProxy smb rtsp rtspProxy daap eppc ipp nntps ldaps telnetS imaps ircs pop3s
    """.split(separator: " ").map(String.init)
  private static let authenticationTypes = "ntlm msn dpa rpa httpBasic httpDigest htmlForm default"
    .split(separator: " ").map(String.init)

  @Test func identityOfAnInternetPasswordIsInItsName() throws {
    let stored = try StoredTree()
    let server = "keychain/internet/my.server"
    for (name, _) in Self.identities { try stored.makeItem("\(server)/\(name)", "secret of \(name)") }
    try stored.reopen()
    #expect(isSame(try stored.list(server), Self.identities.map(\.name)))
    for (name, attributes) in Self.identities {
      let item = "\(server)/\(name)"
      #expect(try stored.text(item + "/value") == "secret of \(name)")
      #expect(try stored.attribute("server", item) == "my.server")
      for attribute in ["account", "domain", "protocol", "authenticationType", "port", "path"] {
        // `%` is an absent account as well as an empty one.
        let value = (try? stored.attribute(attribute, item)) ?? ""
        #expect(value == attributes[attribute] ?? "", "\(name): \(attribute)")
      }
    }
  }
}
