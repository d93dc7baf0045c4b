public import Model
public import SecretMemory
import Store
import VaultDatabase
public import VaultRecords

/// The kind of key that opens a vault.
public enum VaultKey: String, Sendable {
  case keyFile
  case passphrase
  case passphraseAndKeyFile
}

extension VaultEngine {
  /// The kind of key that opens the vault now.
  public var key: VaultKey {
    let kinds = ((try? slots()) ?? []).compactMap { KeySlot.Kind(rawValue: $0.kind) }
    if kinds.contains(.passphraseAndKeyFile) { return .passphraseAndKeyFile }
    return kinds.contains(.passphrase) ? .passphrase : .keyFile
  }

  /// The kinds of secrets that open the vault beside its key.
  public var furtherSecrets: Set<SlotSecret.Kind> {
    let kinds = ((try? slots()) ?? []).compactMap { KeySlot.Kind(rawValue: $0.kind) }
    return Set([SlotSecret.Kind.recoveryCode, .credential].filter { kinds.contains($0.slot) })
  }

  /// Makes the vault open another way, with a new master key and new class keys: every row is sealed again, in one
  /// transaction. A process that is killed meanwhile leaves it openable the old way or the new one.
  ///
  /// An earlier copy of the vault opens with its earlier key, and that key opens nothing of this vault.
  /// Unlocks the vault. Without a passphrase, items of the class `whenPasscodeSetThisDeviceOnly` are deleted.
  ///
  /// A recovery code and a credential stay as they are, unless `further` says otherwise: the new master key is sealed to the
  /// public keys of their slots, which the manifest authenticates. They go with the passphrase.
  /// - Throws: `rejected` where `present` is not the vault's passphrase, `locked` where it is missing,
  ///   `accessDenied` for a missing key file, `invalidValue` for an empty passphrase, `readOnly` (distrusted, or of
  ///   Keyhole 0.1), `noSpace`.
  @discardableResult
  public func change(
    to key: VaultKey, _ passphrase: borrowing SecretBytes, present: borrowing SecretBytes,
    cost: PassphraseCost = .standard, further: FurtherSecretsChange = FurtherSecretsChange(),
    progress: VaultUpgrade.Progress = { _, _ in }
  ) throws(StoreError) -> RekeyingReport {
    let old = try slots()
    return try change(old, open(old, present), to: key, passphrase, cost, further, progress)
  }

  /// The same for a vault whose passphrase is forgotten. A key file that is missing is made.
  ///
  /// - Throws: `rejected` where `code` is not the vault's; as `change(to:_:present:cost:further:)`.
  @discardableResult
  public func recover(
    with code: SlotSecret, to key: VaultKey, _ passphrase: borrowing SecretBytes,
    cost: PassphraseCost = .standard, further: FurtherSecretsChange,
    progress: VaultUpgrade.Progress = { _, _ in }
  ) throws(StoreError) -> RekeyingReport {
    let old = try slots()
    let opened = try open(old, code)
    try vault.use { $0.file.directory }.makeKeyIfMissing()
    return try change(old, opened, to: key, passphrase, cost, further, progress)
  }

  private func change(
    _ old: [KeySlot], _ opened: [OpenedSlot], to key: VaultKey, _ passphrase: borrowing SecretBytes,
    _ cost: PassphraseCost, _ further: FurtherSecretsChange, _ progress: VaultUpgrade.Progress
  ) throws(StoreError) -> RekeyingReport {
    let new = MasterKeys.random(withPasscode: key != .keyFile)
    let next = (old.map(\.id).max() ?? 0) &+ 1
    var slots = SlotChange(slot: try newSlot(key, passphrase, cost, new, id: next))
    if key == .keyFile { slots.dropped = [.recoveryCode, .systemCredential] }
    for secret in further.added where key != .keyFile {
      slots.dropped.insert(secret.kind.slot)
      slots.further.append(try newSlot(secret, new, id: next &+ 1 &+ UInt64(slots.further.count)))
    }
    slots.dropped.formUnion(further.removed.map(\.slot))
    defer { wipeStack() }
    return try vault.use { vault throws(StoreError) in
      try vault.unlock(vault.file.fitting(opened))
      return RekeyingReport(try vault.rekey(old, to: new, slots, progress))
    }
  }

  private func newSlot(_ secret: SlotSecret, _ keys: MasterKeys, id: UInt64) throws(StoreError) -> KeySlot {
    let header = vault.use { $0.file.header }
    do { return try KeySlot(id: id, secret, keys, header) } catch { throw StoreError(vault: error, errno: 0) }
  }

  private func newSlot(
    _ key: VaultKey, _ passphrase: borrowing SecretBytes, _ cost: PassphraseCost, _ keys: MasterKeys,
    id: UInt64
  ) throws(StoreError) -> KeySlot {
    let (directory, header) = vault.use { ($0.file.directory, $0.file.header) }
    do {
      guard key != .keyFile else {
        try directory.makeKeyIfMissing()
        return try KeySlot(id: id, KeyFileSource(bytes: directory.fetchKey()), keys, header)
      }
      var source = PassphraseSource(
        passphrase: try SecretBytes(copying: passphrase),
        keyFile: try key == .passphrase ? nil : directory.fetchKey())
      source.cost = cost
      return try KeySlot(id: id, source, keys, header)
    } catch {
      throw StoreError(vault: error, errno: 0)
    }
  }
}

/// The secrets beside the passphrase that a change of the keys adds or takes away; the others stay.
public struct FurtherSecretsChange: Sendable {
  /// Each takes the place of the one of its kind.
  public var added: [SlotSecret] = []
  /// The kinds that open nothing afterwards.
  public var removed: Set<SlotSecret.Kind> = []

  /// Changes nothing.
  public init() {}
}

/// The slots after a change of the keys.
struct SlotChange {
  /// The slot of the vault's key.
  var slot: KeySlot
  /// New slots beside it.
  var further: [KeySlot] = []
  /// Kinds of slots with a public key that are not kept.
  var dropped: Set<KeySlot.Kind> = []

  /// The slots to be stored. - Throws: `damaged`.
  func slots(after old: [KeySlot], _ keys: MasterKeys, _ header: VaultHeader) throws -> [KeySlot] {
    let kept = old.filter { slot in
      KeySlot.Kind(rawValue: slot.kind).map { $0.hasPublicKey && !dropped.contains($0) } ?? false
    }
    return try [slot] + further
      + kept.map { slot in
        var slot = slot
        try slot.reseal(keys, header)
        return slot
      }
  }
}

/// The result of a change of the vault's keys.
public struct RekeyingReport: Hashable, Sendable {
  /// Items that have new keys.
  public let items: Int
  /// Items that did not open, and stay as damaged as they were.
  public let damaged: Int
  /// Secrets that only other devices can open.
  public let ofOtherDevices: Int
  /// Items of the class `whenPasscodeSetThisDeviceOnly`, which were deleted with the passphrase.
  public let deleted: Int

  init(_ summary: RewritingSummary) {
    (items, damaged, ofOtherDevices, deleted) = (
      summary.items, summary.damaged, summary.carried, summary.deleted
    )
  }
}
