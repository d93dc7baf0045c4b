import Glibc
import Model
import Store
import StoreConformance
import Testing
import Tree

@Suite struct TreeRemovingTests {
  @Test func keyIsDeletedAtOnce() throws {
    let fixture = TreeFixture(["k": .integer(1), "l": .integer(2)])
    try fixture.remove("defaults/s/k")
    #expect(try fixture.stored("k") == nil && fixture.list("defaults/s") == ["l"])
    #expect(errorNumber { try fixture.remove("defaults/s/k") } == ENOENT)
  }

  @Test func suiteIsRemovedWhenItIsEmpty() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    #expect(errorNumber { try fixture.removeDirectory("defaults/s") } == ENOTEMPTY)
    try fixture.remove("defaults/s/k")
    try fixture.write("defaults/s/.scratch", "x")
    #expect(errorNumber { try fixture.removeDirectory("defaults/s") } == ENOTEMPTY)
    try fixture.remove("defaults/s/.scratch")
    try fixture.removeDirectory("defaults/s")
    #expect(try fixture.suites.read("s") == nil && !fixture.exists("defaults/s"))
  }

  @Test(arguments: [
    ("defaults", EPERM), ("keychain", EPERM), ("keychain/generic", EPERM), ("keychain/other", EPERM),
    (".keyhole", EPERM), ("defaults/s/k", ENOTDIR), ("keychain/generic/S", ENOTEMPTY),
    ("keychain/generic/S/A", ENOTEMPTY), ("keychain/generic/S/A/value", ENOTDIR), ("defaults/x", ENOENT),
  ])
  func directoryThatCanNotGoIsRefused(path: String, number: Int32) throws {
    let fixture = TreeFixture(["k": .integer(1)])
    try fixture.makeItem("keychain/generic/S/A")
    #expect(errorNumber { try fixture.removeDirectory(path) } == number)
    #expect(try fixture.read("keychain/generic/S/A/value") == "secret")
  }

  @Test(arguments: ["defaults", "defaults/s", "keychain/generic/S", "keychain/generic/S/A", ".keyhole"])
  func directoryIsNotUnlinked(path: String) throws {
    let fixture = TreeFixture([:])
    try fixture.makeItem("keychain/generic/S/A")
    #expect(errorNumber { try fixture.remove(path) } == EISDIR)
  }

  @Test func deletedSecretLeavesItsItemStaged() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A")
    try fixture.setAttribute("user.comment", "mine", "keychain/generic/S/A")
    try fixture.setAttribute("user.keyhole.created", "2020-01-01T00:00:00Z", "keychain/generic/S/A")
    try fixture.remove("keychain/generic/S/A/value")
    #expect(try fixture.items.items().isEmpty && fixture.list("keychain/generic/S/A") == [])
    #expect(try fixture.attribute("user.comment", "keychain/generic/S/A") == "mine")
    try fixture.write("keychain/generic/S/A/value", "new")
    let item = try #require(try fixture.onlyItem())
    #expect(
      item.attributes == ["comment": Array("mine".utf8)] && item.created.iso8601 == "2020-01-01T00:00:00Z")
    #expect(try fixture.read("keychain/generic/S/A/value") == "new")
  }

  @Test func stagedItemLivesUntilItIsRemoved() throws {
    let fixture = TreeFixture()
    try fixture.makeDirectories("keychain/generic/S/A")
    #expect(try fixture.list("keychain/generic") == ["S"] && fixture.list("keychain/generic/S") == ["A"])
    #expect(try fixture.items.items().isEmpty)
    try fixture.removeDirectory("keychain/generic/S/A")
    #expect(try fixture.list("keychain/generic") == ["S"] && fixture.list("keychain/generic/S") == [])
    try fixture.removeDirectory("keychain/generic/S")
    #expect(try fixture.list("keychain/generic") == [])
  }

  @Test func folderThatOthersEmptiedIsGoneAndOneEmptiedHereStays() throws {
    let fixture = TreeFixture()
    let elsewhere = MemoryKeychain(sharing: fixture.items)
    let item = try elsewhere.add(KeychainSamples.generic("theirs"), "x")
    try fixture.makeItem("keychain/generic/mine/A")
    try fixture.tree.keychain?.refresh()
    #expect(try fixture.list("keychain/generic") == ["mine", "theirs"])
    try elsewhere.remove([item.id])
    try fixture.tree.keychain?.refresh()
    try fixture.remove("keychain/generic/mine/A/value")
    try fixture.removeDirectory("keychain/generic/mine/A")
    #expect(try fixture.list("keychain/generic") == ["mine"])
  }

  @Test func removalOfAnEntireTreeDeletesBoth() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A")
    for path in ["keychain/generic/S/A/value"] { try fixture.remove(path) }
    try fixture.removeDirectory("keychain/generic/S/A")
    try fixture.removeDirectory("keychain/generic/S")
    #expect(try fixture.list("keychain/generic") == [] && fixture.items.items().isEmpty)
  }

  @Test func unlinkedFileStaysReadableAndStoresNothing() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let (reader, writer) = (try fixture.open("defaults/s/k", .read), try fixture.open("defaults/s/k", .write))
    try writer.write("new", at: 0)
    try fixture.remove("defaults/s/k")
    #expect(try reader.text() == "old\n")
    try writer.finish()
    reader.close()
    #expect(try fixture.stored("k") == nil && !fixture.exists("defaults/s/k"))
  }

  @Test func unlinkedFileDoesNotWriteToItsSuccessor() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let writer = try fixture.open("defaults/s/k", [.write, .truncate])
    try writer.write("lost", at: 0)
    try fixture.remove("defaults/s/k")
    try fixture.write("defaults/s/k", "kept")
    try writer.finish()
    #expect(try fixture.stored("k") == .string("kept"))
  }

  @Test func unlinkedFileDoesNotTakeItsSuccessorAway() throws {
    let fixture = TreeFixture([:])
    let first = try fixture.create("defaults/s/k")
    try fixture.remove("defaults/s/k")
    let second = try fixture.create("defaults/s/k")
    try second.write("kept", at: 0)
    #expect(!first.close())
    #expect(fixture.exists("defaults/s/k"))
    try second.finish()
    #expect(try fixture.stored("k") == .string("kept"))
  }

  @Test func uncommittedFileCanBeDeleted() throws {
    let fixture = TreeFixture([:])
    let handle = try fixture.create("defaults/s/k")
    try handle.write("x", at: 0)
    try fixture.remove("defaults/s/k")
    try handle.finish()
    #expect(try fixture.stored("k") == nil && fixture.list("defaults/s") == [])
  }
}
