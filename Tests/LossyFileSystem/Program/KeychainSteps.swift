import LossyFileSystem
package import Model
import TestSupport

/// The contents of a keychain, by the accounts of its items.
package typealias KeychainState = [String: KeychainEntry]

/// The known state of one item.
package struct KeychainEntry: Equatable, Sendable {
  package var secret: [UInt8]
  package var comment: [UInt8]
  package var accessibility: Accessibility
  /// The item's own; nil: none.
  package var password: String?

  package init(secret: [UInt8], comment: [UInt8], accessibility: Accessibility, password: String? = nil) {
    self.secret = secret
    self.comment = comment
    self.accessibility = accessibility
    self.password = password
  }
}

/// One change of a keychain; all of it is one operation of an engine.
package enum KeychainStep: Sendable {
  case add(String, KeychainEntry)
  case rewrite(String, secret: [UInt8])
  /// Changes comments, without the secrets.
  case update([String], comment: [UInt8])
  case rename(String, to: String)
  case remove([String])
  /// Gives an item with a password another one.
  case changePassword(String, to: String)
  /// Makes the vault open with another passphrase (empty: none), and all of its keys new.
  case changePassphrase(from: String, to: String)
  /// The engine is closed and opened; no change.
  case reopen
}

/// Changes by chance, the same for the same seed: the program does them, the test knows their results.
package struct KeychainSteps: Sequence, IteratorProtocol, Sendable {
  private var chance: SplitMix64
  private var number = 0
  private var state: KeychainState = [:]

  /// The password of an item that has one of its own.
  package static let passwords = ["first", "second"]

  /// An item whose password is changed, and back.
  package static let passwordChanges: [KeychainStep] = [
    .add(
      "account",
      KeychainEntry(secret: [1, 2, 3], comment: [], accessibility: .whenUnlocked, password: passwords[0])),
    .changePassword("account", to: passwords[1]),
    .changePassword("account", to: passwords[0]),
  ]

  /// The passphrases of a vault; empty: none.
  package static let passphrases = ["", "first", "second"]

  /// A vault whose passphrase is set, changed and taken away.
  package static let passphraseChanges: [KeychainStep] =
    (0..<4).map { number in
      .add(
        "account \(number)",
        KeychainEntry(
          secret: [UInt8](repeating: number, count: 5_000), comment: [],
          accessibility: Accessibility.allCases[Int(number)]))
    } + passwordChanges.prefix(1) + [
      .changePassphrase(from: passphrases[0], to: passphrases[1]), .remove(["account 0"]),
      .changePassphrase(from: passphrases[1], to: passphrases[2]),
      .changePassphrase(from: passphrases[2], to: passphrases[0]),
    ]

  package init(seed: UInt64) {
    chance = SplitMix64(seed: seed)
  }

  package mutating func next() -> KeychainStep? {
    number += 1
    let step = choose()
    state.apply(step)
    return step
  }

  private mutating func choose() -> KeychainStep {
    let accounts = state.keys.sorted()
    guard accounts.count > 2, let account = accounts.randomElement(using: &chance) else { return add() }
    switch Int.random(in: 0..<100, using: &chance) {
    case ..<25: return add()
    case ..<55: return .rewrite(account, secret: bytes())
    case ..<75: return .update(some(of: accounts), comment: Array("comment \(number)".utf8))
    case ..<80: return .rename(account, to: "account \(number)")
    case ..<95: return .remove(some(of: accounts))
    default: return .reopen
    }
  }

  private mutating func add() -> KeychainStep {
    // One class takes a passphrase.
    let classes = Accessibility.allCases.filter { $0 != .whenPasscodeSetThisDeviceOnly }
    let accessibility = classes.randomElement(using: &chance) ?? .whenUnlocked
    let entry = KeychainEntry(
      secret: bytes(), comment: Array("new \(number)".utf8), accessibility: accessibility)
    return .add("account \(number)", entry)
  }

  private mutating func some(of accounts: [String]) -> [String] {
    Array(accounts.shuffled(using: &chance).prefix(Int.random(in: 1...3, using: &chance)))
  }

  /// Mostly short, as passwords are, sometimes several pages.
  private mutating func bytes() -> [UInt8] {
    let most = [40, 40, 300, 30_000].randomElement(using: &chance) ?? 40
    let count = Int.random(in: 0...most, using: &chance)
    return (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) }
  }
}

extension KeychainState {
  package mutating func apply(_ step: KeychainStep) {
    switch step {
    case .add(let account, let entry): self[account] = entry
    case .rewrite(let account, let secret): self[account]?.secret = secret
    case .update(let accounts, let comment): for account in accounts { self[account]?.comment = comment }
    case .rename(let account, let name): self[name] = removeValue(forKey: account)
    case .remove(let accounts): for account in accounts { self[account] = nil }
    case .changePassword(let account, let password): self[account]?.password = password
    case .reopen, .changePassphrase: break
    }
  }
}
