import InMemory
import Testing

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
    try all.run { steps += 1 }
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
}
