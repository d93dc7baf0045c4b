public import Model

// Single items of the index.
extension KeychainStore {
  /// The oldest of the items with an identity; nil: there is none. Only a Secret Service has more than one.
  ///
  /// - Throws: what reading the keychain throws.
  public nonisolated func item(with identity: ItemIdentity) throws(StoreError) -> Item? {
    try read { $0.first(identity) }
  }

  /// The item with the keychain's own name; nil: there is none.
  ///
  /// - Throws: what reading the keychain throws.
  public nonisolated func item(_ id: ItemID) throws(StoreError) -> Item? {
    try read { $0[id] }
  }

  nonisolated func found(_ id: ItemID) throws(StoreError) -> Item {
    guard let item = try item(id) else { throw .notFound }
    return item
  }

  /// The rules of folders and of the keychain.
  ///
  /// - Throws: what reading the keychain throws: rules that can't be read are not none.
  public nonisolated func folderRules() throws(StoreError) -> FolderRules {
    try read { $0.folderRules }
  }
}
