import Model
import Platform
import SecretMemory
import Testing

@testable import Service

/// The value of `keyhole edit`, from the reading to the storing.
@Suite struct EditedValueTests {
  private static let secret = "keychain/generic/s/p/value"
  private static let setting = "defaults/com.example.app/k"

  private static func bytes(_ text: String) throws -> SecretBytes {
    try SecretBytes(copying: text.utf8.span)
  }

  private static func content(_ value: EditedValue) throws -> String? {
    var text: String?
    try value.read { text = $0.text }
    return text
  }

  @Test func missingValueIsMade() throws {
    let fixture = try SessionFixture()
    for path in [Self.secret, Self.setting] {
      let value = try EditedValue(TreePath(path), fixture.session)
      #expect(try !value.isStored && Self.content(value) == nil)
      #expect(try value.equals(SecretBytes()) && !value.equals(Self.bytes("new")))
      try value.replace(with: Self.bytes("new\n"))
      #expect(try fixture.read(path).hasPrefix("new"))
    }
  }

  /// Editors end the last line; a secret of one line has no such end.
  @Test func endOfTheLineIsNoChangeOfASecret() throws {
    let fixture = try SessionFixture()
    try fixture.write(Self.secret, "old")
    let value = try EditedValue(TreePath(Self.secret), fixture.session)
    #expect(try value.isStored && Self.content(value) == "old")
    #expect(try value.equals(Self.bytes("old")) && value.equals(Self.bytes("old\n")))
    #expect(try !value.equals(Self.bytes("old\n\n")) && !value.equals(SecretBytes()))
    try fixture.write(Self.setting, "old")
    let setting = try EditedValue(TreePath(Self.setting), fixture.session)
    #expect(try setting.equals(Self.bytes("old\n")) && !setting.equals(Self.bytes("old")))
  }

  @Test func valueThatAnotherProgramHasStoredIsNotReplaced() throws {
    let fixture = try SessionFixture()
    try fixture.write(Self.secret, "old")
    let value = try EditedValue(TreePath(Self.secret), fixture.session)
    try fixture.write(Self.secret, "another's")
    let refusal = reason { try value.replace(with: Self.bytes("mine")) }
    #expect(refusal == "another program has changed it meanwhile; nothing was written")
    #expect(try fixture.read(Self.secret) == "another's")
    // The person has seen that, and may store it after all.
    try value.replace(with: Self.bytes("mine"))
    #expect(try fixture.read(Self.secret) == "mine")
  }

  @Test func valueThatAnotherProgramHasRemovedIsNotMade() throws {
    let fixture = try SessionFixture()
    try fixture.write(Self.setting, "old")
    let value = try EditedValue(TreePath(Self.setting), fixture.session)
    try TreeRemoval(of: TreePath(Self.setting), .fileOrItem, in: fixture.session).run()
    #expect(reason { try value.replace(with: Self.bytes("mine")) } != nil)
    #expect(try !fixture.exists(Self.setting))
  }

  @Test func wipedValueIsNoLongerThere() throws {
    let fixture = try SessionFixture()
    try fixture.write(Self.secret, "old")
    let value = try EditedValue(TreePath(Self.secret), fixture.session)
    value.wipe()
    #expect(try !value.isStored && Self.content(value) == nil)
  }

  @Test(arguments: [
    "defaults/s", "keychain/generic", "nonsense", "defaults/s/k/more", "keychain/generic/s/p/x",
  ])
  func pathWithoutAValueIsRefused(path: String) throws {
    let fixture = try SessionFixture()
    try fixture.write("defaults/s/other", "1")
    #expect(reason { _ = try EditedValue(TreePath(path), fixture.session) } != nil)
  }
}
