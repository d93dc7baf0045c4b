package import Crypto
import FoundationEssentials
package import Model
import SecretMemory

/// A long-lived key: in secret memory, and a `SymmetricKey` (which wipes itself) for one call only.
package struct StoredKey: ~Copyable {
  private let bytes: SecretBytes

  package init(_ key: SymmetricKey) throws {
    var bytes = try SecretBytes()
    try key.append(to: &bytes)
    self.bytes = bytes
  }

  package borrowing func symmetric() -> SymmetricKey {
    SymmetricKey(copying: bytes.span)
  }
}

/// How much a session has read.
package struct ReadCounts: Equatable {
  /// The rows of leaves whose columns were read.
  package var rows = 0
  /// The items whose metadata were opened.
  package var items = 0

  package init() {}
}

/// The tables with the rows that keys open.
package enum VaultTables: Sendable {
  case present
  /// Those of an older format, while the present ones take their place in a transaction.
  case replaced
}

/// The keys that open everything but the secrets, all derived from the master key.
///
/// `ClassKeyring` holds those for the secrets, so that a lock can drop them alone.
package final class VaultKeys {
  package let header: VaultHeader
  package let tables: VaultTables
  /// nil: locked.
  private var master: StoredKey?
  /// nil: locked, or there is no passphrase.
  private var passcode: StoredKey?
  private let metadataKey: StoredKey
  private let indexKey: StoredKey
  private let manifestKey: StoredKey
  /// Of format 1.
  private let witnessKey: StoredKey?
  /// Format 1 derives the key of the anchor; later the manifest holds it.
  private let anchorKey: StoredKey
  private let digestKey: StoredKey
  /// Made of `digestKey`, during `makingDigests`.
  private var digestCode: HMAC<SHA256>?
  /// How much was read with them.
  package var counts = ReadCounts()

  package var store: [UInt8] { header.store }
  package var format: VaultFormat { header.format }

  package init(_ keys: MasterKeys, _ header: VaultHeader, of tables: VaultTables = .present) throws {
    self.header = header
    self.tables = tables
    master = try StoredKey(keys.master)
    passcode = try keys.passcode.map { try StoredKey($0) }
    metadataKey = try StoredKey(Self.derive(keys, header, "meta"))
    indexKey = try StoredKey(Self.derive(keys, header, "index"))
    manifestKey = try StoredKey(Self.derive(keys, header, "manifest"))
    witnessKey = header.format == .one ? try StoredKey(Self.derive(keys, header, "witness")) : nil
    anchorKey = try StoredKey(Self.derive(keys, header, "anchor"))
    digestKey = try StoredKey(Self.derive(keys, header, "digest"))
  }

  /// Those that outlast a lock, for another thread.
  private init(copyingUnlocked keys: VaultKeys) throws {
    (header, tables) = (keys.header, keys.tables)
    metadataKey = try StoredKey(keys.metadata)
    indexKey = try StoredKey(keys.indexKey.symmetric())
    manifestKey = try StoredKey(keys.manifest)
    witnessKey = nil
    anchorKey = try StoredKey(keys.anchorOfFormatOne)
    digestKey = try StoredKey(keys.digestKey.symmetric())
  }

  /// A copy without what class keys are opened by. - Throws: `SecretMemoryError`.
  package func copyWithoutMasterKeys() throws -> VaultKeys { try VaultKeys(copyingUnlocked: self) }

  /// Drops what class keys are opened by; names and attributes stay.
  package func lock() {
    master = nil
    passcode = nil
  }

  /// Takes the master key again. Nothing else of the keys has changed.
  package func unlock(_ keys: MasterKeys) throws {
    master = try StoredKey(keys.master)
    passcode = try keys.passcode.map { try StoredKey($0) }
  }

  /// A copy of what a slot opens. - Throws: `locked`.
  package func copyMasterKeys() throws -> MasterKeys {
    let second: SymmetricKey? =
      switch passcode {
      case .some(let key): key.symmetric()
      case .none: nil
      }
    switch master {
    case .some(let master): return MasterKeys(master: master.symmetric(), passcode: second)
    case .none: throw StoreError.locked
    }
  }

  package var metadata: SymmetricKey { metadataKey.symmetric() }
  package var manifest: SymmetricKey { manifestKey.symmetric() }
  var anchorOfFormatOne: SymmetricKey { anchorKey.symmetric() }

  /// The lookup tag of an identity: equal for equal ones, and it tells nothing else.
  package func tag(of identity: ItemIdentity) -> ItemTag {
    var writer = FieldWriter()
    ItemRecord.put(identity, into: &writer)
    return ItemTag(prefixOf: mac(writer.bytes, indexKey.symmetric()))
  }

  /// The digest of a leaf of the hash tree; `rows` are in order.
  package func digest(ofLeaf leaf: UInt64, _ rows: [ItemRow]) -> [UInt8] {
    var writer = FieldWriter(capacity: 12 + 40 * rows.count)
    writer.put(raw: Array("leaf".utf8))
    writer.put(raw: leaf)
    for row in rows {
      for word in [row.tag.high, row.tag.low, row.key.high, row.key.low, row.revision] {
        writer.put(raw: word)
      }
    }
    return Array(digest(of: writer).prefix(LeafLayout.digestSize))
  }

  /// The digest of a page of the hash tree: of the digests of its leaves.
  package func digest(ofPage page: UInt64, _ digests: [UInt8]) -> [UInt8] {
    var writer = FieldWriter(capacity: 12 + digests.count)
    writer.put(raw: Array("page".utf8))
    writer.put(raw: page)
    writer.put(raw: digests)
    return Array(digest(of: writer).prefix(LeafLayout.digestSize))
  }

  /// The term of a row in the sum of format 1: without the key it is not known which rows have which sum.
  package func witness(of item: ItemKey, revision: UInt64) -> Witness {
    var writer = FieldWriter(capacity: 24)
    writer.put(raw: item.bytes)
    writer.put(raw: revision)
    return switch witnessKey {
    case .some(let key): Witness(mac(writer.bytes, key.symmetric()))
    case .none: Witness()
    }
  }

  /// The keyed digest of a whole table, for the manifest.
  package func digest(of table: FieldWriter) -> [UInt8] {
    guard var code = digestCode else { return mac(table.bytes, digestKey.symmetric()) }
    code.update(data: table.bytes)
    return unsafe code.finalize().withUnsafeBytes { unsafe Array($0) }
  }

  /// Runs `body`, which makes several digests: the key is brought into the form of HMAC (RFC 2104) once for all of them, which
  /// takes longer than the digest of a leaf.
  package func makingDigests<Result: ~Copyable>(_ body: () throws -> Result) rethrows -> Result {
    guard digestCode == nil else { return try body() }
    digestCode = HMAC<SHA256>(key: digestKey.symmetric())
    defer { digestCode = nil }
    return try body()
  }

  private static func derive(_ keys: MasterKeys, _ header: VaultHeader, _ name: String) -> SymmetricKey {
    HKDF<SHA256>.deriveKey(
      inputKeyMaterial: keys.master, salt: header.store, info: header.format.info(name), outputByteCount: 32)
  }

  private func mac(_ content: [UInt8], _ key: SymmetricKey) -> [UInt8] {
    // An Array of the code itself would go through its generic iterator.
    unsafe HMAC<SHA256>.authenticationCode(for: content, using: key).withUnsafeBytes { unsafe Array($0) }
  }
}
