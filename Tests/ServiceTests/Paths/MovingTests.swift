import InMemory
import Model
import Store
import Testing
import Tree

@testable import Service

/// `keyhole mv` and `keyhole cp`.
@Suite struct MovingTests {
  private func move(_ source: String, _ target: String, _ fixture: SessionFixture) throws -> TreeMove {
    try TreeMove(TreePath(source), to: TreePath(target), in: fixture.session)
  }

  private func attribute(_ name: String, _ path: String, _ fixture: SessionFixture) throws -> String {
    let node = try fixture.session.node(at: TreePath(path))
    return String(decoding: try fixture.session.tree.attribute("user." + name, of: node), as: UTF8.self)
  }

  private func set(_ name: String, _ value: String, _ path: String, _ fixture: SessionFixture) throws {
    let tree = fixture.session.tree
    let (node, bytes) = (try fixture.session.node(at: TreePath(path)), Array(value.utf8))
    let permit = try tree.permission(toSet: "user." + name, to: bytes, of: node, by: .current)?.fetch()
    try tree.setAttribute("user." + name, to: bytes, of: node, if: .always, by: .current, permit)
  }

  @Test func keyIsMovedAndCopiedWithItsType() throws {
    let fixture = try SessionFixture()
    try fixture.write("defaults/a/k", "007")
    #expect(try attribute("keyhole.type", "defaults/a/k", fixture) == "string")
    try move("defaults/a/k", "defaults/b/l", fixture).copy()
    try move("defaults/a/k", "defaults/c/k", fixture).move()
    #expect(try !fixture.exists("defaults/a/k"))
    for path in ["defaults/b/l", "defaults/c/k"] {
      #expect(try fixture.read(path) == "007\n" && attribute("keyhole.type", path, fixture) == "string")
    }
  }

  @Test func folderThatIsThereIsMovedInto() throws {
    let fixture = try SessionFixture()
    try fixture.write("defaults/a/k", "1")
    try fixture.write("defaults/b/l", "2")
    try move("defaults/a/k", "defaults/b", fixture).move()
    #expect(try fixture.read("defaults/b/k") == "1\n")
  }

  @Test func nothingIsReplaced() throws {
    let fixture = try SessionFixture()
    try fixture.write("defaults/a/k", "1")
    try fixture.write("defaults/a/l", "2")
    for _ in 0..<2 { #expect(reason { try move("defaults/a/k", "defaults/a/l", fixture).move() } != nil) }
    #expect(try fixture.read("defaults/a/k") == "1\n" && fixture.read("defaults/a/l") == "2\n")
  }

  @Test func itemIsCopiedWithWhatProtectsIt() throws {
    let fixture = try SessionFixture()
    let (old, new) = ("keychain/generic/s/a", "keychain/generic/t/b")
    try fixture.write(old + "/value", "line\n\n")
    try fixture.write(old + "/otpauth", "otpauth://totp/a?secret=GEZDGNBVGY3TQOJQ")
    try set("comment", "note", old, fixture)
    try set("keyhole.accessible", "whenUnlockedThisDeviceOnly", old, fixture)
    try move(old + "/value", new, fixture).copy()
    #expect(try fixture.read(new + "/value") == "line\n\n")
    #expect(try fixture.read(new + "/otpauth").contains("GEZDGNBVGY3TQOJQ"))
    #expect(try attribute("comment", new, fixture) == "note")
    #expect(try attribute("keyhole.accessible", new, fixture) == "whenUnlockedThisDeviceOnly")
    // The default label is the service, also of the copy.
    #expect(try attribute("keyhole.label", new, fixture) == "t" && attribute("account", new, fixture) == "b")
    #expect(try fixture.exists(old + "/value") && fixture.keychain.items().count == 2)
  }

  @Test func itemIsMoved() throws {
    let fixture = try SessionFixture()
    try fixture.write("keychain/generic/s/a/value", "1")
    try move("keychain/generic/s/a", "keychain/generic/t/b", fixture).move()
    #expect(try fixture.read("keychain/generic/t/b/value") == "1")
    #expect(try fixture.keychain.items().count == 1)
  }

  /// The rules of a folder hold for the items in it: elsewhere they would be without.
  @Test func itemDoesNotLeaveItsRules() throws {
    let fixture = try SessionFixture()
    try fixture.write("keychain/generic/s/a/value", "1")
    try set("keyhole.programs", "deny *", "keychain/generic/s", fixture)
    for target in ["keychain/generic/t/a", "keychain/generic/t"] {
      let source = target == "keychain/generic/t" ? "keychain/generic/s" : "keychain/generic/s/a"
      #expect(reason { try move(source, target, fixture).move() }?.contains("no longer hold") == true)
      #expect(reason { try move(source, target, fixture).copy() }?.contains("no longer hold") == true)
    }
    #expect(try fixture.keychain.items().count { $0.identity.itemClass == .generic } >= 1)
    #expect(try fixture.exists("keychain/generic/s/a/value"))
  }

  @Test(arguments: [
    ("defaults/a/k", "keychain/generic/s/b", "not encrypted"),
    ("keychain/generic/s/a", "defaults/a/x", "unencrypted"),
    ("keychain/generic/s/a", "keychain/internet/s/a", "one class"),
    ("defaults/a/k", "defaults/x/y/z", "can't stand there"),
    ("defaults", "defaults/x", "a part of the tree"),
    ("keychain/generic/s/x", "keychain/generic/s/y", "no such file"),
  ])
  func otherMovesAreRefused(source: String, target: String, reason expected: String) throws {
    let fixture = try SessionFixture()
    try fixture.write("defaults/a/k", "1")
    try fixture.write("keychain/generic/s/a/value", "1")
    for run in [{ try $0.move() }, { try $0.copy() }] as [(TreeMove) throws -> Void] {
      let said = reason { try run(move(source, target, fixture)) }
      #expect(said?.contains(expected) == true, "\(said ?? "nothing")")
    }
  }
}
