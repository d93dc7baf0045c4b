import Formats
import ImportExport
import Model
import SecretMemory
import Suites
import Testing

/// The items of other programs' files.
@Suite struct ImportFormatTests {
  private func read(_ name: String, suite: ExactString? = nil, service: ExactString? = nil) throws -> Contents
  {
    let bytes = try source(Corpus.bytes(name))
    let format = try #require(try ImportReader.format(of: bytes))
    return try reader(suite: suite, service: service).read(bytes, as: format)
  }

  @Test func bitwardenJSON() throws {
    let card =
      #"{"cardholderName": "P", "brand": "Visa", "number": "4111111111111111", "expMonth": "1", "expYear": "2030", "code": "123"}"#
    let lines = try read("bitwarden/handwritten.json").lines().map {
      $0.split(whereSeparator: \.isNewline).map { $0.drop { $0 == " " } }.joined(separator: " ")
    }
    let mail = "keychain/internet/mail.example.com/peter;protocol=https;port=8443"
    #expect(
      lines[0]
        == "\(mail) s\"cret é [keyhole.label=Mail|comment=a note|url=https://mail.example.com:8443/x|favorite=true|color=red"
        + "|on=true|url-2=https://other.example/|group=Work"
        + "|keyhole.created=2020-01-02T03:04:05Z|keyhole.modified=2021-01-02T03:04:05Z]")
    let companion = "keychain/internet/mail.example.com/peter%2F"
    #expect(lines[1] == "\(mail) otpauth otpauth://totp/x?secret=JBSWY3DPEHPK3PXP")
    #expect(lines[2] == "\(companion)pin;protocol=https;port=8443 1234")
    #expect(lines[3].hasPrefix("keychain/generic/Alarm/% code 99 line 2 [keyhole.label=Alarm|kind=note"))
    let flat = lines[4].filter { $0 != " " }
    #expect(flat.hasPrefix("keychain/generic/Visa/%\(card.filter { $0 != " " })"))
    #expect(lines.contains { $0.hasPrefix("keychain/generic/server/% -----BEGIN OPENSSH PRIVATE KEY-----") })
    #expect(Set(lines.suffix(3)) == ["- 1 earlier password", "- 1 passkey", "- 1 deleted entry"])
    #expect(!lines.contains { $0.contains("Gone") })
  }

  @Test func anEncryptedExportOfBitwardenSaysWhatToDo() throws {
    let bytes = try source(Array(#"{"encrypted": true, "passwordProtected": true, "data": "x"}"#.utf8))
    #expect(try ImportReader.format(of: bytes) == .bitwarden)
    #expect { try reader().read(bytes, as: .bitwarden) } throws: {
      ($0 as? FormatError)?.reason.contains("not `.json (Encrypted)`") ?? false
    }
  }

  @Test(arguments: ["csv/bitwarden-handwritten.csv", "csv/1password-handwritten.csv"])
  func tablesOfPasswordManagers(name: String) throws {
    let lines = try read(name).lines()
    #expect(
      lines[0].hasPrefix(
        "keychain/internet/mail.example.com/peter;protocol=https;port=8443 p,\"w [keyhole.label=Mail|comment=a"
      ))
    #expect(lines.contains { $0.hasSuffix("otp;protocol=https;port=8443 otpauth://totp/x?secret=A") })
  }

  @Test func keePassXCLeavesOutItsBin() throws {
    for name in ["csv/keepassxc-2.7.4.csv", "keepass/keepassxc-2.7.4.xml"] {
      let lines = try read(name).lines()
      #expect(!lines.contains { $0.contains("Gone") }, "\(name)")
      #expect(lines.contains("- 1 entry of the recycle bin"), "\(name)")
      let mail = try #require(lines.first)
      #expect(
        mail.hasPrefix("keychain/internet/mail.example.com/peter;protocol=https;port=8443 p,\"w&<1> "),
        "\(name)")
      #expect(mail.contains("keyhole.created=2026-11-22T06:27:5"), "\(name)")
    }
    #expect(
      try read("keepass/keepassxc-2.7.4.xml").lines().contains {
        $0.contains("1 attachment that the file only names")
      })
  }

  @Test func keePassWithAttachments() throws {
    let lines = try read("keepass/keepass-2-handwritten.xml").lines()
    let companion = { (name: String) in
      "  keychain/internet/mail.example.com/peter%2F\(name);protocol=https;port=8443 "
    }
    #expect(
      lines[0].hasSuffix(
        "[keyhole.label=Mail|comment=a note|url=https://mail.example.com:8443/x|expires=2030-01-02T03:04:05Z|color=red"
          + "|field.type=imap|keyhole.created=2020-01-02T03:04:05Z|keyhole.modified=2021-01-02T03:04:05Z]"))
    #expect(lines[1].hasSuffix(" otpauth otpauth://totp/x?secret=JBSWY3DPEHPK3PXP"))
    #expect(lines[2] == companion("Pin") + "1234")
    #expect(lines[3] == companion("att.txt") + String(repeating: "attached ", count: 40))
    #expect(lines[4] == companion("raw.txt") + "plain attachment\n")
    #expect(lines.count == 9)
  }

  @Test func linesOfGopassBecomeAttributes() throws {
    let content = try source(Corpus.bytes("pass/gopass-handwritten.txt"))
    var contents = Contents()
    contents.items = [try PassEntry.item(content, path: ["web", "mail"], service: nil)]
    #expect(
      try contents.lines() == [
        "keychain/generic/web/mail s3cret pw [login=peter|url=https://mail.example.com/|email=p@example.com"
          + "|email-2=second@example.com|more=of it, http://x]",
        "  keychain/generic/web/mail otpauth otpauth://totp/x?secret=JBSWY3DPEHPK3PXP",
        "  keychain/generic/web/mail%2Fpin 1234",
        "  keychain/generic/web/mail%2Fnotes free text\n",
      ])
  }

  @Test func theLastVariableOfANameCounts() throws {
    let contents = try read("env/shell.env", service: "app")
    let lines = try contents.lines()
    #expect(lines.contains("keychain/generic/app/PLAIN again []") && contents.omitted == 1)
    #expect(lines.last == "- 1 variable that is set again later")
  }

  /// A quote in a comment behind a value is no quote, and a backslash at its end continues nothing.
  @Test func commentsBehindValuesHideNoVariable() throws {
    let text =
      "A=1 # don't\nB=\"x\" # say \"hi\nC=3 # 3\\\nD=won\\'t # it's\nE='a # b'\nF= # only 'comment\nG=#x\n"
    let settings = try reader(suite: "env").read(source(Array(text.utf8)), as: .env).settings
    #expect(settings.map(\.key.string) == ["A", "B", "C", "D", "E", "F", "G"])
  }

  /// Of an entry without a password; one without notes too is named.
  @Test func notesAreTheSecretOfAnEntryWithoutOne() throws {
    let text =
      "folder,favorite,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp\n,,note,Secure,the note,,0,,,,\n,,login,Empty,,,0,,me,,\n"
    let contents = try reader().read(source(Array(text.utf8)), as: .csv)
    let lines = try contents.lines()
    #expect(
      lines.contains { $0.contains("Secure") && $0.contains("the note") && $0.contains("kind=note") },
      "\(lines)")
    #expect(contents.omitted == 1 && contents.remarks == ["1 entry without a secret (“Empty”)"])
  }

  @Test func environmentFilesAreReadAsAShellReadsThem() throws {
    let text = #"""
      # a comment with 'a quote
      PLAIN=value
      export SPACED = two words   # and a comment
      SINGLE='it'\''s $HOME'
      DOUBLE="a\nb \"c\""
      MULTI='line 1
      line 2'
      NUMBER=42
      ZIP=007
      EMPTY=

      """#
    let contents = try reader(suite: "env").read(source(Array(text.utf8)), as: .env)
    #expect(contents.settings.allSatisfy { $0.suite == "env" })
    #expect(
      Dictionary(uniqueKeysWithValues: contents.settings.map { ($0.key, $0.value) }) == [
        "PLAIN": .string("value"), "SPACED": .string("two words"), "SINGLE": .string("it's $HOME"),
        "DOUBLE": .string("a\nb \"c\""), "MULTI": .string("line 1\nline 2"), "NUMBER": .integer(42),
        "ZIP": .string("007"), "EMPTY": .data([]),
      ])
  }

  @Test func keePassXMLHasCompanionsAndGroups() throws {
    let string = { (key: String, value: String) in "<String><Key>\(key)</Key>\(value)</String>" }
    let secret = { (text: String) in "<Value ProtectInMemory=\"True\">\(text)</Value>" }
    let text = """
      <?xml version="1.0" encoding="utf-8" standalone="yes"?>
      <KeePassFile><Meta><RecycleBinUUID>QUJD</RecycleBinUUID></Meta><Root><Group><UUID>AAAA</UUID><Name>Database</Name>
      <Entry><UUID>x</UUID>\(string("Title", "<Value>Mail</Value>"))\(string("UserName", "<Value>peter</Value>"))
      \(string("Password", secret("s&amp;cret &lt;1&gt;")))\(string("URL", "<Value>https://mail.example.com:8443/x</Value>"))
      \(string("Notes", "<Value>a note</Value>"))\(string("Pin", secret("1234")))\(string("color", "<Value>red</Value>"))
      <History><Entry>\(string("Title", "<Value>Mail</Value>"))\(string("Password", "<Value>old</Value>"))</Entry></History></Entry>
      <Group><UUID>BBBB</UUID><Name>Work</Name><Entry>\(string("Title", "<Value>Door</Value>"))\(string("Password", "<Value>5678</Value>"))</Entry></Group>
      <Group><UUID>QUJD</UUID><Name>Bin</Name><Entry>\(string("Title", "<Value>Gone</Value>"))\(string("Password", "<Value>x</Value>"))</Entry></Group>
      </Group></Root></KeePassFile>
      """
    let bytes = try source(Array(text.utf8))
    #expect(try ImportReader.format(of: bytes) == .keepass)
    let mail = "keychain/internet/mail.example.com/peter"
    #expect(
      try reader().read(bytes, as: .keepass).lines() == [
        "\(mail);protocol=https;port=8443 s&cret <1> [keyhole.label=Mail|comment=a note"
          + "|url=https://mail.example.com:8443/x|color=red]",
        "  \(mail)%2FPin;protocol=https;port=8443 1234",
        "keychain/generic/Door/% 5678 [keyhole.label=Door|group=Work]",
        "- 1 earlier version of an entry", "- 1 entry of the recycle bin",
      ])
  }

  @Test(arguments: [
    ("name,url,username,password,note\nSite,https://a.example/,me,\"p\"\"w,1\",n\n", "https", "p\"w,1"),
    (
      "\"url\",\"username\",\"password\",\"httpRealm\",\"formActionOrigin\",\"guid\",\"timeCreated\",\"timeLastUsed\",\"timePasswordChanged\"\r\n\"https://a.example\",\"me\",\"pw\",\"\",\"https://a.example\",\"{1}\",\"1700000000000\",\"1700000000000\",\"1700000001000\"\r\n",
      "https", "pw"
    ),
    (
      "\"Group\",\"Title\",\"Username\",\"Password\",\"URL\",\"Notes\",\"TOTP\",\"Icon\",\"Last Modified\",\"Created\"\n\"Root\",\"T\",\"me\",\"p\nw\",\"http://a.example\",\"\",\"\",\"0\",\"2026-11-21T07:53:00Z\",\"2026-11-21T07:53:00Z\"\n",
      "http", "p\nw"
    ),
  ])
  func tablesOfBrowsers(table: String, scheme: String, password: String) throws {
    let bytes = try source(Array(table.utf8))
    #expect(try ImportReader.format(of: bytes) == .csv)
    let items = try reader().read(bytes, as: .csv).items
    #expect(
      items.map { TreePaths.path($0.identity) } == ["keychain/internet/a.example/me;protocol=\(scheme)"])
    #expect(try items.map { try text($0.secret) } == [password])
  }

  @Test(
    arguments: [
      ([0x03, 0xD9, 0xA2, 0x9A, 0x67, 0xFB, 0x4B, 0xB5], "keepassxc-cli export"),
      ([0x50, 0x4B, 0x03, 0x04, 0], "1PUX"),
    ] as [([UInt8], String)])
  func whatCannotBeReadSaysWhatToDo(bytes: [UInt8], words: String) throws {
    let source = try source(bytes)
    #expect { try ImportReader.format(of: source) } throws: {
      ($0 as? FormatError)?.reason.contains(words) ?? false
    }
  }

  @Test(arguments: ["json", "csv", "keepass", "bitwarden", "tar"])
  func aTargetIsHonouredOrRefused(format: String) throws {
    let format = try #require(ImportFormat(rawValue: format))
    for file in Corpus.files(of: format.rawValue) {
      let bytes = try source(file.bytes)
      #expect(throws: FormatError.self) { try reader(service: "x").read(bytes, as: format) }
    }
  }

  // MARK: Refused

  private func refuses(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let bytes = try source(Array(text.utf8))
    let format = try ImportReader.format(of: bytes) ?? .env
    #expect(throws: FormatError.self, "\(text.prefix(200))", sourceLocation: sourceLocation) {
      let contents = try reader(suite: format.takesTarget ? "s" : nil).read(bytes, as: format)
      for item in contents.items { _ = try item.secret.bytes() }
    }
  }

  @Test(arguments: [
    "{", "{}", "{\"keyhole\":2}",
    "{\"keyhole\":1,\"defaults\":{\"s\":{\"k\":{\"type\":\"integer\",\"value\":\"x\"}}}}",
    "{\"keyhole\":1,\"keychain\":[{\"class\":\"generic\",\"value\":\"x\"}]}", "{\"keyhole\":1,\"unknown\":1}",
    "{\"keyhole\":1,\"keychain\":[{\"class\":\"internet\",\"attributes\":{\"server\":\"s\",\"port\":\"99999\"},\"value\":\"x\"}]}",
    "{\"keyhole\":1,\"keychain\":[{\"class\":\"generic\",\"attributes\":{\"service\":\"s\",\"account\":\"a\"},\"value\":\"\\ud800\"}]}",
    "<plist><dict><key>keyhole</key><integer>1</integer><key>keychain</key><array>",
    "name,url,username,password,note\nA,b\n", "name,url,username,password,note\nA,\"b\n",
    "<KeePassFile><Root>",
    "nothing at all",
  ])
  func damageIsRefused(text: String) throws { try refuses(text) }

  @Test func whatWouldBeLostIsRefused() throws {
    let item = #""class":"generic","attributes":{"service":"s","account":"a"}"#
    try refuses(#"{"keyhole":1,"keychain":[{\#(item),"value":"x","base64":"eA=="}]}"#)
    try refuses(#"{"keyhole":1,"defaults":{"s":{"k":{"type":"data","value":"x","base64":"eA=="}}}}"#)
    try refuses(
      #"{"keyhole":1,"defaults":{"s":{"k":{"type":"bool","value":true},"k":{"type":"bool","value":true}}}}"#)
    try refuses(#"{"keyhole":1,"keyhole":1}"#)
    try refuses(#"{"keyhole":1,"keychain":[{\#(item),"value":"\u+041"}]}"#)
    try refuses(#"{"keyhole":1,"keychain":[{\#(item),"value":"\x"}]}"#)
    let list = { (body: String) in
      "<plist><dict><key>keyhole</key><integer>1</integer><key>keychain</key><array><dict>\(body)</dict></array></dict></plist>"
    }
    let name =
      "<key>class</key><string>generic</string><key>attributes</key><dict><key>service</key><string>s</string>"
    try refuses(
      list(name + "<key>account</key><string>a&#0;b</string></dict><key>value</key><data>eA==</data>"))
    try refuses(
      list(
        name
          + "<key>account</key><string>a</string><key>account</key><string>b</string></dict><key>value</key><data/>"
      ))
    try refuses("name,url,username,password\nA,\"b\"c,d,e\n")
    try refuses("<KeePassFile><Root><Group></Entry></Root></KeePassFile>")
    try refuses("<KeePassFile><Root></Root></KeePassFile><more/>")
  }

  @Test func anArchiveThatIsCutOffIsRefusedAtEveryCut() throws {
    for name in ["tar/small.tar", "tar/all.tar"] {
      let bytes = Corpus.bytes(name)
      _ = try reader().read(try source(bytes), as: .tar)
      // Bytes behind the two zero blocks are padding.
      let content = bytes.lastIndex { $0 != 0 }.map { ($0 / 512 + 1) * 512 } ?? 0
      for end in Array(stride(from: 0, to: content + 1024, by: 128)) + [content + 1023] {
        #expect(throws: FormatError.self, "\(name), cut at \(end)") {
          try reader().read(try source(bytes[..<end]), as: .tar)
        }
      }
    }
  }

  /// JSON, property lists and tables find their cuts, too.
  @Test(arguments: [
    "json/all.json", "plist/all.plist", "keepass/keepass-2-handwritten.xml", "bitwarden/handwritten.json",
  ])
  func cutsAreFound(name: String) throws {
    let bytes = Array(Corpus.bytes(name).reversed().drop { $0 <= 0x20 }.reversed())
    for end in stride(from: 0, to: bytes.count, by: 13) {
      #expect(throws: FormatError.self, "cut at \(end)") {
        let source = try source(bytes[..<end])
        let format = try ImportReader.format(of: source) ?? .json
        return try reader().read(source, as: format)
      }
    }
  }

  /// A value across the border of two pieces reads the same.
  @Test(arguments: [1, 7, 512])
  func piecesReadAsTheWhole(size: Int) throws {
    for name in [
      "json/all.json", "plist/all.plist", "tar/all.tar", "bitwarden/handwritten.json", "csv/chrome.csv",
      "keepass/keepass-2-handwritten.xml",
    ] {
      let bytes = Corpus.bytes(name)
      let (whole, parts) = (try source(bytes), try pieces(bytes, of: size))
      let format = try #require(try ImportReader.format(of: parts))
      let expected = try reader().read(whole, as: format)
      let read = try reader().read(parts, as: format)
      #expect(try read.lines() == expected.lines(), "\(name)")
      let values = { (contents: Contents) in
        Dictionary(contents.settings.map { (TreePaths.path($0), $0.value) }) { $1 }
      }
      #expect(values(read) == values(expected), "\(name)")
    }
  }
}
