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

  /// Makes the vault open another way, with a new master key and new class keys: every row is sealed again, in one
  /// transaction. A process that is killed meanwhile leaves it openable the old way or the new one.
  ///
  /// An earlier copy of the vault opens with its earlier key, and that key opens nothing of this vault.
  /// Unlocks the vault. Without a passphrase, items of the class `whenPasscodeSetThisDeviceOnly` are deleted.
  /// - Throws: `rejected` where `present` is not the vault's passphrase, `locked` where it is missing,
  ///   `accessDenied` for a missing key file, `invalidValue` for an empty passphrase, `readOnly` (distrusted, or of
  ///   Keyhole 0.1), `noSpace`.
  @discardableResult
  public func change(
    to key: VaultKey, _ passphrase: borrowing SecretBytes, present: borrowing SecretBytes,
    cost: PassphraseCost = .standard
  ) throws(StoreError) -> RekeyingReport {
    let old = try slots()
    let opened = try open(old, present)
    let new = MasterKeys.random(withPasscode: key != .keyFile)
    let slot = try newSlot(key, passphrase, cost, new, id: (old.map(\.id).max() ?? 0) &+ 1)
    defer { wipeStack() }
    return try vault.use { vault throws(StoreError) in
      try vault.unlock(vault.file.fitting(opened))
      return RekeyingReport(try vault.rekey(old, to: new, slot))
    }
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
