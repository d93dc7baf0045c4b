import LossyFileSystem
import Model
import PowerLossProgram
import Testing

extension PowerLossTests {
  /// The possible contents of a vault after `acknowledged` steps: the one that was under way may be done or not.
  private static func states(_ steps: [KeychainStep], _ acknowledged: Int) -> [KeychainState] {
    var before: KeychainState = [:]
    for step in steps.prefix(acknowledged) { before.apply(step) }
    var after = before
    for step in steps.dropFirst(acknowledged).prefix(1) { after.apply(step) }
    return [before, after]
  }

  /// The vault opens, says nothing is wrong, holds one of `states`, and can be written.
  private static func check(_ root: String, _ states: [KeychainState]) throws {
    let work = try KeychainWork(root: root)
    let contents = try work.contents()
    guard work.problems().isEmpty else { throw Failure("problems: \(work.problems())") }
    if !states.contains(contents) {
      throw Failure("the vault has \(contents.keys.sorted()), not \(states.map { $0.keys.sorted() })")
    }
    let entry = KeychainEntry(secret: [1], comment: [], accessibility: .whenUnlockedThisDeviceOnly)
    try work.perform(.add("afterwards", entry))
    #expect(try work.contents()["afterwards"] == entry)
  }

  @Test(.timeLimit(.minutes(10)), arguments: [1, 2] as [UInt64])
  func vaultKeepsWhatItAcknowledged(seed: UInt64) throws {
    let steps = Array(KeychainSteps(seed: seed).prefix(150))
    let cuts = PowerCuts(share: 0.03, seed: seed)
    let disks = try Self.cuts("vault", on: Self.home(), steps: steps.count, seed: seed, cuts)
    let losses = try Self.forEachLoss(disks, seed: seed) { root, acknowledged in
      try Self.check(root, Self.states(steps, acknowledged))
    }
    #expect(losses > 100)
  }

  /// Killed or without power, one of the two passwords opens the item.
  @Test(.timeLimit(.minutes(10))) func passwordThatIsChangedIsTheOldOneOrTheNew() throws {
    let seed: UInt64 = 3
    let cuts = PowerCuts(share: 0.08, seed: seed)
    let disks = try Self.cuts("passwords", on: Self.home(), steps: 0, seed: seed, cuts)
    let losses = try Self.forEachLoss(disks, seed: seed) { root, acknowledged in
      try Self.check(root, Self.states(KeychainSteps.passwordChanges, acknowledged))
    }
    #expect(losses > 10)
  }

  /// Killed or without power while all keys are made new, one of the two passphrases opens everything.
  @Test(.timeLimit(.minutes(10))) func passphraseThatIsChangedIsTheOldOneOrTheNew() throws {
    let seed: UInt64 = 4
    let cuts = PowerCuts(share: 0.03, seed: seed)
    let disks = try Self.cuts("passphrases", on: Self.home(), steps: 0, seed: seed, cuts)
    let losses = try Self.forEachLoss(disks, seed: seed) { root, acknowledged in
      try Self.check(root, Self.states(KeychainSteps.passphraseChanges, acknowledged))
    }
    #expect(losses > 10)
  }

  @Test(.timeLimit(.minutes(10))) func vaultThatIsBeingMadeOpens() throws {
    let seed: UInt64 = 5
    let steps = Array(KeychainSteps(seed: seed).prefix(2))
    let cuts = PowerCuts(share: 1, seed: seed)
    let disks = try Self.cuts("vault", on: Self.home(), steps: steps.count, seed: seed, cuts)
    let losses = try Self.forEachLoss(disks, seed: seed) { root, acknowledged in
      try Self.check(root, Self.states(steps, acknowledged))
    }
    #expect(losses > 100)
  }

  /// The program is killed, the next one goes on from what the kernel still had, and then the power fails.
  @Test(.timeLimit(.minutes(10)), arguments: [(0, 1), (8, 0.4)])
  func vaultOutlivesKillAndThenPowerLoss(count: Int, share: Double) throws {
    let seed: UInt64 = 7
    let steps = Array(KeychainSteps(seed: seed).prefix(count))
    let kills = PowerCuts(share: share, of: .synchronizations, seed: seed)
    let killed = try Self.cuts("vault", on: Self.home(), steps: steps.count, seed: seed, kills)
    var losses = 0
    for (index, disk) in killed.enumerated() {
      let cuts = PowerCuts(share: 0.5, seed: UInt64(index))
      let disks = try Self.cuts("read", on: disk, steps: 0, seed: seed, cuts)
      losses += try Self.forEachLoss(disks, seed: UInt64(index)) { root, acknowledged in
        try Self.check(root, Self.states(steps, acknowledged))
      }
    }
    #expect(losses > 100)
  }
}
