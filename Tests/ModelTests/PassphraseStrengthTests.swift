import Model
import Testing

@Suite(.timeLimit(.minutes(1))) struct PassphraseStrengthTests {
  private static func strength(_ text: String) -> PassphraseStrength {
    PassphraseStrength(Array(text.utf8).span)
  }

  @Test(arguments: [
    "", "a", "abc", "horse", "password", "P4ssw0rd", "hunter2", "123456789012", "qwertyuiop",
    "aaaaaaaaaaaaaaaaaaaa",
    "abcabcabcabcabcabc", "correct horse", "Summer2024", "Tr0ub4dor&3", "monkeydragonsunshine", "19840401",
    "asdfghjkl",
    "correcthorsebatterystaple", "iloveyou1987!", "qwertyqwertyqwerty",
  ])
  func weak(text: String) {
    #expect(Self.strength(text).isWeak, "\(text): \(Self.strength(text).bits)")
  }

  @Test(arguments: [
    "violet cargo anthem puddle wrench", "kq7zvm2wpx4t", "Vx9#mQ2$kL7!", "3f9a1c7e5b2d8a604c1e",
    "turnip-gravel-sonnet-oyster-maple", "K7X2M9QD4FZRT3WB", "größenwahn über dem nebelmeer im herbst",
  ])
  func strong(text: String) {
    #expect(!Self.strength(text).isWeak, "\(text): \(Self.strength(text).bits)")
  }

  @Test func commonOnesAreNamedSo() {
    #expect(Self.strength("password").isCommon)
    #expect(Self.strength("PASSW0RD").isCommon)
    #expect(!Self.strength("password and more").isCommon)
  }

  /// A longer text is never weaker than its beginning by more than its last part saves.
  @Test func lengthAddsUp() {
    let words = ["violet", "cargo", "anthem", "puddle", "wrench"]
    let bits = (1...words.count).map { Self.strength(words.prefix($0).joined(separator: " ")).bits }
    #expect(bits == bits.sorted() && Set(bits).count == bits.count)
  }

  @Test func aVeryLongTextTakesBoundedTime() {
    #expect(!Self.strength(String(repeating: "xy7", count: 100_000)).isCommon)
  }
}
