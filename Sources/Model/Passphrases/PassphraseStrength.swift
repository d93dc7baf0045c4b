/// An estimate of how many guesses find a passphrase.
///
/// The passphrase is cut into parts so that the guesses for all parts together are the fewest: parts that lists of passwords
/// have, words, repetitions, sequences, rows of the keyboard, years, and single characters. So it finds what is weak, and proves
/// nothing strong: a line of a song passes. It keeps no copy of the passphrase.
public struct PassphraseStrength: Sendable {
  /// Fewer bits are called weak. At the standard cost of scrypt, 2⁵⁰ guesses take one processor some ten million years, and
  /// ten thousand of them a thousand.
  public static let enough = 50

  /// The binary logarithm of the number of guesses, rounded down.
  public let bits: Int
  /// The whole passphrase is on lists of common passwords, in this or another spelling.
  public let isCommon: Bool

  /// Whether it should not be used without a second thought.
  public var isWeak: Bool { bits < Self.enough }

  /// Estimates a passphrase in UTF-8; what comes after 256 bytes does not count.
  public init(_ passphrase: Span<UInt8>) {
    let text = passphrase.extracting(..<min(passphrase.count, Self.longest))
    isCommon = Self.commonPart(of: text, 0).map { $0.count == text.count } ?? false
    bits = Int(Self.fewestBits(text))
  }

  private static let longest = 256

  /// One part that the passphrase can be cut into.
  private struct Part {
    /// In bytes.
    var count: Int
    var bits: Double
  }

  /// By dynamic programming: the fewest bits for each beginning of the text.
  private static func fewestBits(_ text: Span<UInt8>) -> Double {
    var fewest = [Double](repeating: .infinity, count: text.count + 1)
    fewest[0] = 0
    for start in text.indices {
      for part in parts(of: text, start) {
        fewest[start + part.count] = min(fewest[start + part.count], fewest[start] + part.bits)
      }
    }
    return fewest[text.count]
  }

  private static func parts(of text: Span<UInt8>, _ start: Int) -> [Part] {
    let longer = [
      commonPart(of: text, start), word(of: text, start), repetition(of: text, start),
      sequence(of: text, start),
      keyboardRow(of: text, start), year(of: text, start), repeatedPart(of: text, start),
    ]
    return [Part(count: 1, bits: bits(of: text[start], after: start > 0 ? text[start - 1] : nil))]
      + longer.compactMap { $0 }
  }
}

// MARK: - Single characters and words

extension PassphraseStrength {
  private static func bits(of byte: UInt8, after before: UInt8?) -> Double {
    // A guess has to say where figures stand among letters.
    let change = before.map { byte.isDigit && $0.isLetter || byte.isLetter && $0.isDigit } == true ? 1.0 : 0
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): return 3.3 + change
    case UInt8(ascii: "a")...UInt8(ascii: "z"): return 4.7 + change
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): return 5.2 + change
    case UInt8(ascii: " "), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
      return before?.isLetter == true ? 1 : 5
    default: return 5
    }
  }

  /// The longest word of the list that stands at a place, with letters in either case and figures in the place of letters.
  private static func commonPart(of text: Span<UInt8>, _ start: Int) -> Part? {
    var best: Part?
    for (rank, word) in CommonPasswords.all.enumerated() {
      guard word.count > best?.count ?? 2, word.count <= text.count - start else { continue }
      var changes = 0
      let fits = word.indices.allSatisfy { index in
        let byte = text[start + index]
        if byte == word[index] { return true }
        changes += 1
        return byte.small == word[index] || byte.letter == word[index]
      }
      guard fits else { continue }
      best = Part(count: word.count, bits: logarithm(Double(rank + 2)) + min(4, Double(changes)))
    }
    return best
  }

  /// A word of a language: three to ten letters between other characters, with a vowel, some as figures.
  private static func word(of text: Span<UInt8>, _ start: Int) -> Part? {
    guard text[start].isLetter, start == 0 || !text[start - 1].isLetterOrFigure else { return nil }
    var (end, letters, figures, capitals, hasVowel) = (start, 0, 0, 0, false)
    while end < text.count, text[end].isLetterOrFigure {
      if text[end].isLetter { letters += 1 } else { figures += 1 }
      if text[end].isLetter, text[end] != text[end].small { capitals += 1 }
      hasVowel = hasVowel || "aeiouy".utf8.contains(text[end].small)
      end += 1
    }
    // A figure at the end is a number behind the word.
    while end > start, !text[end - 1].isLetter { (end, figures) = (end - 1, figures - 1) }
    let count = end - start
    guard (3...10).contains(count), hasVowel, figures * 3 <= letters else { return nil }
    return Part(count: count, bits: min(4.7 * Double(count), 14) + min(3, Double(figures + capitals)))
  }
}

