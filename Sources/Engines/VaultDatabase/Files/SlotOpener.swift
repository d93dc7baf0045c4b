package import Model
import Platform
package import SecretMemory
package import VaultRecords

/// The keys of a slot, and its number.
package struct OpenedSlot {
  package var slot: UInt64
  package var keys: MasterKeys

  package init(slot: UInt64, keys: MasterKeys) {
    (self.slot, self.keys) = (slot, keys)
  }
}

/// Opens slots with what a person and the folder have: a passphrase, a key file, a recovery code, a credential.
package struct SlotOpener: ~Copyable {
  package let directory: VaultDirectory
  package let header: VaultHeader
  /// Empty: none.
  package let passphrase: SecretBytes
  /// With one, no other slots than those of its kind are opened.
  package let secret: SlotSecret?

  package init(_ file: VaultFile, _ passphrase: borrowing SecretBytes) throws(StoreError) {
    (directory, header, secret) = (file.directory, file.header, nil)
    do { self.passphrase = try SecretBytes(copying: passphrase) } catch { throw .outOfMemory }
  }

  package init(_ file: VaultFile, _ secret: SlotSecret) throws(StoreError) {
    (directory, header, self.secret) = (file.directory, file.header, secret)
    do { passphrase = try SecretBytes() } catch { throw .outOfMemory }
  }

  /// The keys of each slot that opens; a slot with a passphrase takes half a second.
  ///
  /// - Throws: `rejected` for a wrong passphrase, `locked` where one is missing, `accessDenied` for a missing
  ///   or wrong key file, `damaged`, `outOfMemory`.
  package func open(_ slots: [KeySlot]) throws(StoreError) -> [OpenedSlot] {
    var opened: [OpenedSlot] = []
    var failure: StoreError?
    for slot in slots {
      do {
        if let keys = try open(slot) { opened.append(OpenedSlot(slot: slot.id, keys: keys)) }
      } catch {
        failure = failure ?? StoreError(vault: error, errno: 0)
      }
    }
    guard opened.isEmpty else { return opened }
    let hasCode = slots.contains { $0.kind == KeySlot.Kind.recoveryCode.rawValue }
    if let failure { throw named(failure, hasCode: hasCode) }
    if secret != nil { throw .rejected }
    if slots.contains(where: \.takesPassphrase) { throw passphrase.isEmpty ? .locked : .rejected }
    throw .accessDenied(reason: "vault.key is not this vault's key: put back the one that belongs to it")
  }

  /// nil: this slot does not open with what is here.
  private func open(_ slot: KeySlot) throws -> MasterKeys? {
    guard let kind = KeySlot.Kind(rawValue: slot.kind) else { return nil }
    if let secret { return secret.kind.slot == kind ? try slot.open(secret, header) : nil }
    switch kind {
    case .keyFile:
      return try slot.open(KeyFileSource(bytes: directory.fetchKey()), header)
    case .passphrase where !passphrase.isEmpty:
      let source = PassphraseSource(passphrase: try SecretBytes(copying: passphrase), keyFile: nil)
      return try slot.open(source, header)
    case .passphraseAndKeyFile where !passphrase.isEmpty:
      let source = PassphraseSource(
        passphrase: try SecretBytes(copying: passphrase), keyFile: try directory.fetchKey())
      return try slot.open(source, header)
    default:
      return nil
    }
  }

  /// The error that kept the slots from being opened; where a recovery code does it without the key file, with that way.
  private func named(_ failure: StoreError, hasCode: Bool) -> StoreError {
    let recovery = "set a new passphrase with the recovery code: `keyhole passphrase --recover`"
    let key = directory.key
    switch failure {
    case .damaged(let what) where what == key:
      return hasCode
        ? .damaged(what: "\(key) (put back your copy of it, or move it away and \(recovery))") : failure
    case .damaged: return .damaged(what: "the vault's key slot")
    case .accessDenied(let reason) where hasCode && !Files.hasName(key):
      return .accessDenied(reason: "\(reason), or \(recovery)")
    case .accessDenied(let reason) where hasCode:
      return .accessDenied(reason: "\(reason); or move it away and \(recovery)")
    case .system(let error, "open \(key)"):
      let rest =
        hasCode ? "; make it readable, or move it away and \(recovery)" : "; make it readable for its owner"
      return .accessDenied(reason: "\(key) can't be read: \(error)\(rest)")
    default: return failure
    }
  }
}
