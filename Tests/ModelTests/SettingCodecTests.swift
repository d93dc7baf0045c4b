import Model
import TestSupport
import Testing

@Suite struct SettingCodecTests {
  private let codec = TextCodec()

  @Test(arguments: [
    (SettingValue.string("peter"), "peter\n"), (.string(""), "\n"), (.string("a\n"), "a\n\n"),
    (.integer(0), "0\n"), (.integer(-9_223_372_036_854_775_808), "-9223372036854775808\n"),
    (.integer(18_446_744_073_709_551_615), "18446744073709551615\n"),
    (.real(3), "3.0\n"), (.real(-0.0), "-0.0\n"), (.real(1e22), "1e+22\n"), (.real(0.1), "0.1\n"),
    (.real(.infinity), "inf\n"), (.real(-.infinity), "-inf\n"), (.real(.nan), "nan\n"),
    (.real(-.nan), "nan\n"), (.bool(true), "true\n"), (.bool(false), "false\n"),
    (.date(1_795_247_580), "2026-11-21T07:53:00Z\n"), (.data(Array("x".utf8)), "x"), (.data([]), ""),
    (.array([]), "[]\n"), (.dictionary([:]), "{}\n"),
    (.array([.real(3), .real(1e22)]), "[\n  3.0,\n  1e+22\n]\n"),
  ])
  func valueShowsAsText(value: SettingValue, text: String) throws {
    #expect(try codec.text(of: value) == text)
  }

  @Test(arguments: [SettingValue.date(0), .data([1]), .uid(3), .real(.infinity), .real(.nan)])
  func whatJSONCannotSayShowsAsXML(inside: SettingValue) throws {
    for value in [SettingValue.array([inside]), .dictionary(["a": .array([.bool(true), inside])])] {
      #expect(try codec.text(of: value).hasPrefix("<plist>"))
      #expect(codec.value(of: try codec.text(of: value), as: value.type) == value)
    }
  }

  @Test func keyedArchiversReferenceIsADictionaryInXML() throws {
    #expect(try codec.text(of: .uid(7)).hasPrefix("<plist>"))
    #expect(codec.value(of: try codec.text(of: .uid(7)), as: .dictionary) == .uid(7))
  }

  @Test func everyValueReadsBackEqualAndSizesAreExact() throws {
    var generator = SplitMix64(seed: 1)
    for _ in 0..<3_000 {
      let value = generator.value()
      let content = try codec.codec.content(of: value)
      #expect(try codec.codec.value(of: content, as: value.type) == value)
      #expect(try codec.codec.size(of: value) == content.count)
    }
  }

  @Test(arguments: [
    (SettingType.string, "a", SettingValue.string("a")), (.string, "a\n", .string("a")),
    (.string, "a\n\n", .string("a\n")), (.string, "", .string("")), (.string, "\r\n", .string("\r")),
    (.string, "5\n", .string("5")), (.integer, " \t5\r\n", .integer(5)), (.integer, "+5", .integer(5)),
    (.integer, "-007", .integer(-7)), (.integer, "18446744073709551615", .integer(.init(UInt64.max))),
    (.real, "3", .real(3)), (.real, ".5", .real(0.5)), (.real, "5.", .real(5)), (.real, "+1E-2", .real(0.01)),
    (.real, " 1e22 \n", .real(1e22)), (.real, "-0", .real(-0.0)), (.real, "007.50", .real(7.5)),
    (.real, "INF", .real(.infinity)), (.real, "-infinity", .real(-.infinity)), (.real, "NaN", .real(.nan)),
    (.real, "1e-400", .real(0)), (.real, "0e400", .real(0)), (.bool, "YES\n", .bool(true)),
    (.bool, "no", .bool(false)), (.bool, "True", .bool(true)), (.bool, "1", .bool(true)),
    (.bool, " 0 ", .bool(false)), (.data, "5\n", .data([0x35, 0x0A])), (.data, "", .data([])),
  ])
  func contentIsAccepted(type: SettingType, text: String, value: SettingValue) {
    #expect(codec.value(of: text, as: type) == value)
  }

  @Test(arguments: [
    (SettingType.string, "a\0b"), (.integer, ""), (.integer, "\n"), (.integer, "-"), (.integer, "5.0"),
    (.integer, "1 2"), (.integer, "1e3"), (.integer, "0x10"), (.integer, "-9223372036854775809"),
    (.integer, "18446744073709551616"), (.integer, "5\0"), (.integer, "٥"), (.real, ""), (.real, "."),
    (.real, "1e"), (.real, "1e+"), (.real, "0x1p3"), (.real, "1,5"), (.real, "1 e5"), (.real, "1e400"),
    (.real, "-1e400"), (.real, "in"), (.real, "nano"), (.real, "--1"), (.bool, ""), (.bool, "y"),
    (.bool, "2"), (.bool, "truer"), (.bool, "on"), (.bool, "tr ue"), (.array, ""), (.array, "{}"),
    (.array, "5"), (.dictionary, "[]"), (.dictionary, "\n"), (.dictionary, "<plist>99</plist>"),
  ])
  func contentIsRefused(type: SettingType, text: String) {
    #expect(codec.value(of: text, as: type) == nil)
  }

  @Test func textThatIsNoUTF8IsRefused() {
    for bytes: [UInt8] in [
      [0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xE2, 0x82], [0xF4, 0x90, 0x80, 0x80],
    ] {
      #expect(throws: StoreError.self) { try codec.codec.value(of: bytes, as: .string) }
      #expect(codec.codec.inferred(from: bytes) == .data(bytes))
    }
  }

  @Test func propertyListOfAnotherTypeIsRefused() throws {
    let dates = try codec.text(of: .array([.date(0)]))
    #expect(codec.value(of: "\n " + dates, as: .array) == .array([.date(0)]))
    #expect(codec.value(of: dates, as: .dictionary) == nil)
  }

  @Test func propertyListThatIsTooDeepIsRefused() throws {
    let deep = (0..<600).reduce(SettingValue.data([])) { value, _ in .array([value]) }
    #expect(codec.value(of: try codec.text(of: deep), as: .array) == nil)
  }

  @Test func reasonsNeverHoldTheContent() {
    for type in SettingType.allCases where type != .data {
      #expect {
        try codec.codec.value(of: Array("hunter2\0".utf8), as: type)
      } throws: { error in
        !String(describing: error).contains("hunter2")
      }
    }
  }
}
