package import Model
package import SecretMemory
package import Store
import Vault
import VaultRecords

/// A keychain of another program, of which the vault seals the items that are to be: that program, and any other
/// that reads them there, gets what only the vault's keys open.
///
/// The vault is made when it is first needed. It decides about a sealed item: taking away the item's mark, its
/// flags, or putting one item's secret into another opens nothing, and is reported as damage.
package struct SealingKeychain: KeychainEngine, RemoteKeychain {
  package typealias Base = KeychainEngine & RemoteKeychain

  package let base: any Base
  let seals: Seals
  var password: ItemPassword?

  package init(_ base: any Base, _ seals: Seals) {
    (self.base, self.seals) = (base, seals)
  }

  package var name: String { base.name }
  package var remote: (any RemoteKeychain)? { self }
  package var collections: (any CollectionKeychain)? { base.collections }
  package var news: AsyncStream<Void> { base.news }

  package func items() throws(StoreError) -> [Item] {
    let items = try base.items()
    seals.refresh()
    _ = seals.takeNews()
    return items.map(shown)
  }

  package func changes() throws(StoreError) -> ExternalChanges {
    seals.refresh()
    let changes = try base.changes()
    // The vault may say something else of any item.
    guard !seals.takeNews() else { return .everything(known) }
    return changes.mapItems(shown)
  }

  package var known: [Item] { base.known.map(shown) }

  package func known(_ item: ItemID) -> Item? { base.known(item).map(shown) }

  package func takeNews() -> [ItemNews] {
    seals.refresh()
    let news = base.takeNews().map { ItemNews($0.id, $0.item.map(shown), origin: $0.origin) }
    guard seals.takeNews() else { return news }
    return news + known.filter(\.isSealed).map { ItemNews($0.id, $0, origin: .external) }
  }

  package func remove(_ items: [ItemID]) throws(StoreError) {
    let identities = Set(items.compactMap { base.known($0)?.identity })
    try base.remove(items)
    for identity in identities where !isKnown(identity, besides: []) { try? release(identity) }
  }

  package func synchronize() throws(StoreError) { try base.synchronize() }
  package func room() throws(StoreError) -> DiskRoom? { try base.room() }
  package func problems() -> [Problem] { base.problems() + seals.problems }
  package var trust: KeychainTrust { seals.trust }
  package var readOnlyReason: String? { base.readOnlyReason }
  package func requireWritable() throws(StoreError) { try base.requireWritable() }
}

// MARK: Locking

extension SealingKeychain: LockingKeychain {
  package var locking: any LockingKeychain { self }

  /// The other keychain's own. What is sealed may be locked besides.
  package var lockState: KeychainLock { base.locking.lockState }

  package var isOpenThroughout: Bool { base.locking.isOpenThroughout && (!sealsAreUsed || seals.isOpen) }

  package var needsPassphrase: Bool { sealsAreUsed && seals.needsPassphrase }

  package func hasPasscode(sealed: Bool) -> Bool { sealed && seals.needsPassphrase }

  package func isAccessible(_ item: Item) -> Bool {
    base.locking.isAccessible(item) && (!item.isToBeSealed || seals.isAccessible(item))
  }

  package func lock() throws(StoreError) {
    try seals.lock()
    try base.locking.lock()
  }

  /// The passphrase is the vault's; the other keychain asks by itself, but not before the passphrase is right.
  package func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    if sealsAreUsed { try seals.unlock(passphrase) }
    try base.locking.unlock(passphrase)
    // Only now it is known what is sealed.
    _ = try base.items()
    if sealsAreUsed { try seals.unlock(passphrase) }
  }

  private var sealsAreUsed: Bool { seals.isUsed ?? base.known.contains(where: \.isSealed) }

}

// MARK: Passwords

extension SealingKeychain: PasswordKeychain {
  package var passwords: (any PasswordKeychain)? { self }

  package func using(_ password: ItemPassword) throws(StoreError) -> any KeychainEngine {
    var keychain = self
    keychain.password = password
    return keychain
  }

  /// The vault alone knows.
  package func check(_ password: ItemPassword, of item: ItemID) throws(StoreError) {
    try vaultPasswords().check(password, of: seal(of: item).id)
  }

