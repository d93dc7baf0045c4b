import TestSupport

/// The content that survives a power loss besides synchronised content, which always does.
package enum Survival: Hashable, Sendable {
  /// Nothing.
  case nothing
  /// Every name, but no byte: a file that was renamed into place without fsync(2) is empty there.
  case names
  /// Any names and any pages, each by chance: the disk was free to write what it liked, in any order.
  case some(seed: UInt64)
}

extension Survival {
  /// The three kinds, for one moment of a power loss.
  package static func all(seed: UInt64) -> [Survival] {
    [.nothing, .names, .some(seed: seed)]
  }
}

/// Decides for each name and page whether it survives.
struct Fate {
  let survival: Survival
  private var chance: SplitMix64

  init(_ survival: Survival) {
    self.survival = survival
    chance = if case .some(let seed) = survival { SplitMix64(seed: seed) } else { SplitMix64(seed: 0) }
  }

  /// Which of the states of a page, or of a size, is on the disk: 0 is the synchronised one.
  mutating func state(of count: Int) -> Int {
    guard case .some = survival else { return 0 }
    return Int.random(in: 0...count, using: &chance)
  }

  mutating func keepsName() -> Bool {
    switch survival {
    case .nothing: false
    case .names: true
    case .some: Bool.random(using: &chance)
    }
  }
}
