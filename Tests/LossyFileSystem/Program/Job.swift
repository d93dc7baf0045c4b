/// The work of the program on a lossy disk: `PowerLossProgram WORK ROOT SEED STEPS`.
///
/// A process of its own, since the one that answers for the disk can't map SQLite's shared memory there.
struct Job {
  let root: String
  let seed: UInt64
  let steps: Int

  init?(_ arguments: [String]) {
    guard arguments.count == 3, let seed = UInt64(arguments[1]), let steps = Int(arguments[2]) else {
      return nil
    }
    (root, self.seed, self.steps) = (arguments[0], seed, steps)
  }

  func vault() throws { try vault(Array(KeychainSteps(seed: seed).prefix(steps))) }

  func passwords() throws { try vault(KeychainSteps.passwordChanges) }

  func passphrases() throws { try vault(KeychainSteps.passphraseChanges) }

  private func vault(_ steps: [KeychainStep]) throws {
    let oracle = try Oracle(root + "/oracle")
    let work = try KeychainWork(root: root)
    for (index, step) in steps.enumerated() {
      try work.perform(step)
      try oracle.acknowledge(index + 1)
    }
  }

  /// Opens the vault and reads all of it.
  func read() throws {
    _ = try KeychainWork(root: root).contents()
  }

  func suites() throws { try suites(SuiteWork(root: root)) }

  func journals() throws { try suites(SuiteWork(journalsIn: root)) }

  private func suites(_ work: SuiteWork) throws {
    let oracle = try Oracle(root + "/oracle")
    for (index, step) in SuiteSteps(seed: seed).prefix(steps).enumerated() {
      try work.perform(step)
      try oracle.acknowledge(index + 1)
    }
  }
}
