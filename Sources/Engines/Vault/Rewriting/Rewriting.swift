import Crypto
import FoundationEssentials
import GRDB
import Model
import SecretMemory
import Store
import VaultDatabase
import VaultRecords

/// Brings all rows of a vault under new keys, inside one write transaction: after a change of the passphrase, and when
/// an older format is upgraded.
///
/// A row that can't be opened here stays as it is: a damaged row stays damaged, and the class keys of other devices are
/// carried over with the earlier master key, which the new one seals.
struct Rewriting {
  private let database: Database
  private let directory: VaultDirectory
  /// Those of the vault as it was. Its tables are those that are written, or have other names.
  private let oldKeys: VaultKeys
  private let oldMaster: MasterKeys
  private let new: VaultKeys
  private let newMaster: MasterKeys
  private let oldRows: [UInt64: ClassKeyRow]
  private let oldClassKeys: ClassKeyring
  /// Class keys that were replaced, by their numbers, which stay.
  private var replaced: [UInt64: SymmetricKey] = [:]
  private(set) var manifest: Manifest
  private(set) var summary = RewritingSummary()

  init(
    _ database: Database, _ directory: VaultDirectory, _ oldKeys: VaultKeys, to master: MasterKeys,
    _ new: VaultKeys,
    _ manifest: Manifest
  ) throws {
    (self.database, self.directory, self.oldKeys) = (database, directory, oldKeys)
    (self.new, newMaster) = (new, master)
    oldMaster = try oldKeys.copyMasterKeys()
    oldClassKeys = ClassKeyring(oldKeys, directory)
    let rows = try ClassKeyRow.fetchAll(database, oldKeys.statements)
    oldRows = Dictionary(rows.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    self.manifest = manifest
    self.manifest.keysSince = manifest.generation
    self.manifest.count = 0
  }

  /// Class keys, items and secrets. The slots are the caller's, and then `manifest` has to be stored.
  ///
  /// `progress` is called with the number of items so far, and of all.
  mutating func run(_ progress: (_ done: Int, _ total: Int) -> Void = { _, _ in }) throws {
    try rewriteClassKeys()
    let keys = try ItemTable(database: database, keys: oldKeys).allKeys()
    for (index, key) in keys.enumerated() {
      try rewriteItem(key)
      progress(index + 1, keys.count)
    }
    _ = try manifest.advance()
    try DigestTable(database: database, keys: new).rebuild(&manifest)
  }
}

/// The result of a change of all keys.
struct RewritingSummary: Equatable {
  var items = 0
  /// Items whose metadata or secret did not open. They stay as they are.
  var damaged = 0
  /// Items of other devices, which only these open.
  var carried = 0
  /// Items of the class `whenPasscodeSetThisDeviceOnly`, deleted with the passphrase.
  var deleted = 0
}

// MARK: - Class keys

extension Rewriting {
  private mutating func rewriteClassKeys() throws {
    // A secret that opens here is opened before its row is deleted; so it stays known.
    for row in oldRows.values {
      guard let code = Accessibility(code: UInt8(truncatingIfNeeded: row.accessibility)) else { continue }
      _ = try? oldClassKeys.key(row.id, code, database)
    }
    if isInPlace { try database.execute(sql: "DELETE FROM class_key") }
    for row in oldRows.values.sorted(by: { $0.id < $1.id }) {
      if dropsPasscodeItems, row.accessibility == UInt64(Accessibility.whenPasscodeSetThisDeviceOnly.code) {
        continue
      }
      try rewrite(row).insert(database)
    }
  }

  private mutating func rewrite(_ row: ClassKeyRow) throws -> ClassKeyRow {
    guard let (accessibility, _) = try? row.open(oldMaster, oldKeys.header, device: directory.fetchDeviceKey)
    else {
      return (try? row.carried(from: oldMaster, oldKeys.header, to: newMaster, new.header)) ?? row
    }
    let device = try accessibility.isBoundToDevice ? directory.fetchDeviceKey() : nil
    let key = SymmetricKey(size: .bits256)
    replaced[row.id] = key
    return try ClassKeyRow.make(id: row.id, accessibility, device, key, newMaster, new.header)
  }

  private var isInPlace: Bool { oldKeys.tables == new.tables }

  private var dropsPasscodeItems: Bool { newMaster.passcode == nil }
}

// MARK: - Items

extension Rewriting {
  private mutating func rewriteItem(_ key: ItemKey) throws {
    guard let row = try? ItemTable(database: database, keys: oldKeys).fetch(key) else {
      return try keepDamaged(key)
    }
    if dropsPasscodeItems, row.record.item.accessibility == .whenPasscodeSetThisDeviceOnly {
      summary.deleted += 1
      return try delete(key)
    }
    summary.items += row.record.item.identity.isRemoved ? 0 : 1
    var done: Set<SecretPlace> = []
    try rewriteSecrets(key, row.record, &done)
    var rewritten = row
    rewritten.record.versions = try rewriteVersions(key, row.record, &done)
    rewritten.revision = try manifest.advance()
    rewritten.record.witness = nil
    if isInPlace { try ItemTable(database: database, keys: oldKeys).delete(key) }
    try ItemTable(database: database, keys: new).insert(rewritten)
    manifest.count += 1
  }

