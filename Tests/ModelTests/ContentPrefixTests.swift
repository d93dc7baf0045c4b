import Model
import TestSupport
import Testing

/// Errors of write(2) agree with those of the close that follows.
@Suite struct ContentPrefixTests {
  private let codec = TextCodec()

  @Test(arguments: [
    (SettingType.integer, "abc", 0), (.integer, "5x", 1), (.integer, "5 5", 2), (.integer, "+-", 1),
    (.integer, "- ", 1), (.integer, "18446744073709551616", 19), (.integer, "-9223372036854775809", 19),
    (.real, "abc", 0), (.real, "1e400", 4), (.real, "0x", 1), (.real, "ink", 2), (.real, "1e400 ", 4),
    (.real, ". ", 1), (.bool, "yep", 2), (.bool, "10", 1), (.bool, "true!", 4), (.date, "2026-13", 6),
    (.date, "2026-02-29", 9), (.date, "2026-11-21T07:53:00.5.", 21), (.date, "2026-11-21 ", 10),
    (.date, "202a", 3),
    (.string, "a\0", 1), (.array, "{", 0), (.array, "x", 0), (.array, "[nu", 1), (.array, "[1}", 2),
    (.array, "[,", 1),
    (.array, "[1] 2", 4), (.array, "[01", 2), (.array, "[\"\n", 2), (.array, "[\"\\ud800x", 8),
    (.array, "[\"\\x", 3),
    (.array, "[18446744073709551616,", 21), (.array, "[\"\\udc", 5), (.array, "[1e999", 5),
    (.array, "[\"\\u0000", 7),
    (.dictionary, "[", 0), (.dictionary, "{1", 1), (.dictionary, "{\"a\":1,}", 7),
    (.dictionary, "{\"a\":1,\"a\"", 9),
    (.dictionary, "{\"a\" 1", 5), (.dictionary, "{\"a\":tru]", 8),
  ])
  func firstHopelessByteIsRefused(type: SettingType, text: String, index: Int) {
    #expect(type.answers(to: text.utf8) == text.utf8.indices.enumerated().map { $0.offset < index })
  }

  @Test func dataAndPropertyListsMayGoOn() {
    #expect(SettingType.data.mayBegin(with: [0, 0xFF, 0x0A]))
    #expect(SettingType.dictionary.mayBegin(with: Array("\n <?xml version".utf8) + [0xFF]))
  }

  @Test func brokenUTF8IsRefusedAtItsFirstByte() {
    for (bytes, index): ([UInt8], Int) in [
      ([0x61, 0x80], 1), ([0xC1], 0), ([0xE0, 0x9F], 1), ([0xF5], 0), ([0xED, 0xA0], 1),
    ] {
      #expect(SettingType.string.answers(to: bytes) == bytes.indices.map { $0 < index })
    }
    #expect(!SettingType.string.answers(to: "é€😀".utf8).contains(false))
  }

  @Test func everyPrefixOfAcceptedContentIsAccepted() throws {
    var generator = SplitMix64(seed: 4)
    for _ in 0..<1_000 {
      let value = generator.value()
      let content = try codec.codec.content(of: value)
      #expect(!value.type.answers(to: content).contains(false))
    }
  }

  /// Changed content: whatever the codec still accepts, no prefix of it was refused.
  @Test func refusedContentIsRefusedByTheCodecToo() throws {
    var generator = SplitMix64(seed: 5)
    var (accepted, refused) = (0, 0)
    for _ in 0..<5_000 {
      let value = generator.value()
      let content = mutated(try codec.codec.content(of: value), &generator)
      var prefix = ContentPrefix(value.type)
      if prefix.append(content) { accepted += 1; continue }
      refused += 1
      #expect(throws: StoreError.self) { try codec.codec.value(of: content, as: value.type) }
    }
    #expect(accepted > 500 && refused > 500)
  }

  private func mutated(_ content: [UInt8], _ generator: inout SplitMix64) -> [UInt8] {
    var content = content
    guard let index = content.indices.randomElement(using: &generator) else { return content }
    switch Int.random(in: 0..<3, using: &generator) {
    case 0: content[index] = UInt8.random(in: 0...127, using: &generator)
    case 1: content.insert(Array("0 \"\\,e[{".utf8).randomElement(using: &generator) ?? 0, at: index)
    default: content.remove(at: index)
    }
    return content
  }

  @Test func onceRefusedStaysRefused() {
    #expect(SettingType.integer.answers(to: "1x5".utf8) == [true, false, false])
  }
}
