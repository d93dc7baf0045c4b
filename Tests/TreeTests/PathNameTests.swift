import Model
import TestSupport
import Testing
import Tree

@Suite struct PathNameTests {
  @Test(arguments: [
    ("volume", "volume"), ("", "%"), ("a/b", "a%2Fb"), ("50%", "50%25"), ("%", "%25"),
    (".hidden", "%2Ehidden"),
    (".", "%2E"), ("..", "%2E."), ("a.b", "a.b"), ("a;b=c", "a;b=c"), ("\0\u{1F}\u{7F}\n", "%00%1F%7F%0A"),
    ("é", "é"), ("e\u{301}", "e\u{301}"), ("😀 x", "😀 x"), ("~", "~"),
    ("%~0123456789abcdef", "%25~0123456789abcdef"),
  ])
  func nameIsEncoded(plain: String, encoded: String) throws {
    let name = PathName(ExactString(plain))
    #expect(ExactString(name.string) == ExactString(encoded))
    #expect(name.plain == ExactString(plain))
    #expect(try PathName(creating: encoded.utf8) == name)
    #expect(try PathName(lookingUp: Array(encoded.utf8)) == name)
  }

  @Test(arguments: [
    "", ".", "..", ".a", "a/b", "a%", "a%2", "%%", "a%2f", "a%41", "%2Fa%2e", "a%2Eb", "%C3%A9", "a\n",
    "\u{7F}", "a%00%", "%ZZ", "a%20b", "...", ".hidden", "%2", "%2e", "a\nb", "x%~",
    "%3B", "%~", "%~0123456789abcde",
  ])
  func whatIsNoCanonicalEncodingIsNoName(text: String) {
    #expect(creating(text.utf8).isInvalid)
    #expect(lookingUp(text.utf8) == .notFound)
  }

  @Test func nameThatIsNoUTF8IsToldApart() {
    for bytes: [UInt8] in [[0xFF], [0x61, 0xC3], Array(repeating: 0xFE, count: 300)] {
      #expect(creating(bytes) == .notUnicode && lookingUp(bytes) == .notUnicode)
    }
  }

  @Test func nameHasAtMost255Bytes() {
    #expect(creating(repeatElement(0x78, count: 255)) == nil)
    #expect(creating(repeatElement(0x78, count: 256)) == .nameTooLong)
    #expect(lookingUp(repeatElement(0x78, count: 256)) == .nameTooLong)
    #expect(creating((String(repeating: "é", count: 127) + "%2F").utf8) == .nameTooLong)
  }

  @Test func digestIsTheSHA256OfThePlainName() {
    let plain = String(repeating: "a", count: 300)
    // printf 'a%.0s' {1..300} | sha256sum
    #expect(PathName(ExactString(plain)).string == String(repeating: "a", count: 230) + "%~9835fa6bf4e20a9b")
  }

  @Test(arguments: [
    (String(repeating: "a", count: 229) + "/" + String(repeating: "b", count: 60), 229),
    (String(repeating: "a", count: 228) + "/" + String(repeating: "b", count: 60), 228),
    (String(repeating: "a", count: 227) + "/" + String(repeating: "b", count: 60), 230),
    (String(repeating: "a", count: 229) + String(repeating: "é", count: 60), 229),
    (String(repeating: "a", count: 227) + String(repeating: "😀", count: 60), 227),
    (String(repeating: "a", count: 226) + String(repeating: "😀", count: 60), 230),
    (String(repeating: "/", count: 90), 228),
  ])
  func cutSplitsNoScalarAndNoEscape(plain: String, stem: Int) throws {
    let name = PathName(ExactString(plain))
    #expect(name.string.utf8.count == stem + 18 && name.hasDigest && name.plain == nil)
    #expect(try PathName(lookingUp: name.string.utf8) == name)
    #expect(creating(name.string.utf8).isInvalid)
  }

  @Test func everyNameSurvivesBothWays() throws {
    var generator = SplitMix64(seed: 7)
    for _ in 0..<5_000 {
      let plain = generator.name()
      let name = PathName(plain)
      #expect(name.plain == plain)
      #expect(try PathName(creating: name.string.utf8).plain == plain)
      #expect(!name.string.utf8.contains(0x2F) && name.string.utf8.first != 0x2E)
    }
  }

  /// A name that is accepted is the encoding of its plain form, and of nothing else.
  @Test func noTwoNamesHaveOnePlainForm() {
    var generator = SplitMix64(seed: 8)
    for _ in 0..<10_000 {
      let text = (0..<6).map { _ in "%25E2F0AC3a./~é;".randomElement(using: &generator).map(String.init) ?? ""
      }.joined()
      guard let name = try? PathName(creating: text.utf8), let plain = name.plain else { continue }
      #expect(PathName(plain) == name)
    }
  }

  @Test func duplicateGetsTheDigestOfItsOwnName() throws {
    let id = ItemID(rawValue: "/org/freedesktop/secrets/collection/login/1")
    // printf %s /org/freedesktop/secrets/collection/login/1 | sha256sum
    #expect(PathName("peter").disambiguated(by: id).string == "peter%~05ed2c2ea5ef0c56")
    #expect(PathName("").disambiguated(by: id).string == "%%~05ed2c2ea5ef0c56")
    #expect(try PathName(lookingUp: "%%~05ed2c2ea5ef0c56".utf8).plain == nil)
  }

  @Test func duplicateOfALongNameIsNoLonger() {
    let id = ItemID(rawValue: "x")
    for count in [237, 238, 255, 256, 400] {
      let name = PathName(ExactString(String(repeating: "a", count: count))).disambiguated(by: id)
      #expect(name.string.utf8.count == (count == 237 ? 255 : 248) && name.hasDigest)
      #expect(name.string.hasSuffix("%~2d711642b726b044"))
    }
  }

  @Test func orderIsThatOfTheBytes() {
    let names = ["\u{FF5E}", "😀", "a", "B", "%", "é", "e\u{301}"].map { PathName(ExactString($0)) }
    let bytes = names.map { Array($0.string.utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
    #expect(names.sorted().map { Array($0.string.utf8) } == bytes)
    #expect(PathName("\u{E9}") != PathName("e\u{301}"))
  }
}

extension PathNameTests {
  private func creating(_ bytes: some Collection<UInt8>) -> StoreError? {
    do { _ = try PathName(creating: bytes) } catch { return error }
    return nil
  }

  private func lookingUp(_ bytes: some Collection<UInt8>) -> StoreError? {
    do { _ = try PathName(lookingUp: bytes) } catch { return error }
    return nil
  }
}

extension StoreError? {
  var isInvalid: Bool {
    if case .invalidName = self { true } else { false }
  }
}
