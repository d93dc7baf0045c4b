import Foundation
import Platform
import TestSupport
import Testing

/// Section 3: the types of settings as text, both ways, without a mount.
@Suite struct SettingTextTests {
  /// A value as a property list has it, its type, and the file's content.
  static let shown: [(xml: String, type: String, content: String)] = [
    ("<string>hello</string>", "string", "hello\n"),
    ("<string></string>", "string", "\n"),
    ("<string>two\nlines</string>", "string", "two\nlines\n"),
    ("<string>ended\n</string>", "string", "ended\n\n"),
    ("<string>a&#13;b&#13;\n</string>", "string", "a\rb\r\n\n"),
    ("<string>&lt;&amp;&gt; größer 🔑</string>", "string", "<&> größer 🔑\n"),
    ("<string>  blanks  </string>", "string", "  blanks  \n"),
    ("<string>42</string>", "string", "42\n"),
    ("<integer>0</integer>", "integer", "0\n"),
    ("<integer>-1</integer>", "integer", "-1\n"),
    ("<integer>-9223372036854775808</integer>", "integer", "-9223372036854775808\n"),
    ("<integer>9223372036854775807</integer>", "integer", "9223372036854775807\n"),
    ("<integer>9223372036854775808</integer>", "integer", "9223372036854775808\n"),
    ("<integer>18446744073709551615</integer>", "integer", "18446744073709551615\n"),
    ("<real>3</real>", "real", "3.0\n"),
    ("<real>0.1</real>", "real", "0.1\n"),
    ("<real>-0.0</real>", "real", "-0.0\n"),
    ("<real>1e22</real>", "real", "1e+22\n"),
    ("<real>1e-7</real>", "real", "1e-07\n"),
    ("<real>5e-324</real>", "real", "5e-324\n"),
    ("<real>1.7976931348623157e308</real>", "real", "1.7976931348623157e+308\n"),
    ("<real>+infinity</real>", "real", "inf\n"),
    ("<real>-infinity</real>", "real", "-inf\n"),
    ("<real>nan</real>", "real", "nan\n"),
    ("<true/>", "bool", "true\n"),
    ("<false/>", "bool", "false\n"),
    ("<date>2026-11-21T07:53:00Z</date>", "date", "2026-11-21T07:53:00Z\n"),
    ("<date>1969-12-31T23:59:59Z</date>", "date", "1969-12-31T23:59:59Z\n"),
    ("<date>0001-01-01T00:00:00Z</date>", "date", "0001-01-01T00:00:00Z\n"),
    ("<date>2024-02-29T12:00:00Z</date>", "date", "2024-02-29T12:00:00Z\n"),
    ("<data></data>", "data", ""),
    ("<data>aGk=</data>", "data", "hi"),
    ("<data>\n\t\tAAEC\n\t\tAwQ=\n\t</data>", "data", "\u{0}\u{1}\u{2}\u{3}\u{4}"),
    ("<array/>", "array", "[]\n"),
    ("<dict/>", "dict", "{}\n"),
    (
      "<array><integer>1</integer><real>2</real><true/><string>x</string></array>", "array",
      "[\n  1,\n  2.0,\n  true,\n  \"x\"\n]\n"
    ),
    (
      "<dict><key>b</key><array><dict/></array><key>a</key><dict><key>x</key><real>1e22</real></dict></dict>",
      "dict",
      "{\n  \"a\": {\n    \"x\": 1e+22\n  },\n  \"b\": [\n    {}\n  ]\n}\n"
    ),
    (
      "<dict><key>é</key><integer>1</integer><key>z</key><integer>2</integer><key>Z</key><integer>3</integer><key>🔑</key><integer>4</integer><key>\u{FFFD}</key><integer>5</integer><key></key><integer>6</integer></dict>",
      "dict", "{\n  \"\": 6,\n  \"Z\": 3,\n  \"z\": 2,\n  \"é\": 1,\n  \"\u{FFFD}\": 5,\n  \"🔑\": 4\n}\n"
    ),
    (
      "<array><string>q\"b\\s/t\tn\nr&#13;</string></array>", "array",
      "[\n  \"q\\\"b\\\\s/t\\tn\\nr\\r\"\n]\n"
    ),
  ]

