import Model
import TestSupport
import Testing

/// A new key takes its type from its content.
@Suite struct SettingInferenceTests {
  private let codec = TextCodec()

  @Test(arguments: [
    ("true", SettingValue.bool(true)), ("false\n", .bool(false)), ("5\n", .integer(5)), ("-1", .integer(-1)),
    ("18446744073709551615", .integer(.init(UInt64.max))), ("3.0\n", .real(3)), ("-0.0", .real(-0.0)),
    ("1e+22", .real(1e22)), ("5e-324", .real(.leastNonzeroMagnitude)),
    ("2026-11-21T07:53:00Z\n", .date(1_795_247_580)),
    ("2026-11-21T07:53:00.5Z\n", .date(.since2001(816_940_380.5))),
    ("[]", .array([])), ("{}\n", .dictionary([:])),
    (" [1, 2.0, \"a\"] ", .array([.integer(1), .real(2), .string("a")])),
    ("{\"a\": {\"b\": false}}", .dictionary(["a": .dictionary(["b": .bool(false)])])), ("", .data([])),
    ("\n", .string("")), ("a\0", .data([0x61, 0])), ("\0", .data([0])),
  ])
  func contentHasAType(text: String, value: SettingValue) {
    #expect(codec.inferred(text) == value)
  }

  @Test(arguments: [
    "True", "yes", "YES", "007", "+5", "-0", " 5", "5 ", "1.10", "1e22", "1E+22", ".5", "5.", "nan", "inf",
    "-inf",
    "infinity", "18446744073709551616", "2026-11-21T08:53:00+01:00", "2026-11-21T07:53:00.50Z",
    "2026-11-21T07:53:00.0Z", "2026-11-21",
    "2026-11-21T07:53Z", "[null]", "{\"a\":null}", "{\"a\":1,\"a\":2}", "[1,]", "[18446744073709551616]",
    "[\"\\u0000\"]", "{} {}", "null", "\"a\"", "<plist></plist>", "0x10", "true\n\n", "5\n\n", "5\r",
  ])
  func everythingElseIsText(text: String) {
    #expect(codec.inferred(text + "\n") == .string(ExactString(text)))
    if !text.hasSuffix("\n") { #expect(codec.inferred(text) == .string(ExactString(text))) }
  }

  @Test func whatIsEchoedIsWhatIsShown() throws {
    var generator = SplitMix64(seed: 2)
    let samples = [
      "1", "-1", "1.5", "1.50", "nan", "true", "TRUE", "2024-02-29T00:00:00Z", "1e+16", "0.1e1", "\n",
    ]
    for round in 0..<4_000 {
      let line = round < samples.count ? samples[round] : try scalarLine(&generator)
      let shown = try codec.text(of: codec.inferred(line + "\n"))
      #expect(shown.utf8.elementsEqual((line + "\n").utf8))
    }
  }

  /// The text of a scalar, sometimes with a byte changed, or any text.
  private func scalarLine(_ generator: inout SplitMix64) throws -> String {
    guard Bool.random(using: &generator) else { return generator.string().string.asLine }
    var bytes = Array(try codec.text(of: generator.value(depth: 0)).utf8.dropLast())
    if let index = bytes.indices.randomElement(using: &generator), Bool.random(using: &generator) {
      bytes[index] = Array("0123456789+-.eE TZ".utf8).randomElement(using: &generator) ?? 0
    }
    return String(decoding: bytes, as: UTF8.self).asLine
  }
}

extension String {
  /// The text without what would make it JSON, data or nothing, which do not show as they were written.
  fileprivate var asLine: String {
    let line = filter { !"[{\0".contains($0) }
    return line.unicodeScalars.contains("\0") ? "" : line
  }
}
