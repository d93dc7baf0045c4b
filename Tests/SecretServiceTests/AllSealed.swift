import KeyringHarness
import Model
import SecretMemory
import SecretService
import Store
import Vault
import VaultRecords

@testable import Sealing

/// A keychain of which every new item is sealed.
struct AllSealed: KeychainEngine, PasswordKeychain {
  let keychain: any KeychainEngine

  /// The keyring of a bus, sealed by a vault in the bus's folder.
  init(_ bus: PrivateBus) throws {
    keychain = try SealingKeychain(bus)
  }

  private init(_ keychain: any KeychainEngine) {
    self.keychain = keychain
  }

  func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    var item = item
    item.isSealed = true
    return try keychain.add(item, secret: secret)
  }

  func using(_ password: ItemPassword) throws(StoreError) -> any KeychainEngine {
    AllSealed(try keychain.requirePasswords().using(password))
  }

  func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] { try keychain.update(items, body) }

  func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item { try keychain.rewrite(item, readingSecret: readingSecret, body) }

  func check(_ password: ItemPassword, of item: ItemID) throws(StoreError) {
    try keychain.requirePasswords().check(password, of: item)
  }

  func changePassword(
    of item: ItemID, from present: ItemPassword, to new: ItemPassword
  ) throws(StoreError) {
    try keychain.requirePasswords().changePassword(of: item, from: present, to: new)
  }

  var name: String { keychain.name }
  var passwords: (any PasswordKeychain)? { self }
  func items() throws(StoreError) -> [Item] { try keychain.items() }
  func changes() throws(StoreError) -> ExternalChanges { try keychain.changes() }
  func secret(of item: ItemID) throws(StoreError) -> SecretBytes { try keychain.secret(of: item) }
  func remove(_ items: [ItemID]) throws(StoreError) { try keychain.remove(items) }
  func synchronize() throws(StoreError) { try keychain.synchronize() }
  func room() throws(StoreError) -> DiskRoom? { try keychain.room() }
  func problems() -> [Problem] { keychain.problems() }
}

extension SealingKeychain {
  /// The derivation of a password's key is cheap here.
  init(_ bus: PrivateBus) throws {
    let folder = bus.folder + "/data/keyhole"
    try self.init(
      SecretServiceEngine(address: bus.address),
      Seals(vault: folder, state: bus.folder + "/state", passwordCost: .least))
  }

  /// Returns when everything is known that others have done so far.
  func catchUp() throws {
    try (base as? SecretServiceEngine)?.catchUp()
  }
}
