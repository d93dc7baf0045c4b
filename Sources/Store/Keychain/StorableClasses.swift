import Model

/// The classes of which items can be stored now. Asked for before a change, in which an engine can't be asked.
struct StorableClasses {
  private let lockState: KeychainLock
  private let hasPasscode: Bool
  /// The same for items that are sealed by the vault before the keychain gets them.
  private let hasPasscodeForSealed: Bool
  private let limits: KeychainLimits

  init(_ engine: any KeychainEngine) {
    let locking = engine.locking
    limits = engine.limits
    lockState = locking.lockState
    hasPasscode = locking.hasPasscode(sealed: false)
    hasPasscodeForSealed = locking.hasPasscode(sealed: true)
  }

  func check(_ item: Item) throws(StoreError) {
    guard !item.identity.isReserved else {
      throw .notPermitted(reason: "Keyhole keeps things of its own there")
    }
    try limits.check(item)
    guard lockState == .open || item.accessibility.survivesLock else { throw .locked }
    guard item.accessibility == .whenPasscodeSetThisDeviceOnly else { return }
    guard !(item.isToBeSealed ? hasPasscodeForSealed : hasPasscode) else { return }
    throw .invalidValue(reason: "the keychain has no passphrase; `keyhole passphrase` sets one")
  }
}
