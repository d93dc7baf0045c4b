import Model
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import Vault

/// Items that are sealed with a password of their own besides (`applicationPassword`).
@Suite(.timeLimit(.minutes(1))) struct VaultPasswordTests {
  private let fixture: VaultFixture
  private let id: ItemID

  init() throws {
    fixture = try VaultFixture()
    var item = KeychainSamples.generic("a")
    item.access = [.userPresence, .applicationPassword]
    id = try fixture.open().using(Self.password("staple")).add(item, "secret of a").id
  }

  private static func password(_ text: String) throws -> ItemPassword {
    ItemPassword(try KeychainSamples.secret(text))
  }

  @Test func documentSaysHowItOpens() throws {
    let reader = try IndependentReader(
      database: fixture.database, key: contents(of: fixture.key), deviceKey: [], password: "staple")
    #expect(try reader.entries().map(\.secret) == [Array("secret of a".utf8)])
    let other = try IndependentReader(
      database: fixture.database, key: contents(of: fixture.key), deviceKey: [], password: "horse")
    #expect(throws: (any Error).self) { try other.entries() }
  }

  @Test func flagsOfAnItemWithAPasswordAreBoundToo() throws {
    let engine = try fixture.open().using(Self.password("staple"))
    _ = try engine.update([id]) { $0.access = [.applicationPassword] }
    #expect(try engine.bytes(of: id) == Array("secret of a".utf8))
    #expect(try fixture.open().items().map(\.access) == [[.applicationPassword]])
  }

  @Test(arguments: [
    "kind = 1", "kind = 1, parameters = x''", "kind = 3", "parameters = zeroblob(41)",
    "parameters = CAST(substr(parameters, 1, 32) || x'28' || substr(parameters, 34) AS BLOB)",
    "wrapped = substr(wrapped, 1, 60)",
  ])
  func whatSomebodyEditedIsDamaged(change: String) throws {
    try fixture.edit("UPDATE secret SET \(change)")
    let engine = try fixture.open().using(Self.password("staple"))
    #expect(failure { _ = try engine.secret(of: id) }?.kind == "damaged")
  }

  @Test func lockedItemOpensWithNoPassword() throws {
    let engine = try fixture.open()
    let password = try Self.password("staple")
    #expect(try engine.using(password).bytes(of: id) == Array("secret of a".utf8))
    try engine.lock()
    #expect(throws: StoreError.locked) { _ = try engine.using(password).bytes(of: id) }
  }

  @Test func emptyPasswordIsNone() throws {
    #expect(failure { try fixture.open().prepare(Self.password("")) }?.kind == "invalidValue")
  }

  /// One derivation is enough for as long as the password is at hand.
  @Test func passwordIsDerivedOnce() throws {
    let (engine, password) = (try fixture.open(), try Self.password("staple"))
    _ = try engine.using(password).secret(of: id)
    let parameters = try #require(password.knownParameters)
    try engine.using(password).set(id, Array("new".utf8))
    #expect(password.knownParameters == parameters)
    let anew = try Self.password("staple")
    #expect(try engine.using(anew).bytes(of: id) == Array("new".utf8))
    #expect(anew.knownParameters == parameters)
  }
}