  @Test func storedValuesAreShownAsText() throws {
    try withSettings { settings in
      let entries = Self.shown.enumerated().map { "<key>k\($0.offset)</key>\($0.element.xml)" }
      try settings.writeSuite("shown", entries.joined())
      for (number, row) in Self.shown.enumerated() {
        let path = "shown/k\(number)"
        #expect(try settings.text(path) == row.content, "\(row.xml)")
        #expect(try settings.type(path) == row.type, "\(row.xml)")
        #expect(try settings.size(path) == row.content.utf8.count, "\(row.xml)")
      }
    }
  }

  @Test func binaryPropertyListsAreReadToo() throws {
    try withSettings { settings in
      let rows = Self.shown
      let entries = rows.enumerated().map { "<key>k\($0.offset)</key>\($0.element.xml)" }.joined()
      let list = try PropertyListText.value(PropertyListText.xml("<dict>\(entries)</dict>"))
      let binary = try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
      try settings.replaceSuite("binary", with: Array(binary))
      for (number, row) in rows.enumerated() {
        let path = "binary/k\(number)"
        #expect(try settings.text(path) == row.content, "\(row.xml)")
        #expect(try settings.type(path) == row.type, "\(row.xml)")
      }
      // A change of one key keeps the others.
      try settings.write("binary/k0", "changed")
      try settings.reopen()
      for (number, row) in rows.enumerated().dropFirst() {
        #expect(try settings.text("binary/k\(number)") == row.content, "\(row.xml)")
      }
    }
  }

  @Test func whatIsShownCanBeWrittenBack() throws {
    try withSettings { settings in
      let entries = Self.shown.enumerated().map { "<key>k\($0.offset)</key>\($0.element.xml)" }
      try settings.writeSuite("back", entries.joined())
      for (number, row) in Self.shown.enumerated() where !row.content.isEmpty {
        let path = "back/k\(number)"
        #expect(settings.failure { try settings.write(path, row.content) } == nil, "\(row.xml)")
      }
      try settings.reopen()
      for (number, row) in Self.shown.enumerated() {
        let path = "back/k\(number)"
        #expect(try settings.text(path) == row.content, "\(row.xml)")
        #expect(try settings.type(path) == row.type, "\(row.xml)")
      }
    }
  }

