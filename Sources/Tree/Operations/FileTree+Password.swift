public import Model
public import Store

extension FileTree {
  /// Gives an item with `applicationPassword` another password. The question takes the present one and what
  /// else the item demands, and then the new one. It waits for that.
  ///
  /// - Throws: `notFound` where there is no item, `invalidValue` for one without a password, `accessDenied`, `rejected`, `locked`, `readOnly`, `noSpace`.
  public func changePassword(of node: Node, by caller: Caller) throws(StoreError) {
    let keychain = try requireKeychain()
    guard let item = try item(of: node) else { throw .notFound }
    try item.requirePassword()
    try keychain.requireWritable()
    // The password is the item's, whichever of its files was named.
    let path = (node.place.secret.map { .item($0.item) } ?? node.place).path
    let permit = try keychain.permission(for: item, to: .readWrite, path: path, by: caller).fetch()
    let new = try keychain.permission(forNewPasswordAt: path, by: caller).fetch()
    try keychain.changePassword(of: item.id, permit, to: new)
  }

  /// The item of a node; nil: it is not in the keychain.
  public func item(of node: Node) throws(StoreError) -> Item? {
    switch node.place {
    case .item(let place), .value(let place), .otpauth(let place), .code(let place): try storedItem(place)
    default: nil
    }
  }
}
