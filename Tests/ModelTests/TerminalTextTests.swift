import Testing

@testable import Model

@Suite struct TerminalTextTests {
  @Test(arguments: [
    ("a\u{1B}[2J", "a\\u{1b}[2J"), ("a\u{9B}31m", "a\\u{9b}31m"), ("\u{85}\u{7F}\n", "\\u{85}\\u{7f}\\u{a}"),
    ("\u{202E}x\u{2066}y\u{2069}", "\\u{202e}x\\u{2066}y\\u{2069}"),
    ("a\u{200B}b\u{3164}c\u{FEFF}", "a\\u{200b}b\\u{3164}c\\u{feff}"),
    ("\u{2028}\u{E000}", "\\u{2028}\\u{e000}"),
    ("e\u{301}é漢😀❤️", "e\u{301}é漢😀❤️"), ("\u{E0041}", "\\u{e0041}"),
  ])
  func whatIsNotSeenIsEscaped(text: String, shown: String) {
    #expect(Array(text.visible.unicodeScalars) == Array(shown.unicodeScalars))
    #expect(text.escapedForTerminal == shown)
    #expect(text.visible.visible == text.visible)
  }

  /// Every scalar there is: what is left in the text is no control or format character.
  @Test func noScalarPassesThatSteersATerminal() {
    for value in (0...0x10FFFF as ClosedRange<UInt32>) {
      guard let scalar = Unicode.Scalar(value), scalar.isVisible else { continue }
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator:
        Issue.record("U+\(String(value, radix: 16))")
      default: break
      }
    }
  }

  @Test func longTextIsCut() {
    let text = String(repeating: "ü", count: 401)
    #expect(text.escapedForTerminal == text.dropLast() + "…" && text.visible == text)
  }

  /// The order in which a window shows the parts is the logical one where each right-to-left part ends in a mark.
  @Test(arguments: [
    ("keychain/generic/a/b", "keychain/generic/a/b"),
    ("keychain/generic/א/ב", "keychain/generic/א\u{200E}/ב\u{200E}"),
    ("/home/ש ל/sh (12)", "/home/ש ל\u{200E}/sh (12)"),
    ("/bin/ש (12) ← /bin/ל", "/bin/ש \u{200E}(12) ← /bin/ל\u{200E}"),
    ("שa: ב", "שa\u{200E}: ב\u{200E}"),
  ])
  func partsKeepTheirOrder(text: String, shown: String) {
    #expect(Array(text.inReadingOrder.unicodeScalars) == Array(shown.unicodeScalars))
  }

  @Test func jsonKeepsTheText() throws {
    let text = "a\"\\\u{9B}\u{202E}\u{E0041}\nü"
    #expect(text.quotedAsJSON == #""a\"\\\u009b\u202e\udb40\udc41\u000aü""#)
    #expect("{\n  \"a\u{9B}\u{202E}\": 1\n}\n".visibleAsJSON == "{\n  \"a\\u009b\\u202e\": 1\n}\n")
  }
}
