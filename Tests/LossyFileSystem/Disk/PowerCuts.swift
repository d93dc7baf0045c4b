import TestSupport

/// When the power is cut: by chance, just before calls that change or synchronise something.
package struct PowerCuts: Sendable {
  /// Before which calls.
  package enum Calls: Sendable {
    case all
    /// fsync(2) only: the moments at which most is at stake.
    case synchronizations
  }

  private var chance: SplitMix64
  private let share: Double
  private let calls: Calls
  /// The disk as it was at each cut.
  package private(set) var disks: [LossyDisk] = []

  /// Cuts before a `share` of the calls: 0, never, up to 1, always.
  package init(share: Double, of calls: Calls = .all, seed: UInt64) {
    self.share = share
    self.calls = calls
    chance = SplitMix64(seed: seed)
  }

  package static let never = PowerCuts(share: 0, seed: 0)

  mutating func happen(to disk: LossyDisk, before call: Calls) {
    guard calls == .all || calls == call else { return }
    if Double.random(in: 0..<1, using: &chance) < share { disks.append(disk) }
  }
}
