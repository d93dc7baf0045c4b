import LossyFileSystem
import PowerLossProgram
import Testing

extension PowerLossTests {
  /// A suite at one moment; nil: it is not there.
  private typealias Moment = SuiteState?

  /// The possible contents of each suite after `acknowledged` steps: those when it was last synchronised, or
  /// anything that it held since then, the step under way included.
  private static func moments(_ steps: [SuiteStep], _ acknowledged: Int) -> [String: [Moment]] {
    var suites: [String: SuiteState] = [:]
    var moments: [String: [Moment]] = [:]
    for (index, step) in steps.prefix(acknowledged + 1).enumerated() {
      suites.apply(step)
      if case .synchronize(let name) = step, index < acknowledged { moments[name] = [] }
      for name in Set(suites.keys).union(moments.keys) {
        moments[name, default: [nil]].append(suites[name])
      }
    }
    return moments
  }

  private static func check(_ root: String, _ moments: [String: [Moment]]) throws {
    let work = SuiteWork(root: root)
    let contents = try work.contents()
    guard work.problems().isEmpty else { throw Failure("problems: \(work.problems())") }
    for name in Set(contents.keys).union(moments.keys) where moments[name]?.contains(contents[name]) != true {
      throw Failure("\(name) holds \(contents[name]?.keys.sorted() as Any), which it never did")
    }
    try work.perform(.create("afterwards"))
    try work.perform(.set("afterwards", ["key": "value"]))
    #expect(try work.contents()["afterwards"] == ["key": "value"])
  }

  @Test(.timeLimit(.minutes(2)), arguments: [1, 2] as [UInt64], ["suites", "journals"])
  func suitesAreOldOrNewAndNeverDamaged(seed: UInt64, work: String) throws {
    let steps = Array(SuiteSteps(seed: seed).prefix(200))
    let cuts = PowerCuts(share: 0.04, seed: seed)
    let disks = try Self.cuts(work, on: Self.home(), steps: steps.count, seed: seed, cuts)
    let losses = try Self.forEachLoss(disks, seed: seed) { root, acknowledged in
      try Self.check(root, Self.moments(steps, acknowledged))
    }
    #expect(losses > 100)
  }

  @Test(.timeLimit(.minutes(1))) func suitesInFolderThatIsBeingMade() throws {
    let seed: UInt64 = 4
    let steps = Array(SuiteSteps(seed: seed).prefix(30))
    let disk = Self.home(folders: ["state"])
    let disks = try Self.cuts(
      "suites", on: disk, steps: steps.count, seed: seed, PowerCuts(share: 0.2, seed: seed))
    let losses = try Self.forEachLoss(disks, seed: seed) { root, acknowledged in
      try Self.check(root, Self.moments(steps, acknowledged))
    }
    #expect(losses > 100)
  }

  @Test(.timeLimit(.minutes(1))) func renamedSuiteHasOneOfItsNames() throws {
    let before: [SuiteStep] = [.create("old"), .set("old", ["key": "value"]), .synchronize("old")]
    let disk = try withMount(Self.home(), cuts: .never) { mount in
      for step in before { try SuiteWork(root: mount.path).perform(step) }
      return mount.disk
    }
    let disks = try withMount(disk, cuts: PowerCuts(share: 1, seed: 0)) { mount in
      try SuiteWork(root: mount.path).perform(.rename("old", to: "new"))
      return mount.cuts.disks + [mount.disk]
    }
    for seed in UInt64(0)..<8 {
      try Self.forEachLoss(disks, seed: seed * 100) { root, _ in
        let contents = try SuiteWork(root: root).contents()
        #expect(contents["old"] == ["key": "value"] || contents["new"] == ["key": "value"])
      }
    }
  }
}
