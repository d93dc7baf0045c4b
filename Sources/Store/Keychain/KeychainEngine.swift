public import Model
public import SecretMemory

/// A keychain: where items and their secrets are kept.
///
/// `KeychainStore` changes an engine's items from one place at a time, and reads secrets from anywhere.
/// Secrets pass as `SecretBytes` only; an engine wipes every other copy it makes. `Tests/StoreConformance` says what an engine has to do, and checks it.
///
/// Each ability that some keychains lack is a protocol of its own, which the engine gives as a property: `locking`, `passwords`,
/// `otpauthURIs`, `oneTimeCodes`, `batches`, `spooling`, `remote`, `encryption`, `lookup`, `paging`, `history`, `verification`, `collections`. An engine in front of another one passes on what that
/// one has.
public protocol KeychainEngine: Sendable {
  /// The engine's name as the mount option `keychain=` spells it: `vault`, `secret-service`.
  var name: String { get }

  /// Every item, without its secret. Also catches up with what other processes did, like `changes`.
  func items() throws(StoreError) -> [Item]

  /// The changes by other processes since the last call of `items` or of this one.
  ///
  /// Where there is nothing, that costs a few microseconds; else what the changed items cost, and not the others, where the
  /// keychain can tell which they are.
  func changes() throws(StoreError) -> ExternalChanges

  /// An item's secret. - Throws: `notFound`, `locked`, `damaged`, `unreachable`, `outOfMemory`.
  func secret(of item: ItemID) throws(StoreError) -> SecretBytes

  /// Puts a new item into the keychain; its `id` and `size` are the engine's to give.
  ///
  /// - Throws: `exists` where an item has this identity already; `readOnly`, `noSpace`, `tooLarge`.
  func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item

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

  /// Whether it holds what was last stored in it, as far as this process has looked. By default `trusted`.
  var trust: KeychainTrust { get }

  /// Whether items and secrets may be behind what others have stored, as those who keep them do not answer; nil, as by default: they
  /// never are.
  var isStale: Bool? { get }

  /// Why nothing can be changed now; nil, as by default: it can, as far as is known. It costs a system call at most.
  var readOnlyReason: String? { get }

  /// Whether something could be stored now, as far as that can be known without storing it.
  ///
  /// - Throws: `readOnly`; `unreachable` where the keychain's file is gone or replaced; `system` for a lost disk.
  func requireWritable() throws(StoreError)

  /// Its lock. By default `NeverLocked`.
  var locking: any LockingKeychain { get }

  /// nil, as by default: it can't seal an item with a password of the item's own.
  var passwords: (any PasswordKeychain)? { get }

  /// nil, as by default: it has room for one secret of an item only.
  var otpauthURIs: (any OtpauthKeychain)? { get }

  /// nil, as by default: this process computes one-time codes from the URIs.
  var oneTimeCodes: (any OneTimeCodeKeychain)? { get }

  /// nil, as by default: it makes one change at a time.
  var batches: (any BatchKeychain)? { get }

  /// nil, as by default: other callers wait for its batches.
  var spooling: (any SpoolingKeychain)? { get }

  /// nil, as by default: this process reads and changes the items by itself.
  var remote: (any RemoteKeychain)? { get }

  /// nil, as by default: all items are in one place.
  var collections: (any CollectionKeychain)? { get }

  /// nil, as by default: this process does not encrypt the items.
  var encryption: (any EncryptedKeychain)? { get }

  /// Whether the item that keeps the rules of folders can't be read, as far as that is known. By default false.
  var areRulesMissing: Bool { get }

  /// Whether an item that was written without its keys is found out, so that it may keep settings that protect less. By
  /// default false: other programs change the items too.
  var authenticatesItems: Bool { get }

  /// Answers for single items now; nil, as by default: every item is read for one.
  var lookup: (any ItemLookup)? { get }

  /// Reads every item by pages now; nil, as by default: `items` does not take long, or has read them.
  var paging: (any PagingKeychain)? { get }

  /// Keeps what items were; nil, as by default: what is changed or removed is gone.
  var history: (any VersionedKeychain)? { get }

