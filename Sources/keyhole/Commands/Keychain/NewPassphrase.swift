import Model
import Prompting
import SecretMemory

/// A passphrase that is to be set.
enum NewPassphrase {
  /// Typed twice on a terminal, else a line of standard input; empty: none is to be set.
  ///
  /// A weak one is named so. On a terminal a person may use it all the same.
  /// - Throws: `Failure` for a weak one without a terminal, unless `allowsWeak`; for two that do not match.
  static func ask(allowingWeak allowsWeak: Bool) throws -> SecretBytes {
    guard SecretInput.isTyped else {
      guard let new = try SecretInput.nextLine() else {
        throw Failure(
          nil,
          "the input ended before the new passphrase; nothing was changed (an empty line removes the passphrase)"
        )
      }
      let strength = new.withSpan(0..<new.count) { PassphraseStrength($0) }
      if strength.isWeak, !allowsWeak, !new.isEmpty {
        throw Failure(nil, "the new passphrase is weak: \(strength.description); --weak sets it all the same")
      }
      return new
    }
    while true {
      let new = try typed("New passphrase (empty: none): ")
      let strength = new.withSpan(0..<new.count) { PassphraseStrength($0) }
      guard try new.isEmpty || allowsWeak || !strength.isWeak || isWanted(strength) else { continue }
      let again = try typed("Once more: ")
      guard new == again else { throw Failure(nil, "the passphrases do not match; nothing was changed") }
      return new
    }
  }

  private static func typed(_ prompt: String) throws -> SecretBytes {
    guard let line = try SecretInput.askForLine(prompt) else {
      throw Failure(nil, "the input ended before the new passphrase; nothing was changed")
    }
    return line
  }

  private static func isWanted(_ strength: PassphraseStrength) throws -> Bool {
    StandardError.write(
      "This passphrase is weak: \(strength.description).\nFive words chosen at random are strong.\n")
    return try isYes("Use it all the same? `yes` does; it is not shown: ")
  }

  /// Whether a person types `yes`, unseen: what was typed ahead may be a passphrase.
  static func isYes(_ question: String) throws -> Bool {
    guard let answer = try SecretInput.askForLine(question) else {
      throw Failure(nil, "there was no answer; nothing was changed", .refused)
    }
    return try answer == SecretBytes(copying: Array("yes".utf8).span)
  }
}

extension PassphraseStrength {
  /// For a person.
  fileprivate var description: String {
    isCommon
      ? "lists of common passwords have it"
      : "about 2^\(bits) guesses find it; at least 2^\(Self.enough) are advised"
  }
}
