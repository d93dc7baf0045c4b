import Control
import KeychainSelection
import Model
package import SecretMemory
import Store
import Tree

/// The change of an item's own password: by the running mount, or else in this process.
package struct ItemPasswordChange {
  private let path: TreePath
  private let passphrase: () throws -> SecretBytes

  /// `passphrase` gives the vault's where it is locked here.
  package init(_ path: TreePath, passphrase: @escaping () throws -> SecretBytes) {
    (self.path, self.passphrase) = (path, passphrase)
  }

  /// - Throws: `Failure`; one of the two passwords is valid then.
  package func run() throws {
    let places = try StoragePaths.ofMount()
    if let mounted = KeychainConfiguration.mounted(runtime: places.runtime) {
      return try change(through: mounted)
    }
    let session = try TreeSession(aloneIn: places)
    try session.attempt(path) { () throws(StoreError) in try unlock(session.tree.keychain?.engine) }
    let node = try session.node(at: path)
    try session.attempt(path) { () throws(StoreError) in
      try session.tree.changePassword(of: node, by: session.caller)
    }
  }

  /// The mount's process asks for both passwords: an item's own password is in no message between processes.
  private func change(through mounted: MountedKeychain) throws {
    let session = try TreeSession(for: path)
    let node = try session.node(at: path)
    try session.attempt(path) { () throws(StoreError) in
      guard let item = try session.tree.item(of: node) else { throw .notFound }
      try mounted.changePassword(of: item.id)
    }
  }

  /// A keychain that only a mount has unlocked is locked here.
  private func unlock(_ engine: (any KeychainEngine)?) throws(StoreError) {
    guard let locking = engine?.locking, locking.needsPassphrase, !locking.isOpenThroughout else { return }
    guard let passphrase = try? passphrase() else { throw .locked }
    try locking.unlock(passphrase)
  }
}