  package func changePassword(
    of item: ItemID, from present: ItemPassword, to new: ItemPassword
  ) throws(StoreError) {
    try vaultPasswords().changePassword(of: seal(of: item).id, from: present, to: new)
  }

  private func vaultPasswords() throws(StoreError) -> any PasswordKeychain {
    guard let vault = try seals.vault(making: false) else { throw .sealedElsewhere }
    return try vault.requirePasswords()
  }

  private func seal(of item: ItemID) throws(StoreError) -> Item {
    guard let stored = base.known(item) else { throw .notFound }
    guard seals.isAccessible(shown(stored)) else { throw .locked }
    guard let seal = seals.seal(of: stored.identity) else {
      throw .invalidValue(reason: "the item has no password of its own")
    }
    return seal
  }

  package func prepare(_ password: ItemPassword) throws(StoreError) {
    try seals.vault(making: true)?.passwords?.prepare(password)
  }
}

// MARK: What shows

extension SealingKeychain {
  /// An item of the other keychain as it is with what the vault says of it.
  func shown(_ stored: Item) -> Item {
    let seal = seals.seal(of: stored.identity)
    guard stored.isSealed || seal != nil else { return stored }
    var item = stored
    item.isSealed = stored.isSealed || seal?.isUnfinished == false
    item.size = seal?.unfinishedSize ?? EscrowedSecret.size(inside: stored.size)
    if let seal { item.takeProtection(of: seal) }
    return item
  }

  /// Whether what the other keychain holds for an item may have to be opened.
  func mayBeSealed(_ stored: Item) -> Bool { stored.isSealed || seals.seal(of: stored.identity) != nil }
}

// MARK: Secrets

extension SealingKeychain {
  package func secret(of item: ItemID) throws(StoreError) -> SecretBytes {
    if seals.isUsed == nil { seals.refresh() }
    let content = try base.secret(of: item)
    guard let stored = base.known(item) else { throw .notFound }
    guard mayBeSealed(stored) else { return try unsealed(content) }
    return try open(content, shown(stored))
  }

  /// Sealed content that has lost its mark must not be taken for a secret.
  private func unsealed(_ content: consuming SecretBytes) throws(StoreError) -> SecretBytes {
    guard !EscrowedSecret.isSealed(content) else {
      throw seals.isOpen ? .sealedElsewhere : .locked
    }
    return content
  }

  /// Opens what the other keychain holds for a sealed item.
  ///
  /// - Throws: `locked`, `accessDenied` and `rejected` for its password, `damaged`.
  func open(_ content: borrowing SecretBytes, _ item: Item) throws(StoreError) -> SecretBytes {
    let vault = try requireVault(making: false)
    guard seals.isAccessible(item) else { throw .locked }
    let isSealed = EscrowedSecret.isSealed(content)
    for seal in seals.candidates(for: item.identity) where seal.isUnfinished || seal.hasProtection(of: item) {
      guard isSealed else {
        guard seal.isUnfinished else { break }
        return try Self.copy(content)
      }
      do throws(StoreError) {
        return try EscrowedSecret.open(content, under: vault.secret(of: seal.id), of: seal.id)
      } catch {
        // Gone since: a class that needs a passphrase goes with it.
        guard error == .notFound || error.isDamage else { throw error }
      }
    }
    throw isSealed ? .sealedElsewhere : .notSealedAnyMore
  }

  func requireVault(making: Bool) throws(StoreError) -> any KeychainEngine {
    guard let vault = try seals.vault(making: making) else { throw .sealedElsewhere }
    // A vault that was just made is known to be empty.
    if making { seals.refresh() }
    guard let password else { return vault }
    return try vault.requirePasswords().using(password)
  }

  static func copy(_ secret: borrowing SecretBytes) throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(copying: secret) } catch { throw .outOfMemory }
  }
}

extension StoreError {
  fileprivate var isDamage: Bool {
    if case .damaged = self { true } else { false }
  }

  fileprivate static let sealedElsewhere = StoreError.damaged(
    what: "what the vault had sealed (its key is missing, or another program has changed or moved it)")
  fileprivate static let notSealedAnyMore = StoreError.damaged(
    what:
      "what the vault had sealed (another program has replaced it; setting `user.keyhole.sealed` to false takes "
      + "what is there now)")
}