  private func delete(_ key: ItemKey) throws {
    guard isInPlace else { return }
    try ItemTable(database: database, keys: oldKeys).delete(key)
    try SecretTable(database: database, keys: oldKeys, classKeys: oldClassKeys, password: nil).delete(key)
    try VersionTable(database: database, keys: oldKeys).delete(key)
  }

  /// A row that doesn't open is counted by its columns, as always.
  private mutating func keepDamaged(_ key: ItemKey) throws {
    summary.damaged += 1
    guard try ItemTable(database: database, keys: oldKeys).fetchColumns(key) != nil else { return }
    if !isInPlace {
      for statement in new.statements.copies(from: oldKeys.statements) {
        let query = try Query(database, statement)
        query.bind(1, key)
        try query.run()
      }
    }
    manifest.count += 1
  }

  /// Returns the versions that are kept: not those that only the passphrase opened, where it was taken away.
  private mutating func rewriteVersions(
    _ key: ItemKey, _ record: ItemRecord, _ done: inout Set<SecretPlace>
  ) throws -> [UInt64] {
    guard isInPlace else { return record.versions }
    var kept: [UInt64] = []
    for revision in record.versions {
      guard let version = try? VersionTable(database: database, keys: oldKeys).fetch(key, revision) else {
        kept.append(revision)
        continue
      }
      if dropsPasscodeItems, version.item.accessibility == .whenPasscodeSetThisDeviceOnly {
        try VersionTable(database: database, keys: oldKeys).delete(key, revision)
        for place in version.places(key) where !done.contains(place) { try delete(place) }
        continue
      }
      _ = try manifest.advance()
      try rewriteSecrets(key, version, &done)
      try VersionTable(database: database, keys: new).put(version, key, revision)
      kept.append(revision)
    }
    return kept
  }
}

// MARK: - Secrets

extension Rewriting {
  /// `done`: the secrets of the item that were rewritten already, which a version has as well.
  private mutating func rewriteSecrets(
    _ key: ItemKey, _ record: ItemRecord, _ done: inout Set<SecretPlace>
  ) throws {
    for place in record.places(key) where done.insert(place).inserted {
      guard let row = try? secrets(oldKeys).row(place) else {
        summary.damaged += 1
        continue
      }
      _ = try manifest.advance()
      let rewritten = try rewrite(row, record)
      if isInPlace { try delete(row.place) }
      try rewritten.insert(database, new.statements)
    }
  }

  private mutating func rewrite(_ row: SecretRow, _ record: ItemRecord) throws -> SecretRow {
    guard let classKey = replaced[row.classKey] else {
      summary.carried += 1
      return try carried(row)
    }
    do {
      let kind = try SecretKind(row.kind, in: oldKeys.format)
      return try kind.takesPassword
        ? rewrapped(row, kind, record, classKey) : resealed(row, kind, record, classKey)
    } catch StoreError.damaged {
      summary.damaged += 1
      return row
    }
  }

  /// Of a class key that can't be opened here. Only the number of its kind says which format sealed it.
  private func carried(_ row: SecretRow) throws -> SecretRow {
    var row = row
    row.kind = (try? SecretKind(row.kind, in: oldKeys.format))?.rawValue ?? row.kind
    return row
  }

  /// Opened, and sealed under a new key of its own.
  private func resealed(
    _ row: SecretRow, _ kind: SecretKind, _ record: ItemRecord, _ classKey: SymmetricKey
  ) throws -> SecretRow {
    let sealed = try secrets(oldKeys).fetchSealed(row.place, record)
    let secret = try secrets(oldKeys).open(sealed)
    let binding = secrets(new).bindings(
      row.place, SecretFacts(record), classKey: row.classKey, kind.resealed, []
    ).outer
    let valueKey = SymmetricKey(size: .bits256)
    var row = row
    row.kind = kind.resealed.rawValue
    row.wrapped = try Array(Cipher.seal(key: valueKey, under: classKey, boundTo: binding.bytes))
    row.sealed = try Array(
      Cipher.seal(secret: secret, under: valueKey, boundTo: binding.bytes(for: .value)))
    return row
  }

  /// The part that the item's password seals stays; the seal around it is made again.
  private func rewrapped(
    _ row: SecretRow, _ kind: SecretKind, _ record: ItemRecord, _ classKey: SymmetricKey
  ) throws -> SecretRow {
    let sealed = try secrets(oldKeys).fetchSealed(row.place, record)
    let inner = try sealed.passwordSeal(under: secrets(oldKeys).classKey(of: sealed))
    let binding = secrets(new).bindings(
      row.place, SecretFacts(record), classKey: row.classKey, kind.resealed, row.parameters
    ).outer
    var row = row
    row.kind = kind.resealed.rawValue
    row.wrapped = try Array(Cipher.seal(sealed: inner, under: classKey, boundTo: binding.bytes))
    return row
  }

  private func secrets(_ keys: VaultKeys) -> SecretTable {
    SecretTable(database: database, keys: keys, classKeys: oldClassKeys, password: nil)
  }

  private func delete(_ place: SecretPlace) throws {
    let query = try Query(database, new.statements.deleteSecret)
    query.bind(1, place.item)
    query.bind(2, UInt64(place.part))
    query.bind(3, place.revision)
    try query.run()
  }
}
