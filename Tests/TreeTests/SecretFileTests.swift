import Glibc
import Model
import Store
import StoreConformance
import Testing
import Tree

/// SPECIFICATION.md, section 4, and what section 5 says of secrets.
@Suite struct SecretFileTests {
  private static let path = "keychain/generic/S/A"

  @Test(arguments: [
    ("hunter2\n", "hunter2"), ("hunter2", "hunter2"), ("\n", ""), ("", ""), ("é\n", "é"),
    ("a\nb\n", "a\nb\n"), ("\n\n", "\n\n"), ("a\n\n", "a\n\n"), ("a\r\n", "a\r"), ("a\0b\n", "a\0b"),
  ])
  func oneLineIsStoredWithoutItsEnd(text: String, stored: String) throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path, text)
    #expect(try fixture.read(Self.path + "/value").utf8.elementsEqual(stored.utf8))
    #expect(try fixture.status(Self.path + "/value").size == stored.utf8.count)
    #expect(try fixture.onlyItem()?.keepsLineEnd == false)
  }

  @Test func bytesThatAreNoTextAreStoredExactly() throws {
    let fixture = TreeFixture()
    try fixture.makeDirectories(Self.path)
    let handle = try fixture.create(Self.path + "/value")
    let bytes: [UInt8] = [0xFF, 0x0A]
    try handle.write(bytes.span, at: 0, by: .current)
    try handle.finish()
    #expect(try fixture.open(Self.path + "/value", .read).bytes() == [0xFF, 0x0A])
  }

  @Test func eolKeepsTheLineEndFromThenOn() throws {
    let fixture = TreeFixture()
    try fixture.makeDirectories(Self.path)
    try fixture.setAttribute("user.keyhole.eol", "exact", Self.path)
    try fixture.write(Self.path + "/value", "hunter2\n")
    #expect(try fixture.read(Self.path + "/value") == "hunter2\n")
    try fixture.write(Self.path + "/value", "hunter3\n")
    #expect(try fixture.read(Self.path + "/value") == "hunter3\n")
    #expect(try fixture.tree.attributeNames(of: fixture.node(Self.path)).contains("user.keyhole.eol"))
    try fixture.removeAttribute("user.keyhole.eol", Self.path)
    try fixture.write(Self.path + "/value", "hunter4\n")
    #expect(try fixture.read(Self.path + "/value") == "hunter4")
  }

  @Test func mountOptionKeepsEveryLineEnd() throws {
    var options = FileTree.Options()
    options.keepsLineEnds = true
    let fixture = TreeFixture(options)
    try fixture.makeItem(Self.path, "hunter2\n")
    #expect(try fixture.read(Self.path + "/value") == "hunter2\n")
    #expect(try fixture.attribute("user.keyhole.eol", Self.path) == "exact")
    // Where nothing would be dropped, it is not listed.
    for (account, text) in [("bare", "hunter2"), ("pem", "a\nb\n")] {
      let path = "keychain/generic/S/\(account)"
      try fixture.makeItem(path, text)
      #expect(try !fixture.tree.attributeNames(of: fixture.node(path)).contains("user.keyhole.eol"))
    }
  }

  @Test func secretMayHaveOneMebibyte() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path, "old")
    let handle = try fixture.open(Self.path + "/value", [.write, .truncate])
    try handle.write(String(repeating: "x", count: 1 << 20), at: 0)
    #expect(errorNumber { try handle.write("x", at: 1 << 20) } == EFBIG)
    #expect(errorNumber { try handle.finish() } == EFBIG)
    #expect(try fixture.read(Self.path + "/value") == "old")
    try fixture.write(Self.path + "/value", String(repeating: "y", count: 1 << 20))
    #expect(try fixture.status(Self.path + "/value").size == 1 << 20)
  }

  @Test func appendedSecretIsJoinedAtTheCommit() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path, "one\n")
    try fixture.append(Self.path + "/value", "two\n")
    #expect(try fixture.read(Self.path + "/value") == "onetwo")
    try fixture.append(Self.path + "/value", "\nthree\n")
    #expect(try fixture.read(Self.path + "/value") == "onetwo\nthree\n")
  }

  @Test func commitKeepsTheItem() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path, "old")
    try fixture.setAttribute("user.comment", "mine", Self.path)
    try fixture.setAttribute("user.keyhole.accessible", "afterFirstUnlock", Self.path)
    let before = try #require(try fixture.onlyItem())
    try fixture.write(Self.path + "/value", "longer\n")
    var after = try #require(try fixture.onlyItem())
    #expect(after.modified > before.modified && after.size == 6)
    (after.modified, after.size) = (before.modified, before.size)
    #expect(after == before)
  }

  @Test func timeSetBeforeTheCommitIsTheItems() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path, "old")
    let time = Timestamp(seconds: 1_000_000_000)
    let handle = try fixture.open(Self.path + "/value", [.write, .truncate])
    try handle.write("new", at: 0)
    try fixture.tree.setModified(time, of: fixture.node(Self.path + "/value"))
    try handle.finish()
    #expect(try fixture.onlyItem()?.modified == time)
    try fixture.tree.setModified(Timestamp(seconds: 5), of: fixture.node(Self.path + "/value"))
    #expect(try fixture.onlyItem()?.modified == Timestamp(seconds: 5))
  }

  @Test func truncationAloneEmptiesTheSecret() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path, "old")
    let handle = try fixture.open(Self.path + "/value", [.write, .truncate])
    try handle.flush(by: .current)
    #expect(try fixture.read(Self.path + "/value") == "old")
    handle.close()
    #expect(try fixture.read(Self.path + "/value") == "" && fixture.items.items().count == 1)
  }

  @Test func keychainThatFailsKeepsTheOldSecret() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path, "old")
    let handle = try fixture.open(Self.path + "/value", [.write, .truncate])
    try handle.write("new", at: 0)
    fixture.items.fail(with: .noSpace)
    #expect(errorNumber { try handle.flush(by: .current) } == ENOSPC)
    fixture.items.fail(with: nil)
    #expect(try fixture.read(Self.path + "/value") == "old")
    try handle.finish()
    #expect(try fixture.read(Self.path + "/value") == "new")
  }

  @Test func lockedKeychainRefusesAtOpen() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path, "old")
    fixture.items.fail(with: .locked)
    #expect(errorNumber { _ = try fixture.open(Self.path + "/value", .read) } == ENOKEY)
    #expect(try fixture.list(Self.path) == ["value"] && fixture.status(Self.path + "/value").size == 3)
  }

  @Test func changeElsewhereIsSeen() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path, "old")
    let elsewhere = MemoryKeychain(sharing: fixture.items)
    let id = try #require(try fixture.onlyItem()?.id)
    try elsewhere.set(id, Array("longer".utf8))
    try fixture.tree.keychain?.refresh()
    #expect(try fixture.status(Self.path + "/value").size == 6)
    #expect(try fixture.read(Self.path + "/value") == "longer")
    try elsewhere.remove([id])
    try fixture.tree.keychain?.refresh()
    #expect(!fixture.exists(Self.path))
  }

  /// A removed secret waits for a new one only until any program stores the item again.
  @Test func whatIsStoredElsewhereIsShownAfterARemoval() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path, "old")
    let item = try #require(try fixture.onlyItem())
    try fixture.remove(Self.path + "/value")
    #expect(try fixture.list(Self.path) == [])
    _ = try MemoryKeychain(sharing: fixture.items).add(item, "new")
    try fixture.tree.keychain?.refresh()
    #expect(try fixture.read(Self.path + "/value") == "new")
    let handle = try fixture.open(Self.path + "/value", [.write, .truncate])
    try handle.write("newer", at: 0)
    try handle.finish()
    #expect(try fixture.read(Self.path + "/value") == "newer" && fixture.items.items().count == 1)
  }

  @Test func neverCreatedSecretLeavesAStagedItem() throws {
    let fixture = TreeFixture()
    try fixture.makeDirectories(Self.path)
    let handle = try fixture.create(Self.path + "/value")
    #expect(try fixture.list(Self.path) == ["value"])
    try fixture.remove(Self.path + "/value")
    handle.close()
    #expect(try fixture.list(Self.path) == [] && fixture.items.items().isEmpty)
  }
}
