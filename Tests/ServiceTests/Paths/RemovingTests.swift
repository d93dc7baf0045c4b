import Model
import Testing

@testable import InMemory
@testable import Service

/// `keyhole rm`.
@Suite struct RemovingTests {
  private func removal(
    _ path: String, _ scope: TreeRemoval.Scope, _ fixture: SessionFixture
  ) throws -> TreeRemoval {
    try TreeRemoval(of: TreePath(path), scope, in: fixture.session)
  }

  @Test func fileIsRemovedAlone() throws {
    let fixture = try SessionFixture()
    try fixture.write("defaults/s/a", "1")
    try fixture.write("defaults/s/b", "2")
    try removal("defaults/s/a", .fileOrItem, fixture).run()
    #expect(try !fixture.exists("defaults/s/a") && fixture.exists("defaults/s/b"))
  }

  @Test func folderIsRemovedWithItsContentOnly() throws {
    let fixture = try SessionFixture()
    try fixture.write("keychain/generic/service/a/value", "1")
    try fixture.write("keychain/generic/service/b/value", "2")
    let folder = "keychain/generic/service"
    #expect(
      reason { try removal(folder, .fileOrItem, fixture).run() }
        == "it is a folder; `keyhole rm -r` removes it"
    )
    #expect(try fixture.keychain.items().count == 2)
    let all = try removal(folder, .withContent, fixture)
    #expect(all.count == 2 && !all.isOfTree)
    var steps = 0
    try all.run { steps += $0 }
    #expect(steps == 2)
    #expect(try fixture.keychain.items().isEmpty && !fixture.exists("keychain/generic/service"))
  }

  /// An item is one thing, with its `otpauth:` URI.
  @Test func itemIsRemovedWhole() throws {
    let fixture = try SessionFixture()
    try fixture.write("keychain/generic/s/a/value", "1")
    try fixture.write("keychain/generic/s/a/otpauth", "otpauth://totp/a?secret=GEZDGNBVGY3TQOJQ")
    let item = try removal("keychain/generic/s/a", .fileOrItem, fixture)
    #expect(item.count == 1)
    try item.run()
    #expect(try fixture.keychain.items().isEmpty)
  }

  /// The path may be that of an unset variable in a script: the command asks about these.
  @Test(arguments: ["defaults", "keychain", "keychain/generic/"])
  func folderOfTheTreeIsEmptiedAndStays(path: String) throws {
    let fixture = try SessionFixture()
    try fixture.write("defaults/a/k", "1")
    try fixture.write("defaults/b/k", "1")
    try fixture.write("keychain/generic/s/p/value", "1")
    let folder = try removal(path, .withContent, fixture)
    #expect(folder.isOfTree && folder.count == (path == "defaults" ? 2 : 1))
    try folder.run()
    #expect(try fixture.exists(path) && fixture.exists("defaults/a/k") == (path != "defaults"))
    #expect(try fixture.keychain.items().isEmpty == (path != "defaults"))
  }

  @Test(arguments: ["", "/", ".", "//"]) func topIsNeverRemoved(path: String) throws {
    let fixture = try SessionFixture()
    try fixture.write("defaults/a/k", "1")
    let refusal = reason { try removal(path, .withContent, fixture).run() }
    #expect(refusal?.contains("nothing was removed") == true)
    #expect(try fixture.exists("defaults/a/k"))
  }

  @Test func missingPathIsAFailure() throws {
    let fixture = try SessionFixture()
    #expect(reason { try removal("defaults/s/k", .withContent, fixture).run() } != nil)
  }

  /// In transactions of 1, 2, 4 … 256 as long as each is quick, over the folders of all services.
  @Test func manyItemsAreRemovedInFewTransactions() throws {
    let fixture = try SessionFixture()
    for number in 0..<20 {
      for account in 0..<20 { try fixture.write("keychain/generic/s\(number)/a\(account)/value", "1") }
    }
    try fixture.write("keychain/generic/s3/a3/otpauth", "otpauth://totp/a?secret=GEZDGNBVGY3TQOJQ")
    let before = fixture.keychain.shared.use { $0.changes.count }
    let all = try removal("keychain/generic", .withContent, fixture)
    let now = ContinuousClock.now
    var steps: [Int] = []
    try all.run(RemovalPace { now }) { steps.append($0) }
    #expect(steps == [1, 2, 4, 8, 16, 32, 64, 128, 145])
    #expect(fixture.keychain.shared.use { $0.changes.count } == before + steps.count)
    #expect(try fixture.keychain.items().isEmpty)
  }

  @Test func keysOfASuiteAreRemovedTogether() throws {
    let fixture = try SessionFixture()
    for number in 0..<20 { try fixture.write("defaults/s/k\(number)", "1") }
    try fixture.write("defaults/t/k", "1")
    let now = ContinuousClock.now
    var steps: [Int] = []
    try removal("defaults/s", .withContent, fixture).run(RemovalPace { now }) { steps.append($0) }
    #expect(steps == [1, 2, 4, 8, 5])
    #expect(try !fixture.exists("defaults/s") && fixture.exists("defaults/t/k"))
  }
}

@Suite struct RemovalPaceTests {
  private func parts(of count: Int, seconds: Int, isDone: (ArraySlice<Int>) -> Bool = { _ in true }) -> [Int]
  {
    var (now, parts): (ContinuousClock.Instant, [Int]) = (.now, [])
    var pace = RemovalPace {
      defer { now = now.advanced(by: .seconds(seconds)) }
      return now
    }
    pace.run(Array(0..<count)) { part in
      parts.append(part.count)
      return isDone(part)
    }
    return parts
  }

  @Test func slowKeychainGetsOneAfterTheOther() {
    #expect(parts(of: 4, seconds: 2) == [1, 1, 1, 1])
  }

  @Test func quickOneGetsAsManyAsATransactionMayHave() {
    #expect(parts(of: 800, seconds: 0) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 33])
  }

  /// One of them can't be removed with others: those before it and behind it still go together.
  @Test func elementThatFailsWithOthersIsReachedAlone() {
    let parts = parts(of: 16, seconds: 0) { !$0.contains(9) || $0.count == 1 }
    #expect(parts == [1, 2, 4, 8, 4, 2, 4, 2, 1, 2, 4])
  }
}
