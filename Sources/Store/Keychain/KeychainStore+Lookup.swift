public import Model
import Synchronization

// Single items of the index.
extension KeychainStore {
  /// The oldest of the items with an identity; nil: there is none. Only a Secret Service has more than one.
  ///
  /// - Throws: what reading the keychain throws.
  public nonisolated func item(with identity: ItemIdentity) throws(StoreError) -> Item? {
    if let lookup { return identity == .rules || identity.isDocument ? nil : try lookup.item(with: identity) }
    try load()
    return try index.withLock { index throws(StoreError) in
      guard index != nil else { throw Self.unloaded }
      return index?.first(identity)
    }
  }

  /// The item with the keychain's own name; nil: there is none.
  ///
  /// - Throws: what reading the keychain throws.
  public nonisolated func item(_ id: ItemID) throws(StoreError) -> Item? {
    if let lookup { return try lookup.item(id).flatMap { $0.isShown ? $0 : nil } }
    return try read { $0[id] }
  }

  /// When the items of a service, server or label were changed last, or without one those of a class; nil: there are none.
  ///
  /// - Throws: what reading the keychain throws.
  public nonisolated func latestChange(
    in folder: ExactString?, of itemClass: ItemClass
  ) throws(StoreError) -> Timestamp? {
    try load()
    return index.withLock { $0?.latestChange(in: folder, of: itemClass) }
  }

  /// Also a version of an item.
  nonisolated func found(_ id: ItemID) throws(StoreError) -> Item {
    if id.version != nil { return try foundVersion(id) }
    guard let item = try item(id) else { throw .notFound }
    return item
  }

  /// The rules of folders and of the keychain.
  ///
  /// - Throws: what reading the keychain throws: rules that can't be read are not none.
  public nonisolated func folderRules() throws(StoreError) -> FolderRules {
    if let lookup {
      let item = try lookup.item(with: .rules)
      // Else all had to be read, and the index has them next.
      if !engine.areRulesMissing { return FolderRules(item) }
    }
    let rules = try read { $0.folderRules }
    guard !engine.areRulesMissing else {
      throw .accessDenied(
        reason:
          "the vault's rules for programs are missing: put back a copy of the vault, or see `keyhole accept`")
    }
    return rules
  }

  /// Answers for single items as long as nothing has needed all of them; nil: the index does.
  nonisolated var lookup: (any ItemLookup)? { isLoaded ? nil : engine.lookup }

  /// Reads every item before a change, for those who follow them, unless single ones are all that was asked for so far.
  nonisolated func loadUnlessLookedUp() throws(StoreError) {
    if lookup == nil { try load() }
  }
}