// MARK: - Patterns

extension PassphraseStrength {
  private static func repetition(of text: Span<UInt8>, _ start: Int) -> Part? {
    let end = (start..<text.count).first { text[$0] != text[start] } ?? text.count
    return end - start >= 3 ? Part(count: end - start, bits: 6 + logarithm(Double(end - start))) : nil
  }

  /// `abcd`, `4321`.
  private static func sequence(of text: Span<UInt8>, _ start: Int) -> Part? {
    guard start + 2 < text.count else { return nil }
    let step = Int(text[start + 1]) - Int(text[start])
    guard abs(step) == 1 else { return nil }
    var end = start + 2
    while end < text.count, Int(text[end]) - Int(text[end - 1]) == step { end += 1 }
    return end - start >= 3 ? Part(count: end - start, bits: 5 + logarithm(Double(end - start))) : nil
  }

  private static let rows = ["qwertyuiop", "asdfghjkl", "zxcvbnm", "1234567890", "qwertzuiop", "azertyuiop"]
    .map {
      Array($0.utf8)
    }

  private static func keyboardRow(of text: Span<UInt8>, _ start: Int) -> Part? {
    var longest = 0
    for row in rows {
      guard let first = row.firstIndex(of: text[start].small) else { continue }
      for step in [1, -1] {
        var count = 1
        while start + count < text.count, row.indices.contains(first + step * count),
          row[first + step * count] == text[start + count].small
        {
          count += 1
        }
        longest = max(longest, count)
      }
    }
    return longest >= 3 ? Part(count: longest, bits: 6 + logarithm(Double(longest))) : nil
  }

  /// 1900 to 2099.
  private static func year(of text: Span<UInt8>, _ start: Int) -> Part? {
    guard start + 4 <= text.count, (start..<start + 4).allSatisfy({ text[$0].isDigit }) else { return nil }
    let century = (Int(text[start]) - 48) * 10 + Int(text[start + 1]) - 48
    return century == 19 || century == 20 ? Part(count: 4, bits: 7) : nil
  }

  /// The same once more as just before.
  private static func repeatedPart(of text: Span<UInt8>, _ start: Int) -> Part? {
    guard start >= 3, start + 3 <= text.count else { return nil }
    for count in (3...min(start, text.count - start)).reversed() {
      if (0..<count).allSatisfy({ text[start + $0] == text[start + $0 - count] }) {
        return Part(count: count, bits: 3)
      }
    }
    return nil
  }

  /// The binary logarithm, exact at powers of two and too small by at most 0.09 between them.
  private static func logarithm(_ value: Double) -> Double {
    Double(value.exponent) + value.significand - 1
  }
}

extension UInt8 {
  fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
  fileprivate var isLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(small) }
  fileprivate var isLetterOrFigure: Bool { isLetter || letter != nil }
  /// Of a capital letter the small one.
  fileprivate var small: UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self + 32 : self
  }

  /// The letter that a figure or sign is written in the place of; nil: none.
  fileprivate var letter: UInt8? {
    switch self {
    case UInt8(ascii: "0"): UInt8(ascii: "o")
    case UInt8(ascii: "1"), UInt8(ascii: "!"): UInt8(ascii: "i")
    case UInt8(ascii: "3"): UInt8(ascii: "e")
    case UInt8(ascii: "4"), UInt8(ascii: "@"): UInt8(ascii: "a")
    case UInt8(ascii: "5"), UInt8(ascii: "$"): UInt8(ascii: "s")
    case UInt8(ascii: "7"): UInt8(ascii: "t")
    default: nil
    }
  }
}
