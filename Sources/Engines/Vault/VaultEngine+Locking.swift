public import Model
public import SecretMemory
public import Store
import VaultDatabase
public import VaultRecords

extension VaultEngine: LockingKeychain {
  /// The vault itself.
  public var locking: any LockingKeychain { self }

  /// The state of the keys in this process; reading it takes no lock of the engine.
  public var lockState: KeychainLock { state.value }

  /// Whether a key slot takes a passphrase; reads the slots from the file.
  public var needsPassphrase: Bool {
    let answer = try? vault.use { vault throws(StoreError) in
      if let known = vault.session?.takesPassphrase { return known }
      return try vault.file.slots().contains { $0.takesPassphrase }
    }
    return answer ?? false
  }

  /// Wipes the keys that a lock takes, and ends batches that are under way.
  public func lock() throws(StoreError) {
    defer { wipeStack() }
    // Also where the vault can't be read to keep what outlasts the lock.
    defer { turns.end() }
    try vault.use { vault throws(StoreError) in try vault.lock() }
  }

  /// Derives the slot's key (scrypt, some tenths of a second), and opens the class keys with it.
  public func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    let opened = try open(slots(), passphrase)
    try vault.use { vault throws(StoreError) in try vault.unlock(vault.file.fitting(opened)) }
    wipeStack()
  }

  /// Opens the vault with the secret of another slot than the passphrase's, at once.
  ///
  /// - Throws: `rejected` where it opens no slot (it is another vault's, or was removed), `damaged`, `outOfMemory`.
  public func unlock(with secret: SlotSecret) throws(StoreError) {
    let opened = try open(slots(), secret)
    try vault.use { vault throws(StoreError) in try vault.unlock(vault.file.fitting(opened)) }
    wipeStack()
  }

  /// Whether this is the vault's passphrase. It takes as long for a wrong one.
  ///
  /// - Throws: `rejected`, `damaged`, `outOfMemory`.
  public func check(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    let opened = try open(slots(), passphrase)
    _ = try vault.use { vault throws(StoreError) in try vault.file.fitting(opened) }
    wipeStack()
  }

  /// Whether this opens a slot of the vault.
  ///
  /// - Throws: as `unlock(with:)`.
  public func check(_ secret: SlotSecret) throws(StoreError) {
    let opened = try open(slots(), secret)
    _ = try vault.use { vault throws(StoreError) in try vault.file.fitting(opened) }
    wipeStack()
  }
}

extension VaultEngine {
  func slots() throws(StoreError) -> [KeySlot] {
    try vault.use { vault throws(StoreError) in try vault.file.slots() }
  }

  /// Outside of the lock, because a passphrase takes half a second.
  func open(
    _ slots: [KeySlot], _ passphrase: borrowing SecretBytes
  ) throws(StoreError) -> [OpenedSlot] {
    try vault.use { vault throws(StoreError) in try SlotOpener(vault.file, passphrase) }.open(slots)
  }

  func open(_ slots: [KeySlot], _ secret: SlotSecret) throws(StoreError) -> [OpenedSlot] {
    try vault.use { vault throws(StoreError) in try SlotOpener(vault.file, secret) }.open(slots)
  }
}
