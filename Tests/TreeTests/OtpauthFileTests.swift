import Glibc
import Model
import Notifier
import Store
import StoreConformance
import Testing
import Tree

/// SPECIFICATION.md, section 4: the file with an item's `otpauth:` URI.
@Suite struct OtpauthFileTests {
  private static let path = "keychain/generic/S/A"
  private static let file = path + "/otpauth"
  private static let uri = "otpauth://totp/S:A?secret=JBSWY3DPEHPK3PXP&issuer=S"
  private static let other = "otpauth://totp/S:A?secret=JBSWY3DPEHPK3PXQ&issuer=S"

  @Test func isThereOnlyWhenTheItemHasOne() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path)
    #expect(try fixture.list(Self.path) == ["value"] && !fixture.exists(Self.file))
    try fixture.write(Self.file, Self.uri + "\n")
    #expect(try fixture.list(Self.path) == ["otpauth", "value"])
    #expect(try fixture.read(Self.file) == Self.uri)
    #expect(try fixture.status(Self.file).size == Self.uri.utf8.count)
    #expect(try fixture.onlyItem()?.otpauth?.size == Self.uri.utf8.count)
    #expect(try fixture.read(Self.path + "/value") == "secret")
    try fixture.remove(Self.file)
    #expect(try fixture.list(Self.path) == ["value"] && fixture.onlyItem()?.otpauth == nil)
    #expect(errorNumber { try fixture.remove(Self.file) } == ENOENT)
    #expect(errorNumber { _ = try fixture.open(Self.file, .read) } == ENOENT)
  }

  @Test func timesAreItsOwn() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path)
    let before = try fixture.status(Self.path + "/value").modified
    try fixture.write(Self.file, Self.uri)
    #expect(try fixture.status(Self.path + "/value").modified == before)
    try fixture.tree.setModified(Timestamp(seconds: 5), of: fixture.node(Self.file))
    #expect(try fixture.status(Self.file).modified == Timestamp(seconds: 5))
    #expect(try fixture.status(Self.path + "/value").modified == before)
    // An equal one is no change.
    try fixture.write(Self.file, Self.uri)
    #expect(try fixture.status(Self.file).modified == Timestamp(seconds: 5))
    try fixture.write(Self.file, Self.other)
    #expect(try fixture.status(Self.file).modified > before)
  }

  @Test(arguments: ["text\n", "otpauth://totp/a?issuer=x\n", "otpauth://totp/a?secret=1\n"])
  func whatIsNoURIIsRefusedWhenItIsWritten(text: String) throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path)
    #expect(errorNumber { try fixture.write(Self.file, text) } == EINVAL)
    #expect(try fixture.list(Self.path) == ["value"])
    try fixture.write(Self.file, Self.uri)
    #expect(errorNumber { try fixture.write(Self.file, text) } == EINVAL)
    #expect(try fixture.read(Self.file) == Self.uri)
  }

  @Test func whatIsNotCompleteIsRefusedWhenItIsClosed() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path)
    try fixture.write(Self.file, Self.uri)
    let handle = try fixture.open(Self.file, [.write, .truncate])
    try handle.write("otpauth://totp/a?issuer=b", at: 0)
    #expect(errorNumber { try handle.flush(by: .current) } == EINVAL)
    handle.close()
    // Emptied alone it stays, too.
    try fixture.open(Self.file, [.write, .truncate]).close()
    #expect(try fixture.read(Self.file) == Self.uri)
  }

  @Test func appendedPartMakesAWhole() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path)
    try fixture.write(Self.file, Self.uri)
    try fixture.append(Self.file, "&digits=8\n")
    #expect(try fixture.read(Self.file) == Self.uri + "&digits=8")
    #expect(errorNumber { try fixture.append(Self.file, "&digits=x\n") } == EINVAL)
  }

  @Test func secretIsNotRemovedBeforeIt() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path)
    try fixture.write(Self.file, Self.uri)
    #expect(errorNumber { try fixture.remove(Self.path + "/value") } == EPERM)
    // Removing all entries in the order of the listing removes the item.
    for entry in try fixture.tree.list(fixture.node(Self.path)) {
      try fixture.remove("\(Self.path)/\(entry.name)")
    }
    #expect(try fixture.items.items().isEmpty && fixture.list(Self.path).isEmpty)
    try fixture.removeDirectory(Self.path)
  }

  @Test func waitsForTheSecretOfANewItem() throws {
    let fixture = TreeFixture()
    try fixture.makeDirectories(Self.path)
    try fixture.write(Self.file, Self.uri)
    #expect(try fixture.items.items().isEmpty && fixture.read(Self.file) == Self.uri)
    #expect(try fixture.status(Self.file).size == Self.uri.utf8.count)
    #expect(errorNumber { try fixture.removeDirectory(Self.path) } == ENOTEMPTY)
    try fixture.tree.setModified(Timestamp(seconds: 5), of: fixture.node(Self.file))
    try fixture.write(Self.path + "/value", "secret")
    let item = try #require(try fixture.onlyItem())
    #expect(item.otpauth == FurtherSecret(size: Self.uri.utf8.count, modified: Timestamp(seconds: 5)))
    #expect(try fixture.items.otpauthBytes(of: item.id) == Array(Self.uri.utf8))
    try fixture.makeDirectories("keychain/generic/S/B")
    try fixture.write("keychain/generic/S/B/otpauth", Self.uri)
    try fixture.remove("keychain/generic/S/B/otpauth")
    try fixture.write("keychain/generic/S/B/value", "b")
    #expect(try fixture.list("keychain/generic/S/B") == ["value"])
  }

  @Test func editorsSaveIt() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path)
    try fixture.write(Self.file, Self.uri)
    try fixture.write(Self.path + "/otpauth.tmp", Self.other + "\n")
    try fixture.rename(Self.path + "/otpauth.tmp", Self.file)
    #expect(try fixture.read(Self.file) == Self.other)
    try fixture.rename(Self.file, Self.path + "/otpauth~")
    #expect(try fixture.list(Self.path) == ["otpauth~", "value"])
    #expect(try fixture.onlyItem()?.otpauth != nil)
    try fixture.write(Self.file, Self.uri)
    try fixture.remove(Self.path + "/otpauth~")
    #expect(try fixture.read(Self.file) == Self.uri && fixture.list(Self.path) == ["otpauth", "value"])
    try fixture.write(Self.path + "/otpauth.tmp", "no URI")
    #expect(errorNumber { try fixture.rename(Self.path + "/otpauth.tmp", Self.file) } == EINVAL)
    #expect(try fixture.read(Self.file) == Self.uri)
    #expect(errorNumber { try fixture.rename(Self.path + "/value", Self.file) } == EPERM)
    #expect(errorNumber { try fixture.rename(Self.file, Self.path + "/value") } == EPERM)
  }

  @Test func movesWithItsItem() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path)
    try fixture.write(Self.file, Self.uri)
    try fixture.makeItem("keychain/generic/S/C")
    #expect(errorNumber { try fixture.rename(Self.file, "keychain/generic/S/C/otpauth") } == EPERM)
    #expect(errorNumber { try fixture.rename(Self.file, "defaults/x") } == EXDEV)
    try fixture.rename(Self.path, "keychain/generic/S/B")
    #expect(try fixture.read("keychain/generic/S/B/otpauth") == Self.uri)
    #expect(!fixture.exists(Self.file))
  }

  @Test func hasNoAttributes() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path)
    try fixture.write(Self.file, Self.uri)
    #expect(try fixture.tree.attributeNames(of: fixture.node(Self.file)).isEmpty)
    #expect(errorNumber { try fixture.setAttribute("user.comment", "x", Self.file) } == EOPNOTSUPP)
  }

  @Test func lockedWithItsItem() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path)
    try fixture.write(Self.file, Self.uri)
    try fixture.makeDirectories("keychain/generic/S/B")
    try fixture.write("keychain/generic/S/B/otpauth", Self.uri)
    let open = try fixture.open(Self.file, .read)
    try fixture.tree.lock()
    #expect(errorNumber { _ = try open.text() } == ENOKEY)
    #expect(errorNumber { _ = try fixture.open(Self.file, .read) } == ENOKEY)
    #expect(try fixture.list(Self.path) == ["otpauth", "value"])
    #expect(!fixture.exists("keychain/generic/S/B/otpauth"))
  }

  @Test func keychainWithRoomForOneSecretRefusesIt() throws {
    let keychain = KeychainStore(engine: MemoryKeychain(holdsOtpauth: false))
    let item = try keychain.add(KeychainSamples.generic("S", "A"), secret: KeychainSamples.secret("secret"))
    let tree = FileTree(settings: SettingsStore(engine: MemorySuites()), keychain: keychain)
    let folder = try Self.path.split(separator: "/").reduce(tree.root) {
      try tree.child(of: $0, named: $1.utf8)
    }
    let number = errorNumber {
      _ = try tree.create("otpauth".utf8, in: folder, .write, exclusive: false, by: .current)
    }
    #expect(number == EOPNOTSUPP)
    #expect(try tree.list(folder).map(\.name) == ["value"] && keychain.read { $0[item.id] } == item)
  }

  @Test func changesElsewhereAreSeen() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path)
    let elsewhere = MemoryKeychain(sharing: fixture.items)
    let id = try #require(try fixture.onlyItem()?.id)
    try elsewhere.setOtpauth(id, Self.uri)
    try fixture.tree.keychain?.refresh()
    #expect(try fixture.read(Self.file) == Self.uri)
    let change = Change(.created, .otpauth(id, .generic(service: "S", account: "A")), origin: .external)
    #expect(fixture.tree.replays(of: change).map(\.target.path) == [Self.file])
    #expect(ChangeEvent(change).path == Self.file)
    #expect(fixture.tree.staleNames(after: change).map(\.name) == ["otpauth"])
  }
}
