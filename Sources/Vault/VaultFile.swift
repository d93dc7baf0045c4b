import Crypto
import GRDB
import Model
import SecretMemory

/// The vault's database and what anybody can read of it: all that there is of a vault before it is unlocked.
final class VaultFile {
  let directory: VaultDirectory
  let ballast: Ballast
  let connection: Connection
  let header: VaultHeader

  /// Makes the vault where there is none.
  init(opening place: VaultDirectory) throws(StoreError) {
    directory = place
    ballast = Ballast(directory: place)
    try VaultFactory.makeIfMissing(place)
    try DatabaseHeader.check(place)
    connection = try Self.connect(place, ballast)
    header = try connection.read { try Schema.check($0, place.database) }
  }

  /// On a full disk not even SQLite's shared memory can be made without giving up the ballast.
  private static func connect(_ place: VaultDirectory, _ ballast: Ballast) throws(StoreError) -> Connection {
    do {
      let connection = try Connection(place.database)
      try connection.read { _ = try Connection.dataVersion($0) }
      return connection
    } catch .noSpace where ballast.giveUp() {
      return try Connection(place.database)
    }
  }

  /// The ways to the master key as they are now: another process may have changed the passphrase.
  func slots() throws(StoreError) -> [KeySlot] {
    try connection.read { try KeySlot.fetchAll($0) }
  }
}

/// What a person and the folder have to open a vault with.
struct KeyRing: ~Copyable {
  let directory: VaultDirectory
  let store: [UInt8]
  /// Empty: none.
  let passphrase: SecretBytes

  init(_ file: VaultFile, _ passphrase: borrowing SecretBytes) throws(StoreError) {
    (directory, store) = (file.directory, file.header.store)
    do { self.passphrase = try SecretBytes(copying: passphrase) } catch { throw .outOfMemory }
  }

  /// The master key by way of the first slot that opens; a slot with a passphrase takes half a second.
  ///
  /// - Throws: `rejected` for a wrong passphrase, `locked` where one is missing, `accessDenied` for a missing
  ///   or wrong key file, `damaged`, `outOfMemory`.
  func open(_ slots: [KeySlot]) throws(StoreError) -> SymmetricKey {
    var isDamaged = false
    for slot in slots {
      do {
        if let master = try open(slot) { return master }
      } catch StoreError.damaged {
        isDamaged = true
      } catch {
        throw StoreError(vault: error, errno: 0)
      }
    }
    if isDamaged { throw .damaged(what: "the key slot: put back a copy of the vault") }
    if slots.contains(where: \.takesPassphrase) { throw passphrase.isEmpty ? .locked : .rejected }
    throw .accessDenied(reason: "vault.key is not this vault's key: put back the one that belongs to it")
  }

  /// nil: this slot does not open with what is here.
  private func open(_ slot: KeySlot) throws -> SymmetricKey? {
    guard let kind = KeySlot.Kind(rawValue: slot.kind) else { return nil }
    switch kind {
    case .keyFile:
      return try slot.open(KeyFileSource(bytes: directory.fetchKey()), store: store)
    case .passphrase where !passphrase.isEmpty:
      let source = PassphraseSource(passphrase: try SecretBytes(copying: passphrase), keyFile: nil)
      return try slot.open(source, store: store)
    case .passphraseAndKeyFile where !passphrase.isEmpty:
      let source = PassphraseSource(
        passphrase: try SecretBytes(copying: passphrase), keyFile: try directory.fetchKey())
      return try slot.open(source, store: store)
    default:
      return nil
    }
  }
}

extension KeySlot {
  var takesPassphrase: Bool {
    kind == Kind.passphrase.rawValue || kind == Kind.passphraseAndKeyFile.rawValue
  }
}
