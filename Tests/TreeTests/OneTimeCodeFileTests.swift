import Glibc
import Model
import Notifier
import Store
import StoreConformance
import Testing
import Tree

/// SPECIFICATION.md, section 4: the file with an item's one-time code.
@Suite struct OneTimeCodeFileTests {
  private static let path = "keychain/generic/S/A"
  private static let file = path + "/otp"
  private static let key = "secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
  /// One step from 1970 to 2038: the code of RFC 4226 for the counter 0.
  private static let long = "otpauth://totp/S:A?\(key)&period=2147483647"
  private static let counted = "otpauth://hotp/S:A?\(key)&counter=0"

  private func fixture(_ uri: String, _ options: FileTree.Options = FileTree.Options()) throws -> TreeFixture
  {
    let fixture = TreeFixture(options)
    try fixture.makeItem(Self.path)
    try fixture.write(Self.path + "/otpauth", uri)
    return fixture
  }

  @Test func isThereWithTheURIAndNotListed() throws {
    let fixture = TreeFixture()
    try fixture.makeItem(Self.path)
    #expect(!fixture.exists(Self.file))
    try fixture.write(Self.path + "/otpauth", Self.long + "&digits=8")
    #expect(try fixture.list(Self.path) == ["otpauth", "value"])
    // Without a look at the secret: as most codes are.
    #expect(try fixture.status(Self.file).size == 6)
    #expect(try fixture.read(Self.file) == "84755224")
    #expect(try fixture.status(Self.file).size == 8)
    #expect(try fixture.status(Self.file).modified == Timestamp(seconds: 0))
    try fixture.remove(Self.path + "/otpauth")
    #expect(!fixture.exists(Self.file))
  }

  @Test func canOnlyBeRead() throws {
    let fixture = try fixture(Self.long)
    #expect(errorNumber { _ = try fixture.open(Self.file, .write) } == EACCES)
    #expect(errorNumber { try fixture.write(Self.file, "1") } != nil)
    #expect(errorNumber { try fixture.remove(Self.file) } == EPERM)
    #expect(errorNumber { try fixture.rename(Self.file, Self.path + "/x") } == EPERM)
    #expect(errorNumber { try fixture.rename(Self.path + "/otpauth", Self.file) } == EPERM)
    #expect(try fixture.read(Self.file) == "755224")
  }

  /// One open file reads one code; what is stored counts before it is given.
  @Test func eachOpenCounts() throws {
    let fixture = try fixture(Self.counted)
    let handle = try fixture.open(Self.file, .read)
    #expect(try handle.text() == "755224" && handle.text() == "755224")
    #expect(try fixture.read(Self.file) == "287082")
    #expect(try fixture.read(Self.path + "/otpauth") == Self.counted.dropLast() + "2")
    #expect(try fixture.status(Self.file).modified == fixture.onlyItem()?.otpauth?.modified)
    handle.close()
  }

  @Test func readOnlyMountCountsNothing() throws {
    var options = FileTree.Options()
    options.isReadOnly = true
    let fixture = try fixture(Self.counted, options)
    #expect(errorNumber { _ = try fixture.read(Self.file) } == EROFS)
    #expect(try fixture.read(Self.path + "/otpauth") == Self.counted)
  }

  @Test func codesThatNoRFCHasAreRefused() throws {
    let fixture = try fixture(Self.long + "&digits=5")
    #expect(errorNumber { _ = try fixture.read(Self.file) } == EOPNOTSUPP)
  }

  @Test func lockWipesWhatIsOpen() throws {
    let fixture = try fixture(Self.long)
    let handle = try fixture.open(Self.file, .read)
    try fixture.tree.lock()
    #expect(errorNumber { _ = try handle.text() } == ENOKEY)
    #expect(errorNumber { _ = try fixture.open(Self.file, .read) } == ENOKEY)
    handle.close()
  }
}