  /// The items that it can't keep: changes that would need it throw `unsupported`. By default there are none.
  var limits: KeychainLimits { get }

  /// The number of this device, by which rules for programs name it where several machines share the keychain; nil, as by default: it is of
  /// this machine alone.
  var host: ExactString? { get }

  /// Compares all that it holds, where `changes` has read only a part since that was done last; nil, as by default: there
  /// is nothing to compare.
  var verification: (any VerifiableKeychain)? { get }
}

extension KeychainEngine {
  /// `trusted`.
  public var trust: KeychainTrust { .trusted }

  /// nil.
  public var isStale: Bool? { nil }

  /// nil.
  public var host: ExactString? { nil }

  /// nil.
  public var readOnlyReason: String? { nil }

  /// Throws `readOnly` where there is a `readOnlyReason`.
  public func requireWritable() throws(StoreError) {
    if let readOnlyReason { throw .readOnly(reason: readOnlyReason) }
  }

  /// `NeverLocked`.
  public var locking: any LockingKeychain { NeverLocked() }
  /// nil.
  public var passwords: (any PasswordKeychain)? { nil }
  /// nil.
  public var otpauthURIs: (any OtpauthKeychain)? { nil }
  /// nil.
  public var oneTimeCodes: (any OneTimeCodeKeychain)? { nil }
  /// nil.
  public var batches: (any BatchKeychain)? { nil }
  /// nil.
  public var spooling: (any SpoolingKeychain)? { nil }
  /// nil.
  public var remote: (any RemoteKeychain)? { nil }
  /// nil.
  public var collections: (any CollectionKeychain)? { nil }
  /// nil.
  public var encryption: (any EncryptedKeychain)? { nil }
  /// false.
  public var areRulesMissing: Bool { false }
  /// false.
  public var authenticatesItems: Bool { false }
  /// nil.
  public var lookup: (any ItemLookup)? { nil }
  /// nil.
  public var paging: (any PagingKeychain)? { nil }
  /// nil.
  public var history: (any VersionedKeychain)? { nil }
  /// nil.
  public var verification: (any VerifiableKeychain)? { nil }
  /// Nothing is refused.
  public var limits: KeychainLimits { KeychainLimits() }
}

extension KeychainEngine {
  /// - Throws: `unsupported` for a keychain that can't seal an item with a password.
  public func requirePasswords() throws(StoreError) -> any PasswordKeychain {
    guard let passwords else {
      throw .unsupported(reason: "this keychain can't seal an item with a password of its own")
    }
    return passwords
  }

  /// - Throws: `unsupported` for a keychain that holds no `otpauth:` URIs.
  public func requireOtpauthURIs() throws(StoreError) -> any OtpauthKeychain {
    guard let otpauthURIs else { throw .noOtpauth }
    return otpauthURIs
  }

  /// - Throws: `unsupported` for a keychain that keeps no versions.
  public func requireHistory() throws(StoreError) -> any VersionedKeychain {
    guard let history else { throw .noHistory }
    return history
  }

  /// - Throws: `unsupported` for a keychain that makes one change at a time.
  func requireBatches() throws(StoreError) -> any BatchKeychain {
    guard let batches else { throw .noBatches }
    return batches
  }

  /// - Throws: `unsupported` for a keychain without spools.
  func requireSpooling() throws(StoreError) -> any SpoolingKeychain {
    guard let spooling else { throw .noBatches }
    return spooling
  }
}

/// A keychain whose items this process encrypts.
public protocol EncryptedKeychain: Sendable {
  /// The key that opens the encryption, for a person: `by its key file`.
  var keyDescription: String { get }

  /// Items of which not even the name can be read, as `problems` names them.
  var damagedEntries: [String] { get }
}

extension StoreError {
  /// Of a keychain that has room for one secret of an item.
  public static let noOtpauth = StoreError.unsupported(
    reason: "this keychain has room for one secret of an item; store the otpauth URI as an item of its own")

  /// Of a keychain that keeps no versions.
  public static let noHistory = StoreError.unsupported(
    reason: "this keychain keeps no earlier versions; the vault and a store in a cluster do")

  static let noBatches = StoreError.unsupported(reason: "this keychain takes one item at a time")
}
