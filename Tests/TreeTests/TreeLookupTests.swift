import Glibc
import Model
import Store
import StoreConformance
import Testing
import Tree

@Suite struct TreeLookupTests {
  @Test func topHasTwoFoldersAndHidesItsControl() throws {
    let fixture = TreeFixture()
    #expect(try fixture.list() == ["defaults", "keychain"])
    #expect(try fixture.list("keychain") == ["generic", "internet", "other"])
    #expect(try fixture.list(".keyhole") == ["events", "history", "status"])
    #expect(try fixture.node(".keyhole/status").isControl)
  }

  @Test func withoutKeychainThereIsNoFolderForIt() throws {
    let tree = FileTree(settings: SettingsStore(engine: MemorySuites()), keychain: nil)
    #expect(try tree.list(tree.root).map(\.name) == ["defaults"])
    #expect(errorNumber { _ = try tree.child(of: tree.root, named: "keychain".utf8) } == ENOENT)
    #expect(try tree.status(of: tree.root, for: .current).links == 3)
  }

  @Test func keysAndSuitesAreListedByTheirPathNames() throws {
    let fixture = TreeFixture(["a/b": .bool(true), "": .bool(true), ".x": .bool(true), "é": .bool(true)])
    fixture.suites.replace("50%", with: [:])
    #expect(try fixture.list("defaults") == ["50%25", "s"])
    #expect(try fixture.list("defaults/s") == ["%", "%2Ex", "a%2Fb", "é"])
    #expect(try fixture.attribute("user.keyhole.name", "defaults/s/a%2Fb") == "a/b")
    #expect(try fixture.attribute("user.keyhole.name", "defaults/50%25") == "50%")
    #expect(!fixture.exists("defaults/s/e\u{301}"))
  }

  @Test(arguments: [
    ("nothing", ENOENT), ("defaults/nothing", ENOENT), ("defaults/s/nothing", ENOENT),
    ("defaults/s/%41", ENOENT), ("defaults/s/a%2f", ENOENT), ("defaults/s/%", ENOENT),
    ("keychain/generic/%2f", ENOENT), ("keychain/internet/h/p;port=x", ENOENT),
    ("keychain/generic/S/nobody", ENOENT), ("keychain/generic/S/A/other", ENOENT),
    ("keychain/other/nothing", ENOENT), (".keyhole/nothing", ENOENT),
    ("defaults/s/k/below", ENOTDIR), ("keychain/generic/S/A/value/below", ENOTDIR),
    (".keyhole/status/below", ENOTDIR),
  ])
  func whatIsNotThereIsRefused(path: String, number: Int32) throws {
    let fixture = TreeFixture(["k": .bool(true)])
    try fixture.makeItem("keychain/generic/S/A")
    try fixture.makeItem("keychain/internet/h/p")
    #expect(errorNumber { _ = try fixture.node(path) } == number)
  }

  @Test(arguments: [
    "", "defaults", "defaults/s", "keychain", "keychain/generic", "keychain/generic/S",
    "keychain/generic/S/A", "keychain/other", ".keyhole",
  ])
  func everyDirectoryRefusesNamesThatCanBeNone(path: String) throws {
    let fixture = TreeFixture(["k": .bool(true)])
    try fixture.makeItem("keychain/generic/S/A")
    let directory = try fixture.node(path)
    let long = [UInt8](repeating: 0x78, count: 256)
    #expect(errorNumber { _ = try fixture.tree.child(of: directory, named: [0xFF]) } == EILSEQ)
    #expect(errorNumber { _ = try fixture.tree.child(of: directory, named: long) } == ENAMETOOLONG)
    let longest = long.dropLast()
    #expect(errorNumber { _ = try fixture.tree.child(of: directory, named: longest) } == ENOENT)
  }

  @Test func longNamesOfTheStoreAppearCut() throws {
    let long = ExactString(String(repeating: "a", count: 300))
    let cut = String(repeating: "a", count: 230) + "%~9835fa6bf4e20a9b"
    let fixture = TreeFixture([long: .string("x")])
    #expect(try fixture.list("defaults/s") == [cut])
    #expect(try fixture.read("defaults/s/\(cut)") == "x\n")
    #expect(try fixture.attribute("user.keyhole.name", "defaults/s/\(cut)") == long.string)
    try fixture.write("defaults/s/\(cut)", "y")
    #expect(try fixture.stored(long) == .string("y"))
    try fixture.rename("defaults/s/\(cut)", "defaults/s/short")
    #expect(try fixture.stored("short") == .string("y"))
  }

