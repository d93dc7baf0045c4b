import Glibc
import Model
import Store
import StoreConformance
import Testing
import Tree

@Suite struct TreeRenamingTests {
  @Test func keyGetsAnotherNameAndKeepsTypeAndTime() throws {
    let fixture = TreeFixture(["k": .real(1), "other": .bool(true)])
    let time = try fixture.status("defaults/s/k").modified
    try fixture.rename("defaults/s/k", "defaults/s/l")
    #expect(try fixture.stored("k") == nil && fixture.stored("l") == .real(1))
    #expect(try fixture.status("defaults/s/l").modified == time)
  }

  @Test func keyReplacesAnotherWhole() throws {
    let fixture = TreeFixture(["k": .string("text"), "l": .integer(1)])
    let time = try fixture.status("defaults/s/k").modified
    try fixture.rename("defaults/s/k", "defaults/s/l")
    #expect(try fixture.stored("l") == .string("text") && fixture.stored("k") == nil)
    #expect(try fixture.status("defaults/s/l").modified == time)
  }

  @Test func renameWithoutReplacingRefusesWhatIsThere() throws {
    let fixture = TreeFixture(["k": .integer(1), "l": .integer(2)])
    #expect(errorNumber { try fixture.rename("defaults/s/k", "defaults/s/l", replacing: false) } == EEXIST)
    try fixture.rename("defaults/s/k", "defaults/s/m", replacing: false)
    #expect(try fixture.list("defaults/s") == ["l", "m"])
  }

  @Test func keyMovesBetweenSuites() throws {
    let fixture = TreeFixture(["k": .date(0)])
    fixture.suites.replace("t", with: ["k": .integer(1)])
    let time = try fixture.status("defaults/s/k").modified
    try fixture.rename("defaults/s/k", "defaults/t/k")
    #expect(try fixture.stored("k") == nil && fixture.stored("k", in: "t") == .date(0))
    #expect(try fixture.status("defaults/t/k").modified == time)
  }

