import CWordList
import Glibc
import Model
package import SecretMemory

/// How a new secret is made: of characters, or of words.
package struct PasswordRecipe: Sendable {
  private enum Parts: Sendable {
    /// So many characters, at least one of each class.
    case characters(Int, [[UInt8]])
    /// So many words, with a separator between.
    case words(Int, [UInt8])
  }

  private let parts: Parts

  package static let lengths = 8...1024
  package static let wordCounts = 3...64

  private static let letters = [
    Array("abcdefghijklmnopqrstuvwxyz".utf8), Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8),
  ]
  private static let digits = Array("0123456789".utf8)
  /// Without quotes, backslash, backtick and blank, which shells and configuration files take apart.
  private static let symbols = Array("!#$%&()*+,-./:;<=>?@[]^_{|}~".utf8)

  /// Letters and digits, with `symbols` punctuation too. `length` is one of `lengths`.
  package init(length: Int, symbols: Bool) {
    precondition(Self.lengths.contains(length))
    parts = .characters(length, Self.letters + [Self.digits] + (symbols ? [Self.symbols] : []))
  }

  /// Words of the EFF's long list. `words` is one of `wordCounts`.
  package init(words: Int, separator: String) {
    precondition(Self.wordCounts.contains(words))
    parts = .words(words, Array(separator.utf8))
  }

  /// How many yes-or-no questions a guess takes at least, if the guesser knows the recipe.
  package var bits: Int {
    switch parts {
    case .characters(let length, let classes):
      // That each class occurs takes away less than one in ten thousandth of the entropy from 8 characters on.
      Int(Double(length) * log2(Double(classes.reduce(0) { $0 + $1.count })))
    case .words(let count, _): Int(Double(count) * log2(Double(Self.wordList.count)))
    }
  }

  /// A new secret from the system's random numbers, getrandom(2).
  package func make() throws(SecretMemoryError) -> SecretBytes {
    var system = SystemRandomNumberGenerator()
    return try make(using: &system)
  }

  /// `random(in:using:)` of the standard library is without modulo bias, and so is each choice.
  func make(using random: inout some RandomNumberGenerator) throws(SecretMemoryError) -> SecretBytes {
    switch parts {
    case .characters(let length, let classes):
      let alphabet = classes.flatMap { $0 }
      while true {
        // All again where a class is missing, so that each that is left is as likely as any other.
        let secret = try Self.characters(length, alphabet, &random)
        if classes.allSatisfy({ Self.has(secret, $0) }) { return secret }
      }
    case .words(let count, let separator): return try Self.phrase(count, separator, &random)
    }
  }
}

extension PasswordRecipe {
  private static func characters(
    _ length: Int, _ alphabet: [UInt8], _ random: inout some RandomNumberGenerator
  ) throws(SecretMemoryError) -> SecretBytes {
    var secret = try SecretBytes(count: length)
    var bytes = secret.mutableSpan
    for index in 0..<length { bytes[index] = alphabet[Int.random(in: alphabet.indices, using: &random)] }
    return secret
  }

  private static func has(_ secret: borrowing SecretBytes, _ characters: [UInt8]) -> Bool {
    for index in 0..<secret.count where characters.contains(secret[index]) { return true }
    return false
  }

  private static func phrase(
    _ count: Int, _ separator: [UInt8], _ random: inout some RandomNumberGenerator
  ) throws(SecretMemoryError) -> SecretBytes {
    var secret = try SecretBytes()
    for index in 0..<count {
      if index > 0 { try secret.append(separator.span) }
      let word = wordList[Int.random(in: wordList.indices, using: &random)]
      try secret.append(word.span)
    }
    return secret
  }

  /// Each as UTF-8.
  static let wordList: [[UInt8]] = {
    let text = unsafe UnsafeBufferPointer(start: wordlist_eff_long_start(), count: wordlist_eff_long_size)
    return unsafe text.split(separator: UInt8(ascii: "\n")).map { unsafe Array($0) }
  }()
}
