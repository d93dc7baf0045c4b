import Testing

@testable import Service

@Suite struct StatusSourcesTests {
  /// A mount answers for its status as long as it runs.
  @Test func readingLeavesNothingBehind() {
    let sources = StatusSources()
    sources.change {
      $0.locking = { "by nothing" }
      $0.approval = { "by nobody" }
      $0.problems.append { ["one"] }
      $0.problems.append { ["two"] }
    }
    for _ in 0..<500_000 { _ = sources.all }
    #expect(sources.all.locking() == "by nothing" && sources.all.approval() == "by nobody")
    #expect(sources.all.problems.flatMap { $0() } == ["one", "two"])
  }
}
