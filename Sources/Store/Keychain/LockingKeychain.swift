public import Model
public import SecretMemory

/// The lock of a keychain.
public protocol LockingKeychain: Sendable {
  /// Whether the keychain gives its secrets now. It costs next to nothing to ask.
  var lockState: KeychainLock { get }

  /// Whether `unlock` takes a passphrase; else, as by default, it opens without one, or the keychain asks by itself.
  var needsPassphrase: Bool { get }

  /// Why no passphrase opens it now, so that no person is to be asked for one; nil, as by default: one may. It costs next to nothing to ask.
  var unlockRefusal: StoreError? { get }

  /// Whether a passphrase has to be given before an item's secret can be read, so that it stands for the passcode.
  ///
  /// `sealed`: of items that are sealed by the vault before this keychain gets them. By default `needsPassphrase`.
  func hasPasscode(sealed: Bool) -> Bool

  /// Whether every secret can be read now. It costs next to nothing to ask. By default while the keychain is open.
  var isOpenThroughout: Bool { get }

  /// Whether the item's secret can be read and changed in the present state. By default that is for its class to say.
  func isAccessible(_ item: Item) -> Bool

  /// Drops what opens the secrets that are not to be read while the keychain is locked.
  func lock() throws(StoreError)

  /// Gives the secrets again. An empty passphrase stands for none. It may take long, and no other call waits
  /// for it.
  ///
  /// - Throws: `rejected` for a wrong passphrase, `locked` where one is missing, `accessDenied`, `damaged`.
  func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError)
}

/// How far a keychain is open.
public enum KeychainLock: Sendable {
  /// Never unlocked since it was opened: not even names are known.
  case sealed
  /// Names and attributes show; of the secrets those that outlast a lock.
  case locked
  case open
}

extension LockingKeychain {
  /// false.
  public var needsPassphrase: Bool { false }

  /// nil.
  public var unlockRefusal: StoreError? { nil }

  /// `needsPassphrase`.
  public func hasPasscode(sealed: Bool) -> Bool { needsPassphrase }

  /// Whether the keychain is open.
  public var isOpenThroughout: Bool { lockState == .open }

  /// True in an open keychain, and for the items of a locked one whose class outlasts a lock.
  public func isAccessible(_ item: Item) -> Bool {
    switch lockState {
    case .sealed: false
    case .locked: item.accessibility.survivesLock
    case .open: true
    }
  }
}

/// The lock of a keychain that is always open.
public struct NeverLocked: LockingKeychain {
  /// There is nothing to configure.
  public init() {}

  /// `open`.
  public var lockState: KeychainLock { .open }

  /// Throws `unsupported`.
  public func lock() throws(StoreError) {
    throw .unsupported(reason: "this keychain can't be locked from here")
  }

  /// Does nothing.
  public func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {}
}
