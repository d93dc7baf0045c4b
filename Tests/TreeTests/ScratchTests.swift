import Glibc
import Model
import Store
import StoreConformance
import Testing
import Tree

@Suite struct ScratchTests {
  @Test(arguments: [
    ".k.swp", ".k.swo", "#k#", "k~", "k.swp", "k___jb_tmp___", "k___jb_old___", "sedAb3xY9", "4913", "5036",
    "5159", ".#k", "..", ".goutputstream-AB12CD",
  ])
  func scratchOfASuiteIsNeverStored(name: String) throws {
    let fixture = TreeFixture([:])
    try fixture.write("defaults/s/\(name)", "text")
    #expect(try fixture.read("defaults/s/\(name)") == "text" && fixture.list("defaults/s") == [name])
    #expect(try fixture.node("defaults/s/\(name)").isScratch)
    #expect(try fixture.suites.read("s")?.settings.isEmpty == true)
    try fixture.remove("defaults/s/\(name)")
    #expect(try fixture.list("defaults/s") == [])
  }

  @Test(arguments: [
    "x.bak", "x.tmp", "#x", "x#", "#", "sedabc", "sedabcdefg", "sed-12345", "4912", "4914", "04913", "swp",
    "%2Ex", "k.swpx",
  ])
  func otherNamesAreKeys(name: String) throws {
    let fixture = TreeFixture([:])
    try fixture.write("defaults/s/\(name)", "text")
    #expect(try !fixture.node("defaults/s/\(name)").isScratch)
    #expect(try fixture.suites.read("s")?.settings.count == 1)
  }

