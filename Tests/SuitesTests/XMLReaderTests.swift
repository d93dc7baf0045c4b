import Model
import Store
import Suites
import Testing

/// XML property lists read as Foundation reads them, or not at all.
@Suite(.timeLimit(.minutes(2))) struct XMLReaderTests {
  let sandbox = SuiteSandbox()
  var foundation: FoundationProgram { FoundationProgram(sandbox: sandbox) }

  private func read(_ bytes: some Collection<UInt8>) -> String {
    PropertyLists().value(xml: Array(bytes)).map(describe) ?? "unreadable"
  }

  /// Documents on which both agree, readable or not.
  static let agreed: [String] = [
    "<integer>010</integer>", "<integer>-0x1F</integer>", "<integer>+7</integer>", "<integer> 7</integer>",
    "<integer>foo</integer>", "<integer></integer>", "<integer/>", "<integer>1.5</integer>",
    "<integer>18446744073709551615</integer>", "<integer>18446744073709551616</integer>",
    "<integer>-9223372036854775808</integer>", "<integer>-9223372036854775809</integer>",
    "<integer>--1</integer>", "<integer>99999999999999999999999999999999999999999999</integer>",
    "<real>0.1</real>", "<real>-0.0</real>", "<real>1e22</real>", "<real>nan</real>",
    "<real>-infinity</real>",
    "<real>+infinity</real>", "<real>inf</real>", "<real>.5</real>", "<real>5.</real>", "<real>1e400</real>",
    "<real>foo</real>", "<real></real>", "<real>0x10</real>", "<real>1_0</real>", "<real>5e-324</real>",
    "<date>1800-01-01T00:00:00Z</date>", "<date>9999-12-31T23:59:59Z</date>",
    "<date>0000-12-30T00:00:00Z</date>",
    "<date>-1199-02-15T14:13:20Z</date>", "<date>12026-11-21T07:53:00Z</date>", "<date>garbage</date>",
    "<date>2026-11-21T07:53:00+02:00</date>", "<date>2026-1-1T0:0:0Z</date>",
    "<date>2026-02-30T00:00:00Z</date>",
    "<date>2024-02-29T00:00:00Z</date><!-- 2024-02-29T00:00:00.25Z -->",
    "<date>2024-02-29T00:00:00Z</date>", "<date>1900-02-28T23:59:59Z</date>", "<date></date>",
    "<true/>", "<false></false>", "<true>x</true>", "<string/>", "<string></string>",
    "<string> \n b </string>",
    "<string>x<![CDATA[<&>]] ]]>y&lt;&gt;&amp;&quot;&apos;&#x1F600;&#13;&#10;</string>",
    "<string>a\rb\r\nc</string>", "<string>\u{1}\u{1B}\u{7F}</string>", "<string>a\0b&#0;c</string>",
    "<string>&#1;&#xB;</string>", "<string>\u{FFFF}\u{FFFE}\u{FEFF}</string>", "<string>&foo;</string>",
    "<string>a & b</string>", "<string>&#xD800;</string>", "<string>&#x110000;</string>",
    "<string>&;</string>", "<string>a]]>b</string>", "<string>e\u{301}é😀</string>",
    "<string>a<b>c</b></string>",
    "<data>\n\t</data>", "<data></data>", "<data>AAEC</data>", "<data>\n\tAA\n\tEC\n</data>",
    "<data>AA==</data>",
    "<array/>", "<array></array>", "<array><integer>1</integer><array/></array>",
    "<array><key>a</key></array>",
    "<dict/>", "<dict></dict>",
    "<dict><key>a</key><integer>1</integer><key>a</key><integer>2</integer></dict>",
    "<dict><string>a</string><string>b</string></dict>", "<dict><key>a</key></dict>",
    "<dict><key/><true/></dict>",
    "<dict><key> a </key><key>b</key></dict>", "<dict>a</dict>", "<array>a</array>", "<array><true></array>",
    "<array><dict></array></dict>", "<dict><!-- c --><key>a</key><!-- < > --><true/></dict>",
    "<dict><?php x ?><key>a</key><true /></dict>", "<dict ><key >a</key ><string\n>b</string ></dict>",
    "<dict><key a=\"1\">a</key><string x='2'>b</string></dict>", "<foo/>", "<Dict/>", "<null/>",
    "<dict><key>CF$UID</key><integer>5</integer></dict>", "<dict><key>CF$UID</key><string>5</string></dict>",
    "<dict><key>CF$UID</key><integer>5</integer><key>b</key><true/></dict>", "<dict/><dict/>", "", " ",
  ]

  @Test func readsAsFoundationDoes() {
    let whole = Self.agreed.map { value in
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">\(value)</plist>"
    }
    for (value, text) in zip(Self.agreed, whole) {
      #expect(read(text.utf8) == foundation("parse", input: Array(text.utf8)), "\(value.debugDescription)")
    }
  }

  @Test func readsEncodingsAsFoundationDoes() {
    let text = "<plist version=\"1.0\"><string>é\u{FC}</string></plist>"
    let utf16 = Array(text.utf16)
    let documents: [[UInt8]] = [
      [0xEF, 0xBB, 0xBF] + text.utf8, [0xFF, 0xFE] + utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] },
      [0xFE, 0xFF] + utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] },
      Array("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>".utf8) + utf16.map { UInt8($0) },
      Array("<?xml version='1.0' encoding='utf-8'?>".utf8) + text.utf8,
      Array("<string>no plist</string>".utf8),
      Array("<plist><string>".utf8) + [0xFF, 0xFE] + Array("</string></plist>".utf8),
      Array("<plist><string>".utf8) + [0xC0, 0x80] + Array("</string></plist>".utf8), [], [0xFF, 0xFE],
    ]
    for document in documents {
      #expect(read(document) == foundation("parse", input: document), "\(document.prefix(40))")
    }
  }

  /// Foundation guesses here; a rewrite after a guess loses what was meant.
  @Test(arguments: [
    "<plist><dict/></plist>garbage", "<plist><data>!!!!</data></plist>", "{ a = b; }", "hello",
    "<plist><date>2026-13-41T07:53:00Z</date></plist>", "<plist><data>A</data></plist>",
    "<plist><string>&#;</string></plist>",
  ])
  func damageIsNotGuessedAt(_ text: String) {
    #expect(read(text.utf8) == "unreadable")
    #expect(foundation("parse", input: Array(text.utf8)) != "unreadable")
  }

  /// Plain in meaning, and refused by Foundation only.
  @Test func whatIsPlainIsRead() {
    #expect(read("<plist><integer> 7\n</integer></plist>".utf8) == "integer 7")
    #expect(read("<plist><data/></plist>".utf8) == "data ")
    #expect(read("<plist><real> 1.5 </real></plist>".utf8) == "real 1.5")
    #expect(read("<plist><string>a<!-- c -->b</string></plist>".utf8) == "string 61 62")
    #expect(read("<!DOCTYPE plist [<!ENTITY a \"b>\">]><plist><true/></plist>".utf8) == "bool true")
  }

  /// The fraction of a date stands in a comment, which Foundation skips.
  @Test func fractionOfADateSurvivesXML() throws {
    let dates = [0.25, -0.25, -70_000_000_000.5, 816_940_380.123456].compactMap(
      SettingDate.init(sinceReference:))
    let value = SettingValue.dictionary([
      "a": .date(dates[0]), "b": .array(dates.map(SettingValue.date) + [.date(5), .integer(1)]),
    ])
    let bytes = try PropertyLists().xml(value)
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(text.contains("<date>2001-01-01T00:00:00Z</date><!-- 2001-01-01T00:00:00.25Z -->\n"))
    #expect(text.contains("<date>1970-01-01T00:00:05Z</date>\n"))
    #expect(PropertyLists().value(xml: bytes) == value)
    let whole = SettingValue.dictionary([
      "a": .date(SettingDate(seconds: dates[0].seconds)),
      "b": .array(dates.map { .date(SettingDate(seconds: $0.seconds)) } + [.date(5), .integer(1)]),
    ])
    #expect(read(bytes) == describe(whole))
  }

  @Test(arguments: [
    "<!-- 2001-01-01T00:00:01.25Z -->", "<!-- 2001-01-01T00:00:00.Z -->", "<!-- 2001-01-01T00:00:00.2x5Z -->",
    "<!-- 2001-01-01T00:00:00.25Z-->", "<!-- .25 -->", "<!---->", " <!-- 2001-01-01T00:00:00.25Z -->",
    "<!-- 2001-01-01T00:00:00.1234567890123456789012345678901Z -->",
  ])
  func commentThatIsNoFractionIsSkipped(comment: String) {
    let text = "<plist><array><date>2001-01-01T00:00:00Z</date>\(comment)<true/></array></plist>"
    #expect(PropertyLists().value(xml: text.utf8) == .array([.date(978_307_200), .bool(true)]))
  }

  @Test func everyCutOffDocumentIsUnreadable() throws {
    let value = SettingValue.dictionary([
      "a": .array([.string("x<é"), .data([1, 2, 3]), .uid(3)]), "b": .date(0),
      "c": .date(SettingDate(sinceReference: 0.5) ?? 0),
    ])
    let bytes = try PropertyLists().xml(value)
    #expect(PropertyLists().value(xml: bytes) == value)
    for count in 0..<(bytes.count - 1) {
      #expect(PropertyLists().value(xml: bytes.prefix(count)) == nil, "cut off at \(count)")
    }
  }

  @Test func nestingIsBoundedWhereFoundationBoundsIt() throws {
    for (depth, isRead) in [(512, true), (513, false), (100_000, false)] {
      let text = String(repeating: "<array>", count: depth) + String(repeating: "</array>", count: depth)
      #expect((read("<plist>\(text)</plist>".utf8) != "unreadable") == isRead, "\(depth)")
      #expect((foundation("parse", input: Array(text.utf8)) != "unreadable") == isRead, "\(depth)")
    }
    let deep = (0..<512).reduce(SettingValue.integer(1)) { value, _ in .array([value]) }
    #expect(PropertyLists().value(xml: try PropertyLists().xml(deep)) == deep)
    #expect(throws: StoreError.self) { try PropertyLists().xml(.array([deep])) }
  }

  @Test func manyReferencesTakeNoLongerThanTheirNumber() {
    let text = "<plist><string>" + String(repeating: "&lt;", count: 1_000_000) + "</string></plist>"
    #expect(read(text.utf8).utf8.count == 7 + 3 * 1_000_000 - 1)
  }
}
