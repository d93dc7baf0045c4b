import Model
import SecretMemory
import TestSupport
import Testing

@testable import Service

/// `keyhole generate`.
@Suite struct PasswordRecipeTests {
  private func text(_ recipe: PasswordRecipe, _ random: inout SplitMix64) throws -> String {
    String(decoding: try recipe.make(using: &random).unprotected, as: UTF8.self)
  }

  @Test(arguments: [8, 24, 1024], [false, true])
  func eachKindOfCharacterIsThere(length: Int, symbols: Bool) throws {
    var random = SplitMix64(seed: 1)
    for _ in 0..<20 {
      let secret = try text(PasswordRecipe(length: length, symbols: symbols), &random)
      #expect(secret.utf8.count == length)
      #expect(secret.contains { $0.isLowercase } && secret.contains { $0.isUppercase })
      #expect(secret.contains { $0.isNumber })
      #expect(secret.contains { !$0.isLetter && !$0.isNumber } == symbols)
      #expect(!secret.contains { " '\"\\`".contains($0) })
    }
  }

  /// A modulo of 256 would prefer the first 8 of 62 characters by a quarter.
  @Test func charactersAreEquallyLikely() throws {
    var random = SplitMix64(seed: 2)
    var counts: [Character: Int] = [:]
    for _ in 0..<124 {
      for character in try text(PasswordRecipe(length: 1000, symbols: false), &random) {
        counts[character, default: 0] += 1
      }
    }
    #expect(counts.count == 62)
    // 2,000 of each are expected; six standard deviations are 266.
    #expect(counts.values.allSatisfy { (1734...2266).contains($0) })
  }

  @Test func wordsAreOfTheList() throws {
    #expect(PasswordRecipe.wordList.count == 7776 && Set(PasswordRecipe.wordList).count == 7776)
    #expect(PasswordRecipe.wordList.allSatisfy { $0.count >= 3 })
    #expect(Self.publishedDigest() == "addd35536511597a02fa0a9ff1e5284677b8883b83e986e43f15a3db996b903e")
    var random = SplitMix64(seed: 3)
    let words = try text(PasswordRecipe(words: 6, separator: " "), &random).split(separator: " ")
    #expect(words.count == 6)
    #expect(words.allSatisfy { PasswordRecipe.wordList.contains(Array($0.utf8)) })
  }

  /// SHA-256 of the list as <https://www.eff.org/files/2016/07/18/eff_large_wordlist.txt> is: with five dice before each word.
  private static func publishedDigest() -> String {
    var hasher = SHA256Hasher()
    for (index, word) in PasswordRecipe.wordList.enumerated() {
      let dice = String(index, radix: 6).utf8.map { $0 + 1 }
      let line = [UInt8](repeating: UInt8(ascii: "1"), count: 5 - dice.count) + dice + [0x09] + word + [0x0A]
      hasher.update(line.span)
    }
    return hasher.finalize().map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
  }

  @Test func systemsRandomNumbersDiffer() throws {
    let recipe = PasswordRecipe(length: 24, symbols: true)
    let (first, second) = (try recipe.make().unprotected, try recipe.make().unprotected)
    #expect(first != second)
  }

  @Test func bitsAreCounted() {
    #expect(PasswordRecipe(length: 24, symbols: false).bits == 142)
    #expect(PasswordRecipe(words: 6, separator: "-").bits == 77)
  }

  @Test(arguments: [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")])
  func terminalGetsBase64(secret: String, base64: String) throws {
    let sequence = try TerminalClipboard.sequence(for: SecretBytes(copying: Array(secret.utf8).span))
    #expect(sequence.unprotected == Array("\u{1B}]52;c;\(base64)\u{07}".utf8))
  }
}
