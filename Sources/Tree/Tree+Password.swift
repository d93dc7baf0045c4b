public import Model
public import Store

extension Tree {
  /// Gives an item with `applicationPassword` another password. Whoever is asked gives the present one, and does what
  /// else the item demands, and then chooses the new one. It waits for that.
  ///
  /// - Throws: `invalidValue` for an item without one, `accessDenied`, `rejected`, `locked`, `readOnly`, `noSpace`.
  public func changePassword(of node: Node, by caller: Caller) throws(StoreError) {
    let keychain = try requireKeychain()
    guard let item = try item(of: node), item.access.needsPassword else {
      throw .invalidValue(
        reason: "there is no item with `applicationPassword`; `user.keyhole.access` makes it one")
    }
    try keychain.requireWritable()
    let path = node.place.path
    let permit = try keychain.permission(for: item, to: .readWrite, path: path, by: caller).fetch()
    let new = try keychain.permission(forNewPasswordAt: path, by: caller).fetch()
    try keychain.changePassword(of: item.id, permit, to: new)
  }

  /// nil: it is none of the keychain's.
  private func item(of node: Node) throws(StoreError) -> Item? {
    switch node.place {
    case .item(let place), .value(let place): try storedItem(place)
    default: nil
    }
  }
}