  /// Contents that are written to a key of a type, and the text that it shows then; nil: EINVAL and the old value stays.
  static let written: [(type: String, old: String, content: String, shown: String?)] = [
    ("string", "old", "new", "new\n"),
    ("string", "old", "new\n", "new\n"),
    ("string", "old", "new\n\n", "new\n\n"),
    ("string", "old", "\n", "\n"),
    ("string", "old", "42\n", "42\n"),
    ("string", "old", "a\r\n", "a\r\n"),
    ("integer", "1", "42", "42\n"),
    ("integer", "1", " \t42 \n\n", "42\n"),
    ("integer", "1", "-9223372036854775808\n", "-9223372036854775808\n"),
    ("integer", "1", "18446744073709551615\n", "18446744073709551615\n"),
    ("integer", "1", "18446744073709551616\n", nil),
    ("integer", "1", "-9223372036854775809\n", nil),
    ("integer", "1", "99999999999999999999999999\n", nil),
    ("integer", "1", "abc\n", nil),
    ("integer", "1", "1.5\n", nil),
    ("integer", "1", "1 2\n", nil),
    ("integer", "1", "0x10\n", nil),
    ("integer", "1", "-\n", nil),
    ("integer", "1", "true\n", nil),
    ("integer", "1", "\n", nil),
    ("real", "1.5", "2\n", "2.0\n"),
    ("real", "1.5", "1e3", "1000.0\n"),
    ("real", "1.5", "1E-7\n", "1e-07\n"),
    ("real", "1.5", " -0.50 \n", "-0.5\n"),
    ("real", "1.5", "inf\n", "inf\n"),
    ("real", "1.5", "-inf\n", "-inf\n"),
    ("real", "1.5", "nan\n", "nan\n"),
    ("real", "1.5", "-0\n", "-0.0\n"),
    ("real", "1.5", "1.5.5\n", nil),
    ("real", "1.5", "abc\n", nil),
    ("real", "1.5", "1,5\n", nil),
    ("real", "1.5", "\n", nil),
    ("bool", "true", "false", "false\n"),
    ("bool", "true", "FALSE\n", "false\n"),
    ("bool", "true", "No\n", "false\n"),
    ("bool", "true", "0\n", "false\n"),
    ("bool", "false", "True\n", "true\n"),
    ("bool", "false", "yEs\n", "true\n"),
    ("bool", "false", "1", "true\n"),
    ("bool", "false", "2\n", nil),
    ("bool", "false", "maybe\n", nil),
    ("bool", "false", "y\n", nil),
    ("bool", "false", "\n", nil),
    ("date", "2020-01-01T00:00:00Z", "2026-11-21T07:53:00Z\n", "2026-11-21T07:53:00Z\n"),
    ("date", "2020-01-01T00:00:00Z", "2026-11-21T07:53:00+05:45", "2026-11-21T02:08:00Z\n"),
    ("date", "2020-01-01T00:00:00Z", "2026-11-21T23:53:00-01:00\n", "2026-11-22T00:53:00Z\n"),
    ("date", "2020-01-01T00:00:00Z", "2026-11-21T07:53:00.5Z\n", "2026-11-21T07:53:00.5Z\n"),
    ("date", "2020-01-01T00:00:00Z", "2026-11-21T07:53:00,5Z\n", nil),
    ("date", "2020-01-01T00:00:00Z", "2026-02-30T00:00:00Z\n", nil),
    ("date", "2020-01-01T00:00:00Z", "2026-13-01T00:00:00Z\n", nil),
    ("date", "2020-01-01T00:00:00Z", "2026-11-21T25:00:00Z\n", nil),
    ("date", "2020-01-01T00:00:00Z", "yesterday\n", nil),
    ("date", "2020-01-01T00:00:00Z", "1795247580\n", nil),
    ("data", "old", "new\n", "new\n"),
    ("data", "old", "a\u{0}b", "a\u{0}b"),
    ("array", "[1]", "[3,2 , 1.0]", "[\n  3,\n  2,\n  1.0\n]\n"),
    ("array", "[1]", " [ ] \n", "[]\n"),
    ("array", "[1]", "{}\n", nil),
    ("array", "[1]", "[1,\n", nil),
    ("array", "[1]", "[1,]\n", nil),
    ("array", "[1]", "[null]\n", nil),
    ("array", "[1]", "5\n", nil),
    ("array", "[1]", "[1] [2]\n", nil),
    ("array", "[1]", #"["\u00e9\ud83d\udd11\/"]"#, "[\n  \"é🔑/\"\n]\n"),
    ("dict", "{}", #"{"b":1,"a":true}"#, "{\n  \"a\": true,\n  \"b\": 1\n}\n"),
    ("dict", "{}", "[]\n", nil),
    ("dict", "{}", "{\"a\":}\n", nil),
    ("dict", "{}", "{a:1}\n", nil),
    ("dict", "{}", "null\n", nil),
    (
      "dict", "{}", PropertyListText.xml("<dict><key>a</key><integer>1</integer></dict>"),
      "{\n  \"a\": 1\n}\n"
    ),
    ("array", "[1]", PropertyListText.xml("<array><true/></array>"), "[\n  true\n]\n"),
    ("array", "[1]", PropertyListText.xml("<dict/>"), nil),
    ("dict", "{}", "<plist><dict><key>a</key>", nil),
  ]

  @Test func existingKeyKeepsItsType() throws {
    try withSettings { settings in
      try settings.makeDirectories("s")
      for (number, row) in Self.written.enumerated() {
        let path = "s/k\(number)"
        try settings.create("s/k\(number)", row.type, row.old)
        let before = try settings.text(path)
        let error = settings.failure { try settings.write(path, row.content) }
        #expect(error == (row.shown == nil ? .EINVAL : nil), "\(row.type) \(row.content.debugDescription)")
        #expect(try settings.text(path) == row.shown ?? before, "\(row.type) \(row.content.debugDescription)")
        #expect(try settings.type(path) == row.type)
      }
    }
  }

  @Test func bytesThatAreNoUTF8AreNoString() throws {
    try withSettings { settings in
      try settings.makeDirectories("s")
      try settings.write("s/k", "old")
      for bytes in [[0xFF], [0x61, 0xC3], [0xED, 0xA0, 0x80], [0xC0, 0xAF]] as [[UInt8]] {
        #expect(settings.failure { try settings.write("s/k", bytes) } == .EINVAL)
        #expect(try settings.text("s/k") == "old\n")
      }
    }
  }

  /// The content of a new key and the type that it gets; the content shown where it differs.
  static let inferred: [(content: String, type: String, shown: String?)] = [
    ("true\n", "bool", nil), ("false", "bool", "false\n"), ("True\n", "string", nil),
    ("yes\n", "string", nil),
    ("42\n", "integer", nil), ("-7", "integer", "-7\n"), ("0\n", "integer", nil), ("007\n", "string", nil),
    ("+1\n", "string", nil), ("-0\n", "string", nil), (" 42\n", "string", nil), ("1 000\n", "string", nil),
    ("-9223372036854775808\n", "integer", nil), ("18446744073709551615\n", "integer", nil),
    ("18446744073709551616\n", "string", nil), ("3.0\n", "real", nil), ("0.1\n", "real", nil),
    ("1e+22\n", "real", nil), ("-0.0\n", "real", nil), ("1.10\n", "string", nil), ("1e5\n", "string", nil),
    (".5\n", "string", nil), ("nan\n", "string", nil), ("1.\n", "string", nil),
    ("2026-11-21T07:53:00Z\n", "date", nil), ("2026-11-21T07:53:00+00:00\n", "string", nil),
    ("2026-11-21\n", "string", nil), ("2026-02-30T00:00:00Z\n", "string", nil),
    ("[1]", "array", "[\n  1\n]\n"), ("{\"a\":1}\n", "dict", "{\n  \"a\": 1\n}\n"), ("[]\n", "array", nil),
    ("{}\n", "dict", nil), ("[null]\n", "string", nil), ("{\"a\":null}\n", "string", nil),
    ("[1\n", "string", nil), ("\"text\"\n", "string", nil), ("null\n", "string", nil),
    ("hello\n", "string", nil), ("hello", "string", "hello\n"), ("two\nlines\n", "string", nil),
    ("\n", "string", nil), ("hello\n\n", "string", nil), ("größer\n", "string", nil),
    ("42\r\n", "string", nil),
    ("#!/bin/sh\n", "string", nil), ("a\u{0}b\n", "data", nil), ("\u{0}", "data", nil),
  ]

  @Test func newKeyGetsItsTypeFromItsContent() throws {
    try withSettings { settings in
      try settings.makeDirectories("s")
      for (number, row) in Self.inferred.enumerated() {
        let path = "s/k\(number)"
        try settings.write(path, row.content)
        #expect(
          try settings.type(path) == row.type, "\(row.content.debugDescription)")
        #expect(try settings.text(path) == row.shown ?? row.content, "\(row.content.debugDescription)")
      }
      try settings.write("s/bytes", [0xFF, 0x0A])
      #expect(try settings.type("s/bytes") == "data")
      #expect(try settings.bytes("s/bytes") == [0xFF, 0x0A])
      try settings.reopen()
      for (number, row) in Self.inferred.enumerated() {
        let path = "s/k\(number)"
        #expect(
          try settings.type(path) == row.type, "\(row.content.debugDescription)")
        #expect(try settings.text(path) == row.shown ?? row.content, "\(row.content.debugDescription)")
      }
    }
  }

