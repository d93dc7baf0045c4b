import Model

/// Refuses a change of an item's protection without a permit for that.
struct KeptProtection {
  let rules: KeychainIndex
  var permit: Permit?
  let isDecidedElsewhere: Bool

  func check(_ before: Item, _ item: Item) throws(StoreError) {
    if isDecidedElsewhere || permit?.password?.engine != nil { return }
    if permit?.operation == .change, permit?.item == before.id { return }
    guard rules.keepsProtection(of: before, in: item) else {
      throw .accessDenied(reason: "a person has to agree to a change of what protects the item")
    }
  }
}

extension KeychainStore {
  /// In a change the index can't be asked: it may be the change that it waits for.
  nonisolated func guarding(_ permit: Permit?) throws(StoreError) -> KeptProtection {
    let rules = try read { $0.rulesItem }.map { KeychainIndex([$0]) } ?? KeychainIndex()
    return KeptProtection(rules: rules, permit: permit, isDecidedElsewhere: isDecidedElsewhere)
  }
}
