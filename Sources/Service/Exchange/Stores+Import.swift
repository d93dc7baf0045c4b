package import Model
package import Store

extension Stores {
  /// The permission to replace an item that asks before it is read, or to make one with a password of its own.
  package func permission(
    toReplace item: Item?, with new: Item, at path: String
  ) throws(StoreError) -> Permission {
    guard let keychain else { throw .notFound }
    guard let item else { return try keychain.permission(forNew: new, path: path, by: .current) }
    let isProtected = item.hasSameProtection(as: new)
    return isProtected
      ? try keychain.permission(for: item, to: .readWrite, new.secrets, path: path, by: .current)
      : try keychain.permission(for: item, changingTo: new, path: path, by: .current)
  }
}