  @Test(arguments: [11, 12] as [UInt64])
  func whatYouEchoOfAScalarIsWhatYouCat(seed: UInt64) throws {
    try withSettings { settings in
      try settings.makeDirectories("s")
      var random = SplitMix64(seed: seed)
      for number in 0..<300 {
        let content = Self.randomScalar(using: &random)
        try settings.write("s/k\(number % 7)", content + "\n")
        #expect(
          try settings.text("s/k\(number % 7)") == content + "\n",
          "\(content.debugDescription)")
        try settings.remove("s/k\(number % 7)")
      }
    }
  }

  /// Text that looks like one of the types, or nearly.
  static func randomScalar(using random: inout SplitMix64) -> String {
    switch Int.random(in: 0..<8, using: &random) {
    case 0: String(Int64.random(in: .min ... .max, using: &random))
    case 1: String(Int.random(in: -20...20, using: &random))
    case 2: "\(Double(bitPattern: UInt64.random(in: .min ... .max, using: &random)))"
    case 3: "\(Double.random(in: -1000...1000, using: &random))"
    case 4:
      String(
        (0..<Int.random(in: 1...6, using: &random)).compactMap { _ in
          "0123456789.e+-".randomElement(using: &random)
        })
    case 5:
      ["true", "false", "TRUE", "yes", "0", "1", "inf", "nan", "-nan", "infinity"].randomElement(
        using: &random) ?? ""
    case 6:
      "20\(Int.random(in: 10...99, using: &random))-0\(Int.random(in: 1...9, using: &random))-1\(Int.random(in: 0...9, using: &random))T00:00:0\(Int.random(in: 0...9, using: &random))Z"
    default:
      String(
        (0..<Int.random(in: 1...12, using: &random)).compactMap { _ in
          "ab\"\\ \t<&>é🔑\r'".randomElement(using: &random)
        })
    }
  }

  /// A key of a type, what `setfattr -n user.keyhole.type` says, and what is shown then; nil: EINVAL.
  static let converted: [(type: String, content: String, to: String, shown: String?)] = [
    ("integer", "42", "string", "42\n"), ("integer", "42", "real", "42.0\n"),
    ("integer", "1", "bool", "true\n"),
    ("integer", "42", "data", "42\n"), ("integer", "2", "bool", nil), ("integer", "42", "date", nil),
    ("integer", "42", "array", nil), ("string", "42", "integer", "42\n"), ("string", "yes", "bool", "true\n"),
    ("string", "text", "integer", nil),
    ("string", "text", "data", "text\n"),
    ("string", "[1, 2]", "array", "[\n  1,\n  2\n]\n"), ("string", "[1, 2]", "dict", nil),
    ("string", "2026-11-21T07:53:00+01:00", "date", "2026-11-21T06:53:00Z\n"),
    ("real", "3.0", "integer", nil),
    ("real", "3.0", "string", "3.0\n"), ("bool", "true", "string", "true\n"),
    ("bool", "true", "integer", nil),
    ("date", "2026-11-21T07:53:00Z", "string", "2026-11-21T07:53:00Z\n"),
    ("array", "[1]", "string", "[\n  1\n]\n"),
    ("dict", "{}", "data", "{}\n"), ("dict", "{}", "array", nil), ("data", "42", "integer", "42\n"),
    ("data", "\u{0}", "string", "\u{0}\n"), ("string", "x", "nonsense", nil), ("string", "x", "", nil),
    ("string", "x", "String", nil), ("integer", "42", "integer", "42\n"),
  ]

  @Test(arguments: [
    ("string", "42", "42\n"), ("integer", "42", "42\n"), ("real", "42", "42.0\n"),
    ("data", "true\n", "true\n"),
    ("bool", "1", "true\n"), ("array", "[]", "[]\n"),
    ("date", "2026-11-21T07:53:00Z", "2026-11-21T07:53:00Z\n"),
  ])
  func typeSetOnAnEmptyKeySaysHowItsFirstContentIsRead(type: String, content: String, shown: String) throws {
    try withSettings { settings in
      try settings.makeDirectories("s")
      try settings.write("s/k", "")
      try settings.setType("s/k", type)
      try settings.write("s/k", content)
      #expect(try settings.text("s/k") == shown && settings.type("s/k") == type)
    }
  }

  @Test func setfattrConvertsTheContentShown() throws {
    try withSettings { settings in
      try settings.makeDirectories("s")
      for (number, row) in Self.converted.enumerated() where !(row.type == "data" && row.to == "string") {
        let path = "s/k\(number)"
        try settings.create("s/k\(number)", row.type, row.content)
        let before = try settings.text(path)
        let error = settings.failure { try settings.setType(path, row.to) }
        #expect(error == (row.shown == nil ? .EINVAL : nil), "\(row)")
        let text = try settings.text(path)
        #expect(text == row.shown ?? before, "\(row)")
        #expect(
          try settings.type(path) == (row.shown == nil ? row.type : row.to), "\(row)")
      }
    }
  }

  @Test func datesAndDataInsideAreShownAsXML() throws {
    let inside = [
      "<date>2026-11-21T07:53:00Z</date>", "<data>aGk=</data>",
      "<dict><key>CF$UID</key><integer>7</integer></dict>",
    ]
    try withSettings { settings in
      let entries = inside.enumerated().map {
        "<key>a\($0.offset)</key><array>\($0.element)</array><key>d\($0.offset)</key><dict><key>x</key><array>\($0.element)</array></dict>"
      }
      try settings.writeSuite("xml", entries.joined())
      for number in inside.indices {
        for (key, type) in [("a\(number)", "array"), ("d\(number)", "dict")] {
          let path = "xml/\(key)"
          let content = try settings.text(path)
          #expect(content.hasPrefix("<?xml") && content.hasSuffix("\n"), "\(content)")
          #expect(try settings.type(path) == type)
          let value = try PropertyListText.value(content)
          let body =
            type == "array"
            ? "<array>\(inside[number])</array>" : "<dict><key>x</key><array>\(inside[number])</array></dict>"
          let expected = try PropertyListText.value(PropertyListText.xml(body))
          // Foundation's references to objects are equal to nothing.
          if inside[number].contains("CF$UID") {
            #expect(content.contains("CF$UID"))
          } else {
            #expect((value as? NSObject) == (expected as? NSObject))
          }
          // And back.
          try settings.write(path, content)
          #expect(try settings.text(path) == content)
        }
      }
      try settings.write("xml/a0", "[1]")
      #expect(try settings.text("xml/a0") == "[\n  1\n]\n")
    }
  }

  @Test func deepNestingIsNoCrash() throws {
    try withSettings { settings in
      try settings.makeDirectories("s")
      try settings.write("s/k", "[]\n")
      for depth in [100, 10_000, 1_000_000] {
        let json = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        _ = settings.failure { try settings.write("s/k", json) }
        _ = settings.failure { try settings.write("s/new\(depth)", json) }
        let xml = String(repeating: "<array>", count: depth) + String(repeating: "</array>", count: depth)
        _ = settings.failure { try settings.write("s/k", PropertyListText.xml(xml)) }
      }
      try settings.write("s/k", "[5]\n")
      #expect(try settings.text("s/k") == "[\n  5\n]\n")
    }
  }
}
