public import Model
public import SecretMemory

/// A keychain: where items and their secrets are kept.
///
/// `KeychainStore` changes an engine's items from one place at a time, and reads secrets from anywhere.
/// Secrets pass as `SecretBytes` only; an engine wipes every other copy it makes. `Tests/StoreConformance` says what an engine has to do, and checks it.
public protocol KeychainEngine: Sendable {
  /// The engine's name as the mount option `keychain=` spells it: `vault`, `secret-service`.
  var name: String { get }

  /// Every item, without its secret. Also catches up with what other processes did, like `refresh`.
  func items() throws(StoreError) -> [Item]

  /// Every item where another process changed something since the last call of any method; else nil,
  /// which costs a few microseconds.
  func refresh() throws(StoreError) -> [Item]?

  /// An item's secret. - Throws: `notFound`, `locked`, `damaged`, `unreachable`, `outOfMemory`.
  func secret(of item: ItemID) throws(StoreError) -> SecretBytes

  /// Puts a new item into the keychain; its `id` and `size` are the engine's to give.
  ///
  /// - Throws: `exists` where an item has this identity already; `readOnly`, `noSpace`, `tooLarge`.
  func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item

  /// Whether an item can have an `otpauth:` URI beside its secret.
  var holdsOtpauth: Bool { get }

  /// An item's `otpauth:` URI. - Throws: `notFound`, also for an item that has none; as `secret`.
  func otpauth(of item: ItemID) throws(StoreError) -> SecretBytes

  /// `add` of an item that has an `otpauth:` URI, which `item.otpauth` says; else that is not looked at.
  func add(
    _ item: Item, secret: borrowing SecretBytes, otpauth: borrowing SecretBytes
  ) throws(StoreError) -> Item

  /// Gives an item another `otpauth:` URI, or its first, or takes it away: `body` gets what is known of the present one,
  /// nil where there is none, and its bytes (empty unless `readingSecret`), and leaves nil where there is to be none.
  ///
  /// Nothing else of the item changes; its size is the engine's to give. Nothing is stored where it was read and all is
  /// left equal. - Throws: what `body` throws; `unsupported` unless `holdsOtpauth`; as `rewrite`.
  func rewriteOtpauth(
    of item: ItemID, readingSecret: Bool,
    _ body: (inout FurtherSecret?, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item

  /// Changes items without their secrets, in one transaction: `body` gets each as it is stored at that
  /// moment; all or nothing.
  ///
  /// - Throws: what `body` throws; `notFound` for an item that is gone; `exists` where two would have one
  ///   identity; `readOnly`, `noSpace`.
  func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item]

  /// Replaces an item's secret: `body` gets the item and its present secret (empty unless
  /// `readingSecret`), and what it leaves of both is stored in one transaction. Nothing is stored where
  /// it was read and both are left equal: that is no change.
  ///
  /// - Throws: what `body` throws; `notFound`, `locked`, `damaged`, `readOnly`, `noSpace`.
  func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item

  /// Deletes items with their secrets, all or none; one that is gone already is no error.
  func remove(_ items: [ItemID]) throws(StoreError)

  /// Returns when everything that was committed is on the disk.
  func synchronize() throws(StoreError)

  /// The room of the disk that holds the keychain; nil: it is not on a disk of this machine.
  func room() throws(StoreError) -> DiskRoom?

  /// Problems to report: damaged items, a read-only store and why.
  func problems() -> [Problem]

  /// Whether it holds what was last stored in it, as far as this process has looked.
  var trust: KeychainTrust { get }

  /// Why nothing can be changed now; nil: it can, as far as is known. It costs a system call at most.
  var readOnlyReason: String? { get }

  /// Whether something could be stored now, as far as that can be known without storing it.
  ///
  /// - Throws: `readOnly`; `unreachable` where the keychain's file is gone or replaced; `system` for a lost disk.
  func requireWritable() throws(StoreError)

  /// Whether the keychain gives its secrets now. It costs next to nothing to ask.
  var lockState: KeychainLock { get }

  /// Whether `unlock` takes a passphrase; else it opens without one, or the keychain asks by itself.
  var needsPassphrase: Bool { get }

  /// Whether a passphrase has to be given before an item's secret can be read, so that it stands for the passcode.
  ///
  /// `sealed`: of items that are sealed by the vault before this keychain gets them.
  func hasPasscode(sealed: Bool) -> Bool

  /// Whether every secret can be read now. It costs next to nothing to ask.
  var isOpenThroughout: Bool { get }

  /// Drops what opens the secrets that are not to be read while the keychain is locked.
  func lock() throws(StoreError)

  /// Gives the secrets again. An empty passphrase stands for none. It may take long, and no other call waits
  /// for it.
  ///
  /// - Throws: `rejected` for a wrong passphrase, `locked` where one is missing, `accessDenied`, `damaged`.
  func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError)

  /// Whether the item's secret can be read and changed in the present state.
  func isAccessible(_ item: Item) -> Bool

  /// The same keychain, for an item that is sealed with a password besides (`applicationPassword`), or is to be.
  ///
  /// Its calls throw `rejected` where that is not the item's password.
  func using(_ password: ItemPassword) throws(StoreError) -> any KeychainEngine

  /// Whether `using` has something that holds a password.
  var sealsWithPasswords: Bool { get }

  /// Whether a password is the item's. It reads no more than that takes.
  ///
  /// - Throws: `rejected` where it is not; `notFound`, `locked`, `damaged`.
  func check(_ password: ItemPassword, of item: ItemID) throws(StoreError)