  @Test func refusedMoveBetweenSuitesLosesNothing() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    fixture.suites.replace("t", with: [:])
    fixture.suites.setReadOnly("t", "for the test")
    #expect(errorNumber { try fixture.rename("defaults/s/k", "defaults/t/k") } == EROFS)
    #expect(try fixture.stored("k") == .integer(1))
    fixture.suites.setReadOnly("t", nil)
    fixture.suites.setReadOnly("s", "for the test")
    #expect(errorNumber { try fixture.rename("defaults/s/k", "defaults/t/k") } == EROFS)
    #expect(try fixture.stored("k") == .integer(1))
  }

  @Test func suiteGetsAnotherName() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    try fixture.write("defaults/s/.scratch", "x")
    try fixture.rename("defaults/s", "defaults/t")
    #expect(try fixture.suites.suites().keys.map(\.string) == ["t"])
    #expect(try fixture.read("defaults/t/k") == "1\n" && fixture.read("defaults/t/.scratch") == "x")
    fixture.suites.replace("full", with: ["x": .bool(true)])
    fixture.suites.replace("empty", with: [:])
    #expect(errorNumber { try fixture.rename("defaults/t", "defaults/full") } == ENOTEMPTY)
    try fixture.rename("defaults/t", "defaults/empty")
    #expect(try fixture.list("defaults") == ["empty", "full"])
    #expect(try fixture.read("defaults/empty/k") == "1\n")
  }

  @Test(arguments: [
    ("defaults/s/k", "keychain/generic/S/A/value", EXDEV),
    ("keychain/generic/S/A/value", "defaults/s/v", EXDEV),
    ("defaults/s", "keychain/generic/s", EXDEV), ("keychain/generic/S", "keychain/internet/S", EXDEV),
    ("keychain/generic/S/A", "keychain/internet/h/A", EXDEV),
    ("keychain/generic/S/A", "keychain/other/A", EXDEV),
    ("keychain/internet/h/p", "keychain/generic/T/p", EXDEV), ("keychain/generic/S/A", "defaults/s/A", EXDEV),
    ("keychain/generic/S/A", "keychain/generic/T/A/x", EPERM),
    ("keychain/generic/T", "keychain/generic/S/B/T", EPERM),
    ("keychain/generic/S/A/value", "keychain/generic/S/B/value", EPERM),
    ("keychain/generic/S/A/.x", "keychain/generic/S/B/.x", EPERM),
    ("defaults/s/k", "defaults/k", EPERM), ("defaults/s", "defaults/t/s", EPERM),
    ("keychain/generic/S/A", "keychain/generic/A", EPERM),
    ("keychain/generic/S", "keychain/generic/T/S", EPERM),
    ("defaults", "x", EPERM), ("keychain/generic", "keychain/x", EPERM),
    ("defaults/s/none", "defaults/s/x", ENOENT), ("defaults/s/k", "defaults/s/%41", EINVAL),
    ("defaults/s", "defaults/%", EINVAL), ("keychain/generic/S/A", "keychain/generic/S/B", ENOTEMPTY),
    ("keychain/generic/S", "keychain/generic/T", ENOTEMPTY),
    ("keychain/internet/h/p", "keychain/internet/h/p;port=x", EINVAL),
  ])
  func moveThatCanNotBeIsRefused(old: String, new: String, number: Int32) throws {
    let fixture = TreeFixture(["k": .integer(1)])
    fixture.suites.replace("t", with: [:])
    for path in ["generic/S/A", "generic/S/B", "generic/T/A", "internet/h/p"] {
      try fixture.makeItem("keychain/\(path)")
    }
    try fixture.write("keychain/generic/S/A/.x", "scratch")
    #expect(errorNumber { try fixture.rename(old, new) } == number)
    #expect(try fixture.stored("k") == .integer(1) && fixture.items.items().count == 4)
  }

  @Test func itemChangesItsServiceAndAccount() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A")
    try fixture.makeDirectories("keychain/generic/T")
    let id = try fixture.onlyItem()?.id
    try fixture.rename("keychain/generic/S/A", "keychain/generic/T/B")
    let item = try #require(try fixture.onlyItem())
    #expect(item.identity == .generic(service: "T", account: "B") && item.id == id)
    #expect(try fixture.read("keychain/generic/T/B/value") == "secret")
    #expect(try fixture.list("keychain/generic") == ["S", "T"] && fixture.list("keychain/generic/S") == [])
  }

  @Test func internetItemChangesEveryPart() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/internet/h/p;protocol=ssh;port=22")
    try fixture.rename("keychain/internet/h/p;protocol=ssh;port=22", "keychain/internet/h/%;path=%2Fx")
    #expect(try fixture.onlyItem()?.identity == .internet(InternetIdentity(server: "h", path: "/x")))
  }

  @Test func folderMovesAllItsItems() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A", "1")
    try fixture.makeItem("keychain/generic/S/B", "2")
    try fixture.makeDirectories("keychain/generic/S/staged")
    try fixture.setAttribute("user.comment", "c", "keychain/generic/S/staged")
    try fixture.rename("keychain/generic/S", "keychain/generic/T")
    #expect(try fixture.list("keychain/generic") == ["T"])
    #expect(try fixture.list("keychain/generic/T") == ["A", "B", "staged"])
    #expect(try fixture.read("keychain/generic/T/B/value") == "2")
    try fixture.write("keychain/generic/T/staged/value", "3")
    let added = try fixture.items.items().first { $0.attributes["comment"] != nil }
    #expect(added?.identity == .generic(service: "T", account: "staged"))
  }

  @Test func renameInOtherChangesTheLabel() throws {
    let fixture = TreeFixture()
    var item = KeychainSamples.generic("")
    item.identity = .other(label: "Some label")
    try fixture.items.add(item, "x")
    #expect(try fixture.list("keychain/other") == ["Some label"])
    try fixture.rename("keychain/other/Some label", "keychain/other/Another")
    #expect(try fixture.onlyItem()?.identity == .other(label: "Another"))
    #expect(try fixture.read("keychain/other/Another/value") == "x")
  }

  @Test func openFileIsStoredUnderItsNewName() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let handle = try fixture.open("defaults/s/k", [.write, .truncate])
    try handle.write("new", at: 0)
    try fixture.rename("defaults/s/k", "defaults/s/l")
    #expect(try fixture.stored("l") == .string("old"))
    try handle.finish()
    #expect(try fixture.stored("l") == .string("new") && fixture.stored("k") == nil)
  }

  @Test func openSecretFollowsItsItem() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A", "old")
    let handle = try fixture.open("keychain/generic/S/A/value", [.write, .truncate])
    try fixture.rename("keychain/generic/S", "keychain/generic/T")
    try handle.write("new", at: 0)
    try handle.finish()
    #expect(try fixture.read("keychain/generic/T/A/value") == "new" && fixture.items.items().count == 1)
  }

  @Test func renamedOverFileDoesNotHideTheNewOne() throws {
    let fixture = TreeFixture(["k": .string("moved")])
    let pending = try fixture.create("defaults/s/l")
    try fixture.rename("defaults/s/k", "defaults/s/l")
    #expect(try fixture.read("defaults/s/l") == "moved\n")
    try pending.write("late", at: 0)
    try pending.finish()
    #expect(try fixture.stored("l") == .string("moved"))
  }

  @Test func uncommittedFileIsStoredByItsRename() throws {
    let fixture = TreeFixture([:])
    let handle = try fixture.create("defaults/s/k.tmp", exclusive: true)
    try handle.write("text\n", at: 0)
    try fixture.rename("defaults/s/k.tmp", "defaults/s/k")
    #expect(try fixture.stored("k") == .string("text") && fixture.list("defaults/s") == ["k"])
    try handle.finish()
    #expect(try fixture.stored("k") == .string("text") && fixture.stored("k.tmp") == nil)
  }

  /// Of two items with one label the second one has a name beside it. Where it is moved, the new name is its label.
  @Test func nameThatAMoveGivesIsTheLabel() throws {
    let fixture = TreeFixture()
    var item = KeychainSamples.generic("")
    (item.identity, item.label) = (.other(label: "twin (2)"), "twin")
    _ = try fixture.items.add(item, "secret")
    #expect(try fixture.onlyItem().map { ServiceItem.label(of: $0) } == "twin")
    try fixture.rename("keychain/other/twin (2)", "keychain/other/mine")
    #expect(try fixture.onlyItem().map { ServiceItem.label(of: $0) } == "mine")
  }
}
