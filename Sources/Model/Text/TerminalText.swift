/// How names and reasons are shown to a person: the one rule for messages, lists on a terminal, questions, events and logs.
///
/// Names may hold every character. Shown as they are, a line feed begins a line of its own, an escape sequence
/// (ESC, or U+009B alone) changes the terminal, a mark of writing direction turns what follows, and a letter without a shape
/// makes two names look the same.

extension Unicode.Scalar {
  /// Whether it is seen where it stands, and changes nothing else: no control character (C0, C1, DEL), no format character
  /// (marks of direction, joiners, zero-width blanks, tags), no separator of lines, no letter without a shape such as U+3164,
  /// nothing that is private or not assigned.
  package var isVisible: Bool {
    if value < 0x7F { return value >= 0x20 }
    return switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .unassigned, .privateUse, .surrogate: false
    // Variation selectors are part of what is seen.
    default: !properties.isDefaultIgnorableCodePoint || properties.isVariationSelector
    }
  }

  /// Whether it is written from right to left: the blocks that Unicode reserves for such scripts.
  fileprivate var isWrittenFromTheRight: Bool {
    switch value {
    case 0x0590...0x08FF, 0xFB1D...0xFDFF, 0xFE70...0xFEFF, 0x10800...0x10FFF, 0x1E800...0x1EFFF: true
    default: false
    }
  }
}

extension String {
  /// With `\u{9b}` in place of each character that is not visible.
  package var visible: String {
    guard !unicodeScalars.allSatisfy(\.isVisible) else { return self }
    return unicodeScalars.reduce(into: "") { text, scalar in
      if scalar.isVisible {
        text.unicodeScalars.append(scalar)
      } else {
        text += "\\u{\(String(scalar.value, radix: 16))}"
      }
    }
  }

  /// So many characters of a name or a reason are shown.
  private static let longest = 400

  /// As `visible`; what is longer than 400 characters is cut.
  package var escapedForTerminal: String {
    let scalars = unicodeScalars.prefix(Self.longest)
    let text = String(String.UnicodeScalarView(scalars)).visible
    return scalars.endIndex == unicodeScalars.endIndex ? text : text + "…"
  }

  /// A path or a line of a question whose parts a window shows in this order, also where one of them is written from right
  /// to left: each such part is followed by a mark (U+200E), so that it does not turn its neighbours.
  ///
  /// Without it `keychain/generic/א/ב` is shown with its last two parts exchanged.
  package var inReadingOrder: String {
    var (text, isOpen) = (String.UnicodeScalarView(), false)
    for scalar in unicodeScalars {
      if isOpen, Self.betweenParts.contains(scalar) {
        text.append(Self.leftToRightMark)
        isOpen = false
      }
      text.append(scalar)
      if scalar.isWrittenFromTheRight { isOpen = true }
    }
    if isOpen { text.append(Self.leftToRightMark) }
    return String(text)
  }

  private static let leftToRightMark: Unicode.Scalar = "\u{200E}"
  private static let betweenParts = Set("/\\()[]<>{}←:;,=".unicodeScalars)

  /// As a JSON string, with escapes in place of each character that is not visible.
  package var quotedAsJSON: String {
    let isPlain = utf8.allSatisfy { byte in
      0x20..<0x7F ~= byte && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }
    return "\"" + (isPlain ? self : unicodeScalars.map(\.inJSON).joined()) + "\""
  }
}

extension Unicode.Scalar {
  fileprivate var inJSON: String {
    if self == "\"" || self == "\\" { return "\\\(self)" }
    guard !isVisible else { return String(self) }
    return utf16.map { "\\u" + String(0x10000 + Int($0), radix: 16).dropFirst() }.joined()
  }
}

extension String {
  /// A JSON text whose strings are escaped like those of `quotedAsJSON`; what stands between them is visible, or a blank.
  package var visibleAsJSON: String {
    unicodeScalars.map { $0 == "\n" || $0 == "\t" || $0.isVisible ? String($0) : $0.inJSON }.joined()
  }
}

extension String {
  private static let plainInShell = Set(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%=".utf8)

  /// As one word of a shell, for commands that a message says to type.
  package var quotedForShell: String {
    // zsh takes a word that begins with “=” for the path of a command.
    let isPlain =
      utf8.allSatisfy { $0 >= 0x80 || Self.plainInShell.contains($0) } && utf8.first != UInt8(ascii: "=")
    guard !isPlain || isEmpty else { return self }
    return "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
  }
}
