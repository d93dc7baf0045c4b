import KeyringHarness
import Model
import Store
import StoreConformance
import Testing

@testable import SecretService

/// Changes by other programs show here, through the service's signals.
@Suite(.serialized, .timeLimit(.minutes(2))) struct OutsideChangesTests {
  let keyring: TestKeyring

  init() throws {
    keyring = try TestKeyring()
    _ = try keyring.engine.items()
  }

  @Test func newItemIsNews() async throws {
    try keyring.store("secret", "service S account me color blue", label: "a/b\n😀")
    let news = await keyring.nextNews { $0.item != nil }
    let item = try #require(news?.item)
    #expect(item.identity == .generic(service: "S", account: "me") && item.label == "a/b\n😀")
    // secret-tool has given no `username`.
    #expect(item.attributes == ["color": Array("blue".utf8), Item.omittedAttribute: Array("username".utf8)])
    #expect(item.size == 6)
    #expect(item.collection == "login" && news?.origin == .external)
  }

  @Test func newSecretOfEqualLengthIsNews() async throws {
    try keyring.store("one", "service S account me")
    let old = try #require(await keyring.nextNews { $0.item != nil }?.item)
    try keyring.store("two", "service S account me")
    let new = try #require(await keyring.nextNews { $0.item != nil }?.item)
    #expect(new.id == old.id && new.size == 3 && new.modified > old.modified)
  }

  @Test func equalSecretIsNoNews() throws {
    try keyring.store("one", "service S account me")
    _ = try keyring.engine.items()
    try keyring.store("one", "service S account me")
    try keyring.engine.catchUp()
    #expect(keyring.engine.takeNews().isEmpty)
  }

  @Test func removedItemIsNews() async throws {
    try keyring.store("one", "service S account me")
    let item = try #require(await keyring.nextNews { $0.item != nil })
    try keyring.bus.run("secret-tool clear service S")
    #expect(await keyring.nextNews { $0.item == nil }?.id == item.id)
  }

  @Test func ownChangesAreOwnNewsOnce() throws {
    let item = try keyring.engine.add(KeychainSamples.generic("S"), "secret")
    try keyring.engine.set(item.id, [1, 0, 2])
    #expect(keyring.engine.takeNews().map(\.origin) == [.local])
    try keyring.engine.catchUp()
    #expect(keyring.engine.takeNews().isEmpty)
    try keyring.engine.remove([item.id])
    #expect(keyring.engine.takeNews() == [ItemNews(item.id, nil, origin: .local)])
  }

  @Test func itemsWithTheSameIdentityAreAllThere() throws {
    try keyring.store("1", "service S account me n 1")
    try keyring.store("2", "service S account me n 2")
    try keyring.bus.run("printf 3 | secret-tool store --collection=session --label=x service S account me")
    let items = try keyring.engine.items().filter { $0.identity == .generic(service: "S", account: "me") }
    #expect(items.count == 3)
    #expect(Set(items.map(\.collection)) == ["login", "session"])
    #expect(throws: StoreError.exists) {
      try keyring.engine.add(KeychainSamples.generic("S"), "4")
    }
  }

  @Test func networkPasswordsAreInternetItems() throws {
    try keyring.store(
      "x", "xdg:schema org.gnome.keyring.NetworkPassword server h user u protocol https port 8080 object /p")
    try keyring.store("y", "server other.org user me")
    try keyring.store("z", "Title t URL u", label: "entry")
    let identities = Set(try keyring.engine.items().map(\.identity))
    var first = InternetIdentity(server: "h", account: "u", protocol: "https", port: 8080, path: "/p")
    first.domain = nil
    #expect(
      identities == [
        .internet(first), .internet(InternetIdentity(server: "other.org", account: "me")),
        .other(label: "entry"),
      ])
  }

  @Test func whatIsStoredHereOthersRead() throws {
    let bytes = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    let item = try keyring.engine.add(KeychainSamples.full(), secret: KeychainSamples.secret(bytes))
    let found = try keyring.bus.bytes(of: "secret-tool lookup server exämple.org port 0")
    #expect(found == bytes)
    _ = try keyring.engine.update([item.id]) { $0.attributes["x"] = Array("y".utf8) }
    #expect(try keyring.bus.run("secret-tool search x y 2>&1").contains("attribute.x = y"))
  }

  @Test func manyItemsAreReadWithTheirSizes() throws {
    // More than come in one answer.
    for number in 0..<100 {
      try keyring.engine.add(KeychainSamples.generic("S", ExactString("\(number)")), "secret \(number)")
    }
    let other = try SecretServiceEngine(address: keyring.bus.address)
    let items = try other.items()
    #expect(items.count == 100)
    #expect(items.allSatisfy { $0.size == "secret ".count + accountLength($0) })
  }

  private func accountLength(_ item: Item) -> Int {
    guard case .generic(_, let account) = item.identity else { return 0 }
    return account.utf8.count
  }
}
