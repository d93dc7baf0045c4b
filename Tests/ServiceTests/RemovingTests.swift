import InMemory
import Testing

@testable import Service

/// `keyhole rm`.
@Suite struct RemovingTests {
  @Test func fileIsRemovedAlone() throws {
    let fixture = try SessionFixture()
    try fixture.write("defaults/s/a", "1")
    try fixture.write("defaults/s/b", "2")
    try fixture.session.remove(TreePath("defaults/s/a"), .fileOnly)
    #expect(try !fixture.exists("defaults/s/a") && fixture.exists("defaults/s/b"))
  }

  @Test func folderIsRemovedWithItsContentOnly() throws {
    let fixture = try SessionFixture()
    try fixture.write("keychain/generic/service/a/value", "1")
    try fixture.write("keychain/generic/service/b/value", "2")
    let folder = TreePath("keychain/generic/service")
    #expect(
      reason { try fixture.session.remove(folder, .fileOnly) } == "it is a folder; `keyhole rm -r` removes it"
    )
    #expect(try fixture.keychain.items().count == 2)
    try fixture.session.remove(folder, .withContent)
    #expect(try fixture.keychain.items().isEmpty && !fixture.exists("keychain/generic/service"))
  }

  /// The path may be that of an unset variable in a script.
  @Test(arguments: ["", "/", "defaults", "keychain", "keychain/generic/"])
  func folderOfTheTreeStaysWithItsContent(path: String) throws {
    let fixture = try SessionFixture()
    for key in ["a", "b", "c", "d"] { try fixture.write("defaults/\(key)/k", "1") }
    try fixture.write("keychain/generic/s/p/value", "1")
    let refusal = reason { try fixture.session.remove(TreePath(path), .withContent) }
    #expect(refusal?.contains("nothing was removed") == true)
    #expect(try fixture.exists("defaults/d/k") && fixture.exists("keychain/generic/s/p/value"))
    if path == "defaults" { #expect(refusal?.hasSuffix(" and 1 more; remove these by name") == true) }
  }

  @Test func missingPathIsAFailure() throws {
    let fixture = try SessionFixture()
    #expect(reason { try fixture.session.remove(TreePath("defaults/s/k"), .withContent) } != nil)
  }
}
