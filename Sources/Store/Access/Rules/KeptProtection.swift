import Model

/// Refuses a change of an item's protection without a permit for that.
struct KeptProtection {
  let rules: FolderRules
  var permit: Permit?
  let isDecidedElsewhere: Bool

  func check(_ before: Item, _ item: Item) throws(StoreError) {
    if isDecidedElsewhere || permit?.password?.engine != nil { return }
    if permit?.operation == .change, permit?.item == before.id { return }
    guard rules.keepProtection(of: before, in: item) else {
      throw .accessDenied(reason: "a person has to agree to a change of what protects the item")
    }
  }
}

extension KeychainStore {
  /// In a change the index can't be asked: it may be the change that it waits for.
  nonisolated func guarding(_ permit: Permit?) throws(StoreError) -> KeptProtection {
    KeptProtection(rules: try folderRules(), permit: permit, isDecidedElsewhere: isDecidedElsewhere)
  }
}