  @Test func longItemNamesAppearCutAndCanBeMoved() throws {
    let fixture = TreeFixture()
    let (service, account) = (String(repeating: "s", count: 300), String(repeating: "a", count: 300))
    try fixture.items.add(KeychainSamples.generic(ExactString(service), ExactString(account)), "x")
    let folder = try #require(try fixture.list("keychain/generic").first)
    let leaf = try #require(try fixture.list("keychain/generic/\(folder)").first)
    #expect(folder.utf8.count == 248 && leaf.utf8.count == 248)
    let path = "keychain/generic/\(folder)/\(leaf)"
    #expect(try fixture.read(path + "/value") == "x")
    #expect(try fixture.attribute("user.keyhole.name", path) == account)
    #expect(try fixture.attribute("user.keyhole.name", "keychain/generic/\(folder)") == service)
    try fixture.rename("keychain/generic/\(folder)", "keychain/generic/short")
    #expect(try fixture.read("keychain/generic/short/\(leaf)/value") == "x")
  }

  @Test func numbersAreStableAndSurviveARename() throws {
    let fixture = TreeFixture(["k": .bool(true)])
    let node = try fixture.node("defaults/s/k")
    #expect(try fixture.node("defaults/s/k") === node)
    #expect(fixture.tree.node(node.number) === node && fixture.tree.node(1) === fixture.tree.root)
    try fixture.rename("defaults/s/k", "defaults/s/l")
    try fixture.rename("defaults/s", "defaults/t")
    #expect(try fixture.node("defaults/t/l").number == node.number)
    #expect(node.path == "defaults/t/l")
  }

  @Test func forgottenNumbersOfRemovedFilesAreGone() throws {
    let fixture = TreeFixture(["k": .bool(true), "l": .bool(true)])
    let (removed, kept) = (try fixture.lookUp("defaults/s/k"), try fixture.lookUp("defaults/s/l"))
    try fixture.remove("defaults/s/k")
    #expect(fixture.tree.node(removed.number) === removed)
    #expect(fixture.forget(removed) && fixture.forget(kept))
    #expect(fixture.tree.node(removed.number) == nil && fixture.tree.node(kept.number) == nil)
    #expect(try fixture.node("defaults/s/l").number == kept.number)
  }

  @Test func aNodeGoesWithItsLastLookup() throws {
    let fixture = TreeFixture(["k": .bool(true)])
    let node = try fixture.lookUp("defaults/s/k")
    #expect(try fixture.lookUp("defaults/s/k") === node)
    #expect(!fixture.forget(node) && node.isLookedUp && fixture.tree.node(node.number) === node)
    #expect(fixture.forget(node) && !node.isLookedUp && fixture.tree.node(node.number) == nil)
    // One that was found before counts, whether another one was made meanwhile or not.
    #expect(fixture.tree.countLookup(of: node) === node && fixture.tree.node(node.number) === node)
    #expect(fixture.forget(node))
    let other = try fixture.node("defaults/s/k")
    #expect(other.number == node.number && fixture.tree.countLookup(of: node) === other)
  }

  @Test func aForgottenFileKeepsItsNumberThroughRenames() throws {
    let fixture = TreeFixture(["k": .bool(true), "l": .bool(true)])
    let (suite, key) = (try fixture.lookUp("defaults/s"), try fixture.lookUp("defaults/s/k"))
    let listed = try fixture.numbers("defaults/s")
    #expect(listed["k"] == key.number && fixture.forget(key) && fixture.forget(suite))
    try fixture.rename("defaults/s", "defaults/t")
    #expect(try fixture.numbers("defaults/t") == listed)
    #expect(try fixture.node("defaults/t/k").number == key.number)
    #expect(try fixture.node("defaults/t").number == suite.number)
    // Another file under the name has another number.
    try fixture.remove("defaults/t/l")
    try fixture.write("defaults/t/l", "true")
    #expect(try fixture.node("defaults/t/l").number != listed["l"])
  }

  @Test func aNodeWithTimesOfItsOwnStays() throws {
    let fixture = TreeFixture(["k": .bool(true)])
    let node = try fixture.lookUp("defaults/s/k")
    try fixture.tree.setTimes(accessed: Timestamp(seconds: 5), modified: nil, of: node)
    #expect(fixture.forget(node) && fixture.tree.node(node.number) === node)
    #expect(try fixture.status("defaults/s/k").accessed == Timestamp(seconds: 5))
  }

  @Test func linksCountSubdirectories() throws {
    let fixture = TreeFixture(["k": .string("text")])
    try fixture.makeItem("keychain/generic/S/A")
    try fixture.makeItem("keychain/generic/S/B")
    for (path, links) in [
      ("", 4), ("defaults", 3), ("defaults/s", 2), ("defaults/s/k", 1), ("keychain", 5),
      ("keychain/generic", 3), ("keychain/generic/S", 4), ("keychain/generic/S/A", 2),
      ("keychain/generic/S/A/value", 1), ("keychain/other", 2),
    ] {
      #expect(try fixture.status(path).links == links, "\(path)")
    }
  }

  @Test func sizesAreExact() throws {
    let fixture = TreeFixture(SettingSamples.all.filter { $0.key != "nested" && $0.key != "😀" })
    for name in try fixture.list("defaults/s") {
      let path = "defaults/s/\(name)"
      #expect(try fixture.status(path).size == fixture.read(path).utf8.count || name == "bytes", "\(name)")
    }
    #expect(try fixture.status("defaults/s/bytes").size == 256)
  }
}