  /// Seals an item with another password in place of the one that this engine was made for, in one step: whenever it
  /// is interrupted, one of the two opens the item.
  ///
  /// - Throws: `rejected`, `accessDenied` for an engine without a password, `invalidValue` for an item that has none,
  ///   `notFound`, `locked`, `damaged`, `readOnly`, `noSpace`.
  func changePassword(of item: ItemID, to password: ItemPassword) throws(StoreError)

  /// Makes a password ready to seal an item with, which may take long, and no other call waits for it.
  func prepare(_ password: ItemPassword) throws(StoreError)

  /// Whether the engine decides at each call who gets a secret, and has a person asked; else the store does.
  var decidesAccess: Bool { get }
}

/// How far a keychain is open.
public enum KeychainLock: Sendable {
  /// Never unlocked since it was opened: not even names are known.
  case sealed
  /// Names and attributes show; of the secrets those that outlast a lock.
  case locked
  case open
}

// A keychain that can't be locked, and can always be changed.
extension KeychainEngine {
  /// `open`: the keychain can't be locked.
  public var lockState: KeychainLock { .open }

  /// false: the keychain opens without a passphrase, or asks for it itself.
  public var needsPassphrase: Bool { false }

  /// As `needsPassphrase`, whether or not items are sealed.
  public func hasPasscode(sealed: Bool) -> Bool { needsPassphrase }

  /// Whether the lock is `open`.
  public var isOpenThroughout: Bool { lockState == .open }

  /// nil: items can always be changed.
  public var readOnlyReason: String? { nil }

  /// Throws `readOnly` with `readOnlyReason`, if there is one.
  public func requireWritable() throws(StoreError) {
    if let readOnlyReason { throw .readOnly(reason: readOnlyReason) }
  }

  /// `trusted`: nothing tells whether an older copy was put in the keychain's place.
  public var trust: KeychainTrust { .trusted }

  /// Throws `unsupported`.
  public func lock() throws(StoreError) {
    throw .unsupported(reason: "this keychain can't be locked from here")
  }

  /// Does nothing: the keychain is open.
  public func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {}

  /// Throws `unsupported`.
  public func using(_ password: ItemPassword) throws(StoreError) -> any KeychainEngine {
    throw .unsupported(reason: "this keychain can't seal an item with a password of its own")
  }

  /// false: the keychain can't store items with `applicationPassword`.
  public var sealsWithPasswords: Bool { false }

  /// Does nothing: no password is used.
  public func prepare(_ password: ItemPassword) throws(StoreError) {}

  /// false: the store decides, by the item's flags and rules.
  public var decidesAccess: Bool { false }

  /// false: an item has one secret only.
  public var holdsOtpauth: Bool { false }

  /// Throws `notFound`: an item has one secret only.
  public func otpauth(of item: ItemID) throws(StoreError) -> SecretBytes { throw .notFound }

  /// As `add(_:secret:)`. - Throws: `unsupported` for an item with an `otpauth:` URI, and what `add(_:secret:)` throws.
  public func add(
    _ item: Item, secret: borrowing SecretBytes, otpauth: borrowing SecretBytes
  ) throws(StoreError) -> Item {
    guard item.otpauth == nil else { throw .noOtpauth }
    return try add(item, secret: secret)
  }

  /// Throws `unsupported`: an item has one secret only.
  public func rewriteOtpauth(
    of item: ItemID, readingSecret: Bool,
    _ body: (inout FurtherSecret?, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    throw .noOtpauth
  }

  /// Reads the secret with the password, and drops it. - Throws: what `using` and `secret(of:)` throw.
  public func check(_ password: ItemPassword, of item: ItemID) throws(StoreError) {
    _ = try using(password).secret(of: item)
  }

  /// Throws `accessDenied`: the present password is not known.
  public func changePassword(of item: ItemID, to password: ItemPassword) throws(StoreError) {
    throw .accessDenied(reason: "it takes the item's present password")
  }

  /// Goes by the lock and the item's accessibility alone.
  public func isAccessible(_ item: Item) -> Bool {
    switch lockState {
    case .sealed: false
    case .locked: item.accessibility.survivesLock
    case .open: true
    }
  }
}

extension StoreError {
  /// Of a keychain that has room for one secret of an item.
  public static let noOtpauth = StoreError.unsupported(
    reason: "this keychain has room for one secret of an item; store the otpauth URI as an item of its own")
}

/// A keychain that another process keeps: it may hang, and it tells of changes by itself.
///
/// Every call may come from any thread at any time, and ends within ten seconds, with `unreachable` where the
/// other process does not answer, but for the time in which one that decides asks a person. `known`, `takeNews`,
/// `lockState` and `isAccessible` answer from memory.
public protocol RemoteKeychainEngine: KeychainEngine {
  /// Every item as it is known now, from memory; empty before `items` was called.
  var known: [Item] { get }

  /// One of them.
  func known(_ item: ItemID) -> Item?

  /// The changes since the last call, also those by this engine's calls.
  func takeNews() -> [ItemNews]

  /// Yields when `takeNews` may have something to tell, until the engine is dropped. For one listener.
  var news: AsyncStream<Void> { get }
}

/// The present state of an item of a `RemoteKeychainEngine` after a change.
public struct ItemNews: Hashable, Sendable {
  /// The item that something happened to.
  public var id: ItemID
  /// nil: it is gone.
  public var item: Item?
  /// Whether this engine's calls or another process did it.
  public var origin: Change.Origin

  /// - Parameters:
  ///   - id: the item.
  ///   - item: the item as it is now; nil: it is gone.
  ///   - origin: whether this engine's calls or another process did it.
  public init(_ id: ItemID, _ item: Item?, origin: Change.Origin) {
    self.id = id
    self.item = item
    self.origin = origin
  }
}