  @Test(arguments: ["x", "notes.txt", ".value.swp", "value~", "4914", "%2f", "a%", "é"])
  func everyOtherFileOfAnItemIsScratch(name: String) throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A")
    try fixture.write("keychain/generic/S/A/\(name)", "text\n")
    #expect(try fixture.read("keychain/generic/S/A/\(name)") == "text\n")
    #expect(try fixture.node("keychain/generic/S/A/\(name)").isSecret)
    #expect(try fixture.items.items().count == 1 && fixture.list("keychain/generic/S/A").count == 2)
  }

  @Test func storedKeyOfAScratchNameStaysAKey() throws {
    let fixture = TreeFixture(["x~": .integer(1), "4913": .integer(2)])
    try fixture.write("defaults/s/x~", "3\n")
    try fixture.write("defaults/s/4913", "4\n")
    #expect(try fixture.stored("x~") == .integer(3) && fixture.stored("4913") == .integer(4))
    fixture.suites.replace("s", with: ["x~": .integer(1), "k": .integer(9)])
    try fixture.rename("defaults/s/k", "defaults/s/x~")
    #expect(try fixture.stored("x~") == .integer(9) && fixture.list("defaults/s") == ["x~"])
  }

  @Test func linksAreScratchOnly() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    try fixture.makeLink("defaults/s/.#k", to: "me@host.1")
    #expect(try fixture.tree.linkTarget(of: fixture.node("defaults/s/.#k")) == Array("me@host.1".utf8))
    #expect(try fixture.status("defaults/s/.#k").kind == .symbolicLink)
    #expect(try fixture.status("defaults/s/.#k").size == 9)
    #expect(errorNumber { try fixture.makeLink("defaults/s/.#k", to: "x") } == EEXIST)
    #expect(errorNumber { try fixture.makeLink("defaults/s/l", to: "x") } == EPERM)
    #expect(errorNumber { try fixture.rename("defaults/s/.#k", "defaults/s/k") } == EPERM)
    #expect(errorNumber { _ = try fixture.tree.linkTarget(of: fixture.node("defaults/s/k")) } == EINVAL)
    try fixture.remove("defaults/s/.#k")
    #expect(try fixture.stored("k") == .integer(1) && fixture.list("defaults/s") == ["k"])
  }

  @Test func writersOfScratchShareIt() throws {
    let fixture = TreeFixture([:])
    let (one, two) = (try fixture.create("defaults/s/.x"), try fixture.create("defaults/s/.x", .write))
    try one.write("one", at: 0)
    #expect(try two.text() == "one" && fixture.status("defaults/s/.x", for: .other).size == 3)
    try two.write("two", at: nil)
    try one.truncate(to: 5, by: .current)
    #expect(try fixture.read("defaults/s/.x") == "onetw")
    try one.finish()
    try two.finish()
    #expect(try fixture.read("defaults/s/.x") == "onetw")
  }

  @Test func unlinkedScratchStaysOpen() throws {
    let fixture = TreeFixture([:])
    let handle = try fixture.create("defaults/s/.x")
    try handle.write("text", at: 0)
    try fixture.remove("defaults/s/.x")
    #expect(try handle.text() == "text")
    try handle.finish()
    #expect(try fixture.list("defaults/s") == [])
  }

  @Test func secretScratchHasFourMebibytesInAll() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A")
    let handle = try fixture.create("keychain/generic/S/A/x")
    try handle.truncate(to: 3 << 20, by: .current)
    let second = try fixture.create("keychain/generic/S/A/y")
    try second.truncate(to: 1 << 20, by: .current)
    #expect(errorNumber { try second.write("x", at: nil) } == ENOSPC)
    #expect(errorNumber { _ = try handle.truncate(to: (3 << 20) + 1, by: .current) } == ENOSPC)
    try handle.truncate(to: 0, by: .current)
    try second.write("x", at: nil)
    handle.close()
    second.close()
    try fixture.create("keychain/generic/S/A/y").close()
    try fixture.remove("keychain/generic/S/A/y")
    let third = try fixture.create("keychain/generic/S/A/z")
    try third.truncate(to: 4 << 20, by: .current)
    third.close()
  }

  @Test func scratchOfSuitesHas64MebibytesInAll() throws {
    let fixture = TreeFixture([:])
    let handle = try fixture.create("defaults/s/.x")
    let part = String(repeating: "x", count: 16 << 20)
    for _ in 0..<4 { try handle.write(part, at: nil) }
    #expect(errorNumber { try handle.write("x", at: nil) } == ENOSPC)
    #expect(errorNumber { _ = try fixture.create("defaults/s/.y") } == nil)
  }

  @Test func scratchOpenedBeforeItBecameAValueIsStoredByItsFlush() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let handle = try fixture.create("defaults/s/.x")
    try handle.write("new", at: 0)
    try fixture.rename("defaults/s/.x", "defaults/s/k")
    #expect(try fixture.stored("k") == .string("new"))
    try handle.write("er", at: nil)
    try handle.flush(by: .current)
    #expect(try fixture.stored("k") == .string("newer"))
    try handle.truncate(to: 1, by: .current)
    try handle.finish()
    #expect(try fixture.stored("k") == .string("n"))
  }

  @Test func scratchTakesEveryAttributeOfTheUser() throws {
    let fixture = TreeFixture([:])
    try fixture.write("defaults/s/.x", "text")
    try fixture.setAttribute("user.anything", "1", "defaults/s/.x", if: .mustBeMissing)
    try fixture.setAttribute("user.keyhole.type", "data", "defaults/s/.x")
    #expect(
      try fixture.tree.attributeNames(of: fixture.node("defaults/s/.x"))
        == ["user.anything", "user.keyhole.type"])
    #expect(errorNumber { try fixture.setAttribute("security.x", "1", "defaults/s/.x") } == EOPNOTSUPP)
    try fixture.removeAttribute("user.anything", "defaults/s/.x")
    #expect(errorNumber { try fixture.removeAttribute("user.anything", "defaults/s/.x") } == ENODATA)
    try fixture.rename("defaults/s/.x", "defaults/s/k")
    #expect(try fixture.stored("k") == .data(Array("text".utf8)))
  }
}
