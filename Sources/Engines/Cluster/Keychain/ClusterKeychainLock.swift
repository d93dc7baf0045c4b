import ClusterRecords
package import Model
package import SecretMemory
import Store

/// The lock of a store's keys on this device.
package protocol ClusterLock: Sendable {
  /// Whether this device's key is sealed by a passphrase.
  var needsPassphrase: Bool { get }

  /// Why no passphrase gives the keyring its keys; nil: one may.
  var unlockRefusal: StoreError? { get }

  /// Drops this device's keys. The keyring is locked already.
  func lock()

  /// Gives the keyring its keys. - Throws: `rejected`, `locked` for an empty passphrase where there is one, `unreachable`.
  func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError)
}

extension ClusterLock {
  /// nil.
  package var unlockRefusal: StoreError? { nil }
}

/// Keys that are always there.
package struct OpenLock: ClusterLock {
  package init() {}

  package var needsPassphrase: Bool { false }

  package func lock() {}

  package func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {}
}

/// The lock of a keychain in a cluster: of this process alone.
struct ClusterKeychainLock: LockingKeychain {
  let keys: ClusterKeyring
  let device: any ClusterLock

  var lockState: KeychainLock {
    guard keys.isReadable else { return .sealed }
    return keys.isOpen ? .open : .locked
  }

  var needsPassphrase: Bool { device.needsPassphrase }

  var unlockRefusal: StoreError? { device.unlockRefusal }

  /// The passphrase of this device stands for the passcode. The class that needs one is bound to a device, and not stored in a cluster.
  func hasPasscode(sealed: Bool) -> Bool { device.needsPassphrase }

  func lock() throws(StoreError) {
    keys.lock()
    device.lock()
  }

  func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) { try device.unlock(passphrase) }
}
