import Glibc
import Layers
import Model
import Store
import StoreConformance
import Testing
import Tree

/// SPECIFICATION.md, section 7, through the tree.
@Suite struct TreeAttributesTests {
  @Test func keysHaveTheirNameAndTypeOnly() throws {
    let fixture = TreeFixture(["a/b": .real(1)])
    let path = "defaults/s/a%2Fb"
    #expect(try fixture.tree.attributeNames(of: fixture.node(path)) == ["user.keyhole.type"])
    #expect(try fixture.attribute("user.keyhole.name", path) == "a/b")
    #expect(try fixture.attribute("user.keyhole.type", path) == "real")
    try fixture.setAttribute("user.keyhole.name", "a/b", path)
    #expect(errorNumber { try fixture.setAttribute("user.keyhole.name", "b", path) } == EPERM)
    try fixture.removeAttribute("user.keyhole.type", path)
    try fixture.removeAttribute("user.keyhole.name", path)
    #expect(try fixture.stored("a/b") == .real(1))
  }

  @Test func keysOfLayersHaveTheirOrigin() throws {
    let layers = ["fleet", "host"].map { SettingLayer($0, of: MemorySuites()) }
    (layers[0].engine as? MemorySuites)?.replace("s", with: ["low": .real(1), "both": .real(1)])
    (layers[1].engine as? MemorySuites)?.replace("s", with: ["both": .real(2)])
    let tree = FileTree(
      settings: SettingsStore(engine: try LayeredSuites(layers, writing: "host")), keychain: nil)
    func node(_ key: String) throws -> Node {
      try ["defaults", "s", key].reduce(tree.root) { try tree.child(of: $0, named: $1.utf8) }
    }
    let name = "user.keyhole.origin"
    #expect(try tree.attribute(name, of: node("low")) == Array("fleet".utf8))
    #expect(try tree.attribute(name, of: node("both")) == Array("host".utf8))
    #expect(try tree.attributeNames(of: node("both")) == ["user.keyhole.type"])
    #expect(tree.computedAttributeNames(of: try node("both")) == [name])
    let (caller, both) = (Caller.current, try node("both"))
    try tree.setAttribute(name, to: Array("host".utf8), of: both, if: .always, by: caller)
    #expect(
      errorNumber {
        try tree.setAttribute(name, to: Array("fleet".utf8), of: both, if: .always, by: caller)
      } == EPERM)
    try tree.removeAttribute(name, of: both)
  }

  @Test(arguments: [
    "user.comment", "user.keyhole.label", "user.keyhole.unknown", "user.keyhole.origin",
    "system.posix_acl_access",
    "security.capability", "trusted.x", "user",
  ])
  func keysRefuseEveryOtherName(name: String) throws {
    let fixture = TreeFixture(["k": .real(1)])
    #expect(errorNumber { _ = try fixture.attribute(name, "defaults/s/k") } == EOPNOTSUPP)
    #expect(errorNumber { try fixture.setAttribute(name, "x", "defaults/s/k") } == EOPNOTSUPP)
    #expect(errorNumber { try fixture.removeAttribute(name, "defaults/s/k") } == EOPNOTSUPP)
  }

  @Test(arguments: [
    (SettingValue.string("12"), "integer", SettingValue.integer(12)), (.integer(12), "string", .string("12")),
    (.integer(1), "bool", .bool(true)), (.bool(true), "string", .string("true")),
    (.integer(3), "real", .real(3)), (.string("[1]"), "array", .array([.integer(1)])),
    (.string("x"), "data", .data(Array("x\n".utf8))), (.data(Array("1.5".utf8)), "real", .real(1.5)),
    (.string("2026-11-21T07:53:00Z"), "date", .date(1_795_247_580)), (.data([]), "string", .string("")),
  ])
  func typeConvertsTheContentShown(old: SettingValue, type: String, new: SettingValue) throws {
    let fixture = TreeFixture(["k": old])
    try fixture.setAttribute("user.keyhole.type", type, "defaults/s/k")
    #expect(try fixture.stored("k") == new)
    #expect(try fixture.attribute("user.keyhole.type", "defaults/s/k") == type)
  }

  @Test(arguments: [
    (SettingValue.string("x"), "integer"), (.real(1.5), "integer"), (.integer(2), "bool"),
    (.dictionary([:]), "array"), (.data([0xFF]), "string"), (.string("x"), "text"), (.string("x"), ""),
  ])
  func typeThatTheContentHasNotIsRefused(value: SettingValue, type: String) throws {
    let fixture = TreeFixture(["k": value])
    #expect(errorNumber { try fixture.setAttribute("user.keyhole.type", type, "defaults/s/k") } == EINVAL)
    #expect(try fixture.stored("k") == value)
  }

  @Test func typeOfAnEmptyKeyWaitsForItsFirstContent() throws {
    let fixture = TreeFixture(["k": .data([])])
    try fixture.setAttribute("user.keyhole.type", "real", "defaults/s/k")
    #expect(try fixture.stored("k") == .data([]))
    #expect(try fixture.attribute("user.keyhole.type", "defaults/s/k") == "real")
    try fixture.write("defaults/s/k", "1")
    #expect(try fixture.stored("k") == .real(1))
  }

  @Test func conditionsAreObeyed() throws {
    let fixture = TreeFixture(["k": .string("1")])
    try fixture.makeItem("keychain/generic/S/A")
    for (name, value, path) in [
      ("user.keyhole.type", "integer", "defaults/s/k"), ("user.service", "S", "keychain/generic/S/A"),
    ] {
      #expect(errorNumber { try fixture.setAttribute(name, value, path, if: .mustBeMissing) } == EEXIST)
      try fixture.setAttribute(name, value, path, if: .mustExist)
    }
    let item = "keychain/generic/S/A"
    #expect(errorNumber { try fixture.setAttribute("user.x", "1", item, if: .mustExist) } == ENODATA)
    try fixture.setAttribute("user.x", "1", item, if: .mustBeMissing)
    #expect(errorNumber { try fixture.setAttribute("user.x", "2", item, if: .mustBeMissing) } == EEXIST)
    #expect(try fixture.attribute("user.x", item) == "1")
  }

  @Test func itemAndItsValueHaveTheSameAttributes() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/internet/h/p;port=22")
    let paths = ["keychain/internet/h/p;port=22", "keychain/internet/h/p;port=22/value"]
    for (index, path) in paths.enumerated() { try fixture.setAttribute("user.x\(index)", "1", path) }
    let names = try paths.map { try fixture.tree.attributeNames(of: fixture.node($0)) }
    #expect(names[0] == names[1])
    #expect(
      names[0] == [
        "user.account", "user.keyhole.created", "user.keyhole.label", "user.keyhole.modified", "user.port",
        "user.server", "user.x0", "user.x1",
      ])
    #expect(try fixture.attribute("user.port", paths[1]) == "22")
  }

  @Test func valuesOfTheStoreAreTextsAndValuesThatWereSetAreBytes() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    try fixture.makeItem("keychain/generic/S/A")
    try fixture.setAttribute("user.generic", "\u{0}x", "keychain/generic/S/A")
    func isText(_ name: String, _ path: String) throws -> Bool {
      let value = try fixture.tree.attributeValue(name, of: fixture.node(path))
      #expect(try value.array == fixture.tree.attribute(name, of: fixture.node(path)))
      if case .text = value { return true }
      return false
    }
    for name in ["user.service", "user.account", "user.keyhole.label", "user.keyhole.created"] {
      #expect(try isText(name, "keychain/generic/S/A/value"))
    }
    #expect(try isText("user.keyhole.type", "defaults/s/k"))
    #expect(try isText("user.keyhole.name", "defaults/s"))
    #expect(try !isText("user.generic", "keychain/generic/S/A"))
  }

  /// By bytes: a combining mark after the point makes one character with it.
  @Test func nameOfAnAttributeBeginsWithTheBytesOfItsNamespace() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A")
    let name = "user.\u{301}x"
    try fixture.setAttribute(name, "1", "keychain/generic/S/A")
    #expect(try fixture.attribute(name, "keychain/generic/S/A") == "1")
    #expect(errorNumber { _ = try fixture.attribute("user", "keychain/generic/S/A") } == EOPNOTSUPP)
  }

  @Test func identityIsChangedByMovingOnly() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A")
    let path = "keychain/generic/S/A"
    try fixture.setAttribute("user.service", "S", path)
    #expect(errorNumber { try fixture.setAttribute("user.service", "T", path) } == EPERM)
    try fixture.removeAttribute("user.service", path)
    try fixture.removeAttribute("user.keyhole.modified", path)
    #expect(errorNumber { try fixture.removeAttribute("user.none", path) } == ENODATA)
    #expect(errorNumber { try fixture.setAttribute("user.isInvisible", "x", path) } == EINVAL)
    #expect(errorNumber { try fixture.setAttribute("user.keyhole.nothing", "x", path) } == EOPNOTSUPP)
    #expect(errorNumber { try fixture.setAttribute("user.", "x", path) } == EINVAL)
    #expect(try fixture.onlyItem()?.identity == .generic(service: "S", account: "A"))
  }

  @Test func removalThatChangesNothingIsNoWrite() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A")
    fixture.items.fail(with: .noSpace)
    try fixture.removeAttribute("user.service", "keychain/generic/S/A")
    #expect(errorNumber { try fixture.setAttribute("user.x", "1", "keychain/generic/S/A") } == ENOSPC)
  }

  @Test func stagedItemTakesEveryAttributeAndKeepsTheValidOnes() throws {
    let fixture = TreeFixture()
    let path = "keychain/generic/S/A"
    try fixture.makeDirectories(path)
    for (name, value) in [
      ("user.comment", "mine"), ("user.service", "T"), ("user.isNegative", "maybe"),
      ("user.keyhole.unknown", "x"), ("user.keyhole.created", "2020-01-01T00:00:00Z"),
    ] {
      try fixture.setAttribute(name, value, path)
      #expect(try fixture.attribute(name, path) == value)
      #expect(try fixture.tree.attributeNames(of: fixture.node(path)).contains(name))
    }
    #expect(errorNumber { try fixture.setAttribute("security.x", "x", path) } == EOPNOTSUPP)
    try fixture.write(path + "/value", "secret")
    let item = try #require(try fixture.onlyItem())
    #expect(item.identity == .generic(service: "S", account: "A"))
    #expect(item.attributes == ["comment": Array("mine".utf8)])
    #expect(item.created.iso8601 == "2020-01-01T00:00:00Z")
  }

  @Test func scratchGivesItsAttributesToTheItem() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A", "old")
    try fixture.write("keychain/generic/S/A/.new", "new\n")
    for (name, value) in [
      ("user.comment", "mine"), ("user.service", "T"), ("user.keyhole.eol", "exact"), ("user.type", "x"),
    ] {
      try fixture.setAttribute(name, value, "keychain/generic/S/A/.new")
    }
    try fixture.rename("keychain/generic/S/A/.new", "keychain/generic/S/A/value")
    let item = try #require(try fixture.onlyItem())
    #expect(item.identity == .generic(service: "S", account: "A") && item.keepsLineEnd)
    #expect(item.attributes == ["comment": Array("mine".utf8)])
    #expect(try fixture.read("keychain/generic/S/A/value") == "new\n")
  }

  @Test(arguments: ["biometryCurrentSet", "biometryCurrentSet|applicationPassword"])
  func flagsThatNothingWouldHoldAreRefused(flags: String) throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A", "old")
    try fixture.makeDirectories("keychain/generic/S/staged")
    for path in ["keychain/generic/S/A", "keychain/generic/S/staged"] {
      #expect(errorNumber { try fixture.setAttribute("user.keyhole.access", flags, path) } == EOPNOTSUPP)
    }
  }

  @Test func guardedIsWhatASecretMayBeRefusedFor() throws {
    let fixture = TreeFixture()
    let name = "user.keyhole.guarded"
    var flagged = KeychainSamples.generic("S", "flagged")
    flagged.access = [.userPresence]
    try fixture.items.add(flagged, "x")
    try fixture.makeItem("keychain/generic/S/plain", "x")
    try fixture.makeItem("keychain/generic/S/ruled", "x")
    try fixture.setAttribute("user.keyhole.programs", "allow *", "keychain/generic/S/ruled")
    func isGuarded(_ account: String) throws -> String {
      let item = "keychain/generic/S/\(account)"
      let value = try fixture.attribute(name, item)
      #expect(try fixture.attribute(name, item + "/value") == value)
      return value
    }
    #expect(try isGuarded("plain") == "false")
    #expect(try isGuarded("ruled") == "true")
    #expect(try isGuarded("flagged") == "true")
    let plain = "keychain/generic/S/plain"
    #expect(try !fixture.tree.attributeNames(of: fixture.node(plain)).contains(name))
    // A copy sets what it has read.
    try fixture.setAttribute(name, "true", plain)
    try fixture.removeAttribute(name, plain)
    #expect(errorNumber { try fixture.setAttribute(name, "no", plain) } == EPERM)
    #expect(try isGuarded("plain") == "false")
  }

  @Test func secretBelowRulesOrALockIsGuarded() throws {
    let (name, value) = ("user.keyhole.guarded", "keychain/generic/S/A/value")
    let (ruled, locked) = (TreeFixture(), TreeFixture())
    for fixture in [ruled, locked] {
      try fixture.makeItem("keychain/generic/S/A", "x")
      #expect(try fixture.attribute(name, value) == "false")
    }
    try ruled.setAttribute("user.keyhole.programs", "allow *", "keychain/generic/S")
    #expect(try ruled.attribute(name, value) == "true")
    try locked.tree.lock()
    #expect(try locked.attribute(name, value) == "true")
  }

  @Test func itemWithAccessFlagsIsNotOpenedButDeleted() throws {
    let fixture = TreeFixture()
    var item = KeychainSamples.generic("S", "A")
    item.access = [.userPresence]
    try fixture.items.add(item, "secret")
    let path = "keychain/generic/S/A"
    #expect(try fixture.status(path + "/value").size == 6)
    #expect(try fixture.attribute("user.keyhole.access", path) == "userPresence")
    for mode: OpenMode in [.read, .write, [.write, .truncate]] {
      #expect(errorNumber { _ = try fixture.open(path + "/value", mode) } == EACCES)
    }
    try fixture.write(path + "/.x", "new")
    #expect(errorNumber { try fixture.rename(path + "/.x", path + "/value") } == EACCES)
    for name in ["access", "programs", "accessible"] {
      let weaker = ["access": "devicePasscode", "programs": "allow *"][name] ?? "afterFirstUnlock"
      #expect(errorNumber { try fixture.setAttribute("user.keyhole." + name, weaker, path) } == EACCES)
    }
    #expect(errorNumber { try fixture.removeAttribute("user.keyhole.access", path) } == EACCES)
    try fixture.setAttribute("user.x", "1", path)
    try fixture.remove(path + "/value")
    #expect(try fixture.items.items().isEmpty)
  }

  @Test func directoriesHaveTheirNameOnly() throws {
    let fixture = TreeFixture([:])
    try fixture.makeItem("keychain/generic/S/A")
    for (path, name) in [("defaults/s", "s"), ("keychain/generic/S", "S")] {
      #expect(try fixture.attribute("user.keyhole.name", path) == name)
      #expect(errorNumber { _ = try fixture.attribute("user.x", path) } == EOPNOTSUPP)
      #expect(errorNumber { try fixture.setAttribute("user.keyhole.name", "x", path) } == EPERM)
      #expect(errorNumber { try fixture.setAttribute("user.comment", "x", path) } == EOPNOTSUPP)
    }
    for path in ["", "defaults", "keychain", "keychain/generic", ".keyhole", ".keyhole/status"] {
      #expect(errorNumber { _ = try fixture.attribute("user.x", path) } == EOPNOTSUPP)
      #expect(errorNumber { try fixture.setAttribute("user.comment", "x", path) } == EOPNOTSUPP)
      #expect(try fixture.tree.attributeNames(of: fixture.node(path)) == [])
    }
  }
}
