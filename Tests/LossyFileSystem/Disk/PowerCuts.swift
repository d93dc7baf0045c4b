/// When the power is cut: by chance, just before calls that change or synchronise something.
package struct PowerCuts: Sendable {
  private var chance: SplitMix64
  private let share: Double
  /// How many calls there were that changed or synchronised something.
  package private(set) var calls = 0
  /// The disk as it was at each cut.
  package private(set) var disks: [LossyDisk] = []

  /// Cuts before a `share` of all calls: 0, never, up to 1, always.
  package init(share: Double, seed: UInt64) {
    self.share = share
    chance = SplitMix64(seed: seed)
  }

  mutating func happen(to disk: LossyDisk) {
    calls += 1
    if Double.random(in: 0..<1, using: &chance) < share { disks.append(disk) }
  }
}
