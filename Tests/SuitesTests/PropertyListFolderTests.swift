import Model
import Store
import StoreConformance
import Suites
import Testing

@Suite(.timeLimit(.minutes(1))) struct PropertyListFolderTests {
  let sandbox = SuiteSandbox()

  @Test(arguments: SuiteEngineConformance.cases)
  func keepsTheProtocol(_ test: SuiteEngineConformance.Case) throws {
    try test.run(sandbox.engine())
  }

  /// Engines of their own lock as processes do: by descriptors of their own.
  @Test func enginesThatWriteDifferentKeysAllWin() async throws {
    _ = try sandbox.engine().create("a")
    let (rounds, writers) = (50, 4)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<writers {
        group.addTask {
          let engine = sandbox.engine()
          var known: SuiteContents?
          for round in 0..<rounds {
            let key = ExactString("\(writer)-\(round)")
            known = try engine.update("a", known: known) {
              $0.settings[key] = Setting(.integer(Int128(round)))
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try sandbox.engine().values("a")?.count == rounds * writers)
    try sandbox.engine().synchronize("a")
    #expect(sandbox.names(sandbox.folder).filter { $0 != ".keyhole-reserve" } == ["a.plist"])
  }

  @Test func aReaderSeesOldOrNewAndNothingElse() async throws {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    let keys = (0..<50).map { ExactString("k\($0)") }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        for round in 0..<100 {
          _ = try engine.update("a", known: nil) { contents in
            for key in keys { contents.settings[key] = Setting(.integer(Int128(round))) }
          }
        }
      }
      group.addTask {
        let reader = sandbox.engine()
        for _ in 0..<300 {
          let values = try reader.values("a") ?? [:]
          #expect(Set(values.values).count <= 1)
        }
      }
      try await group.waitForAll()
    }
  }

  @Test func aSuiteRenamedUnderAWriterIsMissing() async throws {
    let engine = sandbox.engine()
    for _ in 0..<20 {
      _ = try engine.create("a")
      async let written = { try? engine.set("k", .bool(true), in: "a") }()
      try engine.rename("a", to: "b")
      let isWritten = await written != nil
      #expect(try engine.values("b") == (isWritten ? ["k": .bool(true)] : [:]))
      #expect(try engine.read("a") == nil)
      try engine.set("k", nil, in: "b")
      try engine.remove("b")
    }
  }
}
