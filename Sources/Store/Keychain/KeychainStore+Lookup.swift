public import Model
import Synchronization

// Single items: from the index, or, as long as that is not filled, from a keychain that finds them without the others.
extension KeychainStore {
  /// The items with an identity, the oldest first: only a Secret Service has more than one.
  ///
  /// - Throws: what reading the keychain throws.
  public nonisolated func items(with identity: ItemIdentity) throws(StoreError) -> [Item] {
    if let known = index.withLock({ $0?[identity] }) { return known }
    guard let lookup = engine.lookup else { return try read { $0[identity] } }
    return identity == .rules ? [] : try lookup.items(with: identity)
  }

  /// The oldest of the items with an identity; nil: there is none.
  ///
  /// - Throws: what reading the keychain throws.
  public nonisolated func item(with identity: ItemIdentity) throws(StoreError) -> Item? {
    if let known = index.withLock({ $0.map { $0.first(identity) } }) { return known }
    return try items(with: identity).first
  }

  /// The item with the keychain's own name; nil: there is none.
  ///
  /// - Throws: what reading the keychain throws.
  public nonisolated func item(_ id: ItemID) throws(StoreError) -> Item? {
    if let known = index.withLock({ $0.map { $0[id] } }) { return known }
    guard let lookup = engine.lookup else { return try read { $0[id] } }
    return try lookup.item(id).flatMap { $0.isShown ? $0 : nil }
  }

  nonisolated func found(_ id: ItemID) throws(StoreError) -> Item {
    guard let item = try item(id) else { throw .notFound }
    return item
  }

  /// The rules of folders and of the keychain.
  ///
  /// - Throws: what reading the keychain throws: rules that can't be read are not none.
  public nonisolated func folderRules() throws(StoreError) -> FolderRules {
    if let known = index.withLock({ $0?.folderRules }) { return known }
    guard let lookup = engine.lookup else { return try read { $0.folderRules } }
    return FolderRules(try lookup.items(with: .rules).first)
  }
}
