import Glibc
import Model
import Store
import StoreConformance
import Testing
import Tree

/// The ways in which programs save: SPECIFICATION.md, section 6.
@Suite struct TreeSavingTests {
  @Test func scratchRenamedOverAKeyKeepsItsType() throws {
    let fixture = TreeFixture(["k": .string("1")])
    try fixture.write("defaults/s/sedAb3xY9", "2\n")
    try fixture.rename("defaults/s/sedAb3xY9", "defaults/s/k")
    #expect(try fixture.stored("k") == .string("2") && fixture.list("defaults/s") == ["k"])
  }

  @Test func scratchThatIsNoValueOfTheKeyIsRefusedAndBothStay() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    try fixture.write("defaults/s/.k.swp", "text")
    #expect(errorNumber { try fixture.rename("defaults/s/.k.swp", "defaults/s/k") } == EINVAL)
    #expect(try fixture.stored("k") == .integer(1) && fixture.read("defaults/s/.k.swp") == "text")
  }

  @Test func scratchRenamedToANewNameBecomesAKey() throws {
    let fixture = TreeFixture([:])
    try fixture.write("defaults/s/.k", "3.5\n")
    try fixture.setAttribute("user.keyhole.type", "string", "defaults/s/.k")
    try fixture.rename("defaults/s/.k", "defaults/s/k")
    #expect(try fixture.stored("k") == .string("3.5"))
    try fixture.write("defaults/s/.l", "3.5\n")
    try fixture.rename("defaults/s/.l", "defaults/s/l")
    #expect(try fixture.stored("l") == .real(3.5))
  }

  @Test func scratchGivesTheTimeThatWasSetOnIt() throws {
    let fixture = TreeFixture(["k": .string("1")])
    let time = Timestamp(seconds: 1_000_000_000, nanoseconds: 7)
    try fixture.write("defaults/s/.k", "2")
    try fixture.tree.setModified(time, of: fixture.node("defaults/s/.k"))
    try fixture.rename("defaults/s/.k", "defaults/s/k")
    #expect(try fixture.status("defaults/s/k").modified == time)
    try fixture.write("defaults/s/.k", "3")
    try fixture.tree.setModified(time, of: fixture.node("defaults/s/.k"))
    try fixture.append("defaults/s/.k", "4")
    try fixture.rename("defaults/s/.k", "defaults/s/k")
    #expect(try fixture.status("defaults/s/k").modified != time && fixture.stored("k") == .string("34"))
  }

  @Test func exclusiveCreatorThatRenamesOverAKeySavesIt() throws {
    let fixture = TreeFixture(["k": .string("1")])
    let handle = try fixture.create("defaults/s/XyZ123", exclusive: true)
    try handle.write("2\n", at: 0)
    try handle.finish()
    #expect(try fixture.stored("XyZ123") == .integer(2))
    try fixture.rename("defaults/s/XyZ123", "defaults/s/k")
    #expect(try fixture.stored("k") == .string("2") && fixture.stored("XyZ123") == nil)
  }

  @Test func anotherProcessThatRenamesOverAKeyReplacesItWhole() throws {
    let fixture = TreeFixture(["k": .string("1")])
    let handle = try fixture.create("defaults/s/XyZ123", exclusive: true)
    try handle.write("2\n", at: 0)
    try handle.finish()
    try fixture.rename("defaults/s/XyZ123", "defaults/s/k", by: .other)
    #expect(try fixture.stored("k") == .integer(2))
  }

  @Test func valueSetAsideIsHiddenHereAndStoredForOthers() throws {
    let fixture = TreeFixture(["k": .string("old")])
    try fixture.rename("defaults/s/k", "defaults/s/k~")
    #expect(try fixture.list("defaults/s") == ["k~"] && !fixture.exists("defaults/s/k"))
    #expect(try fixture.read("defaults/s/k~") == "old\n")
    #expect(try fixture.stored("k") == .string("old"))
    try fixture.write("defaults/s/k", "7\n")
    #expect(try fixture.stored("k") == .string("7"))
    #expect(try fixture.list("defaults/s") == ["k", "k~"])
    try fixture.remove("defaults/s/k~")
    #expect(try fixture.stored("k") == .string("7"))
  }

  @Test func valueSetAsideIsRestoredAsItWas() throws {
    let fixture = TreeFixture(["k": .string("7")])
    let before = try fixture.suites.stamp(of: "s")
    try fixture.rename("defaults/s/k", "defaults/s/k~")
    try fixture.rename("defaults/s/k~", "defaults/s/k")
    #expect(try fixture.stored("k") == .string("7") && fixture.list("defaults/s") == ["k"])
    #expect(try fixture.suites.stamp(of: "s") == before)
  }

  @Test func deletingWhatWasSetAsideDeletesTheValue() throws {
    let fixture = TreeFixture(["k": .string("old")])
    try fixture.rename("defaults/s/k", "defaults/s/k~")
    try fixture.remove("defaults/s/k~")
    #expect(try fixture.stored("k") == nil && fixture.list("defaults/s") == [])
  }

  @Test func valueSetAsideCanGetAnotherName() throws {
    let fixture = TreeFixture(["k": .string("7")])
    try fixture.rename("defaults/s/k", "defaults/s/k~")
    try fixture.rename("defaults/s/k~", "defaults/s/.k")
    #expect(try fixture.stored("k") == .string("7") && !fixture.exists("defaults/s/k"))
    try fixture.rename("defaults/s/.k", "defaults/s/l")
    #expect(try fixture.stored("k") == nil && fixture.stored("l") != nil)
  }

  @Test func anotherKeyMayTakeThePlaceOfOneSetAside() throws {
    let fixture = TreeFixture(["k": .string("old"), "l": .integer(1)])
    try fixture.rename("defaults/s/k", "defaults/s/k~")
    try fixture.rename("defaults/s/l", "defaults/s/k")
    #expect(try fixture.read("defaults/s/k") == "1\n" && fixture.list("defaults/s") == ["k", "k~"])
  }

  @Test func whatIsSetAsideFollowsItsDirectory() throws {
    let fixture = TreeFixture(["k": .string("old")])
    try fixture.rename("defaults/s/k", "defaults/s/k~")
    try fixture.rename("defaults/s", "defaults/t")
    #expect(try fixture.list("defaults/t") == ["k~"])
    try fixture.remove("defaults/t/k~")
    #expect(try fixture.stored("k", in: "t") == nil)
    try fixture.write("defaults/t/k", "new")
    #expect(try fixture.list("defaults/t") == ["k"])
  }

  @Test func failedSaveLeavesWhatWasSetAside() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    try fixture.rename("defaults/s/k", "defaults/s/k~")
    let handle = try fixture.create("defaults/s/k")
    #expect(
      errorNumber {
        try handle.write("text", at: 0); try handle.finish()
      } == EINVAL)
    handle.close()
    #expect(try fixture.stored("k") == .integer(1) && fixture.read("defaults/s/k~") == "1\n")
  }

  @Test func secretSavedByRenameKeepsItsItem() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A", "old")
    try fixture.setAttribute("user.comment", "mine", "keychain/generic/S/A")
    let before = try #require(try fixture.onlyItem())
    try fixture.write("keychain/generic/S/A/anything.tmp", "new\n")
    try fixture.rename("keychain/generic/S/A/anything.tmp", "keychain/generic/S/A/value")
    let after = try #require(try fixture.onlyItem())
    #expect(after.id == before.id && after.created == before.created && after.size == 3)
    #expect(after.attributes == before.attributes)
    #expect(try fixture.list("keychain/generic/S/A") == ["value"])
  }

  @Test func secretSavedByMovingItAwayKeepsItsItem() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A", "old")
    let id = try fixture.onlyItem()?.id
    try fixture.rename("keychain/generic/S/A/value", "keychain/generic/S/A/value~")
    #expect(try fixture.list("keychain/generic/S/A") == ["value~"])
    #expect(try fixture.items.bytes(of: #require(id)) == Array("old".utf8))
    try fixture.write("keychain/generic/S/A/value", "new")
    try fixture.remove("keychain/generic/S/A/value~")
    #expect(try fixture.onlyItem()?.id == id && fixture.read("keychain/generic/S/A/value") == "new")
  }

  @Test func longNamedKeyIsSavedByRename() throws {
    let long = ExactString(String(repeating: "a", count: 300))
    let fixture = TreeFixture([long: .string("1")])
    let cut = try #require(try fixture.list("defaults/s").first)
    try fixture.write("defaults/s/sedAb3xY9", "2\n")
    try fixture.rename("defaults/s/sedAb3xY9", "defaults/s/\(cut)")
    #expect(try fixture.stored(long) == .string("2"))
  }
}
