import Model
import SecretMemory
import StoreConformance
import Testing

@testable import Store

/// A store that finds single items before it has read them all.
@Suite(.timeLimit(.minutes(1))) struct KeychainLookupTests {
  let engine = MemoryKeychain()
  let store: KeychainStore
  var log: ChangeLog

  init() {
    store = KeychainStore(engine: engine)
    log = ChangeLog(store.feed)
  }

  @Test func itemIsFoundWithoutTheOthers() throws {
    let items = try ["a", "b"].map { try engine.add(KeychainSamples.generic($0), "secret of \($0)") }
    #expect(try store.items(with: items[0].identity) == [items[0]])
    #expect(try store.items(with: KeychainSamples.generic("c").identity) == [])
    #expect(try store.item(items[1].id) == items[1])
    #expect(try store.item(ItemID(rawValue: "nobody")) == nil)
    #expect(try store.secret(of: items[1].id).unprotected == Array("secret of b".utf8))
    #expect(throws: StoreError.notFound) { _ = try store.secret(of: ItemID(rawValue: "nobody")) }
    #expect(!store.isLoaded)
  }

  @Test mutating func changesAreToldAsWithAllItems() async throws {
    let item = try store.add(KeychainSamples.generic("a"), secret: KeychainSamples.secret("1"))
    try store.rewrite(item.id, readingSecret: false) { item, secret throws(StoreError) in
      do { secret = try SecretBytes(copying: KeychainSamples.secret("22")) } catch { throw .outOfMemory }
      item.modified.seconds += 1
    }
    try store.update([item.id]) { $0.label = "label" }
    try store.update([item.id]) { _ in }
    try store.update([item.id]) { $0.identity = .generic(service: "b", account: "me") }
    try store.remove([item.id])
    let (old, new) = (item.identity, ItemIdentity.generic(service: "b", account: "me"))
    #expect(!store.isLoaded)
    #expect(
      await log.next() == [
        Change(.created, .item(item.id, old), origin: .local),
        Change(.modified, .item(item.id, old), origin: .local),
        Change(.attributes, .item(item.id, old), origin: .local),
        Change(.moved, .item(item.id, new), previous: .item(item.id, old), origin: .local),
        Change(.deleted, .item(item.id, new), origin: .local),
      ])
  }

  @Test func rulesOfFoldersHold() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "secret")
    try store.setRules(
      "deny *", of: .folder(.generic, "a"),
      Permit(item: RuleScope.folder(.generic, "a").permitID, for: .change))
    let other = KeychainStore(engine: engine)
    #expect(throws: (any Error).self) { _ = try other.secret(of: item.id) }
    #expect(try other.folderRules().rules(of: .folder(.generic, "a")) == "deny *")
    #expect(try other.items(with: .rules) == [])
    let rules = try #require(try engine.items().first { !$0.isShown })
    #expect(try other.item(rules.id) == nil)
    #expect(!other.isLoaded)
    try other.load()
    #expect(try other.item(rules.id) == nil && other.items(with: .rules) == [])
  }

  @Test func sealedKeychainIsLocked() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "secret")
    engine.seal("passphrase")
    #expect(throws: StoreError.locked) { try store.items(with: item.identity) }
    #expect(throws: StoreError.locked) { try store.item(item.id) }
    #expect(throws: StoreError.locked) { try store.folderRules() }
  }
}
