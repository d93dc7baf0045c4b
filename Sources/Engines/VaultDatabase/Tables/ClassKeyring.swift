package import Crypto
import FoundationEssentials
package import GRDB
package import Model
package import VaultRecords

/// The class keys that are open: one or more for each accessibility class, each to be dropped alone.
///
/// Class keys are made when a class is first used. Those of …ThisDeviceOnly classes exist once for each
/// device; a vault that came from elsewhere gets new ones and keeps the others.
package final class ClassKeyring {
  private final class ClassKey {
    /// The row that it was opened from.
    let row: ClassKeyRow
    let accessibility: Accessibility
    let key: StoredKey

    init(_ row: ClassKeyRow, _ accessibility: Accessibility, _ key: consuming StoredKey) {
      self.row = row
      self.accessibility = accessibility
      self.key = key
    }
  }

  private let keys: VaultKeys
  private let directory: VaultDirectory
  private var open: [UInt64: ClassKey] = [:]
  /// The key with which each class's new secrets are sealed.
  private var current: [Accessibility: UInt64] = [:]
  /// Class keys that the present transaction made.
  private var made: Set<UInt64> = []
  /// The manifest's sum of the table that the open keys are of; nil: it is not known.
  private var digest: [UInt8]?

  package init(_ keys: VaultKeys, _ directory: VaultDirectory) {
    self.keys = keys
    self.directory = directory
  }

  /// The class key with this number.
  ///
  /// - Throws: `damaged`, also for a key of another class; `accessDenied` for another device's.
  package func key(
    _ id: UInt64, _ accessibility: Accessibility, _ database: Database
  ) throws -> SymmetricKey {
    if open[id] == nil { try unlock(id, database) }
    guard let found = open[id], found.accessibility == accessibility else {
      throw StoreError.damaged(what: "a class key")
    }
    return found.key.symmetric()
  }

  /// Whether the class key with this number is open.
  package func isOpen(_ id: UInt64) -> Bool { open[id] != nil }

  /// The class key for new secrets, made now where this device has none. Needs a write transaction.
  func currentKey(_ accessibility: Accessibility, _ database: Database) throws -> (UInt64, SymmetricKey) {
    if current[accessibility] == nil {
      current[accessibility] = try find(accessibility, database) ?? make(accessibility, database)
    }
    let id = current[accessibility] ?? 0
    return (id, try key(id, accessibility, database))
  }

  /// The rows without those that the present transaction made: as the table was before.
  package func earlier(_ rows: [ClassKeyRow]) -> [ClassKeyRow] { rows.filter { !made.contains($0.id) } }

  /// Drops the keys that the table does not have any more, where it is not the one that they were opened from: another
  /// copy of the vault was put in its place. `digest`: the manifest's sum of the table.
  package func follow(_ digest: [UInt8], _ database: Database) throws {
    guard digest != self.digest else { return }
    let rows = try rows(database)
    open = open.filter { id, key in rows.contains(key.row) }
    current = [:]
    // A table that does not fit may be half-written.
    self.digest = keys.digest(of: ClassKeyRow.fields(of: rows)) == digest ? digest : nil
  }

  /// The transaction is over: what it made is there to stay, and `digest` is the sum of the table; or it was rolled back.
  package func settle(committed digest: [UInt8]?) {
    if digest == nil {
      for id in made { open[id] = nil }
      current = [:]
    }
    self.digest = digest
    made = []
  }

  /// Drops the class keys that a lock closes. What stays readable is opened first: without the master key
  /// no class key opens.
  package func lock(_ database: Database) throws {
    defer { open = open.filter { $0.value.accessibility.survivesLock } }
    let rows = try rows(database)
    open = open.filter { id, key in rows.contains(key.row) }
    for id in try lasting(database) where open[id] == nil { try? unlock(id, database) }
  }
}

extension ClassKeyring {
  private func rows(_ database: Database) throws -> [ClassKeyRow] {
    try ClassKeyRow.fetchAll(database, keys.statements)
  }

  /// This device's class keys that outlast a lock.
  private func lasting(_ database: Database) throws -> [UInt64] {
    let classes = Set(Accessibility.allCases.filter(\.survivesLock).map { UInt64($0.code) })
    return try rows(database).filter { classes.contains($0.accessibility) }.map(\.id)
  }

  private func unlock(_ id: UInt64, _ database: Database) throws {
    guard let row = try rows(database).first(where: { $0.id == id }) else {
      throw StoreError.damaged(what: "a class key")
    }
    let (accessibility, key) = try row.open(
      keys.copyMasterKeys(), keys.header, device: directory.fetchDeviceKey)
    open[id] = ClassKey(row, accessibility, try StoredKey(key))
  }

  /// The newest one of this device that no earlier master key opens.
  private func find(_ accessibility: Accessibility, _ database: Database) throws -> UInt64? {
    let device = try accessibility.isBoundToDevice ? directory.fetchDeviceKey() : nil
    var id = DeviceKey.anyID
    switch device {
    case .some(let device): id = device.id
    case .none: guard !accessibility.isBoundToDevice else { return nil }
    }
    return try rows(database).last {
      $0.accessibility == UInt64(accessibility.code) && $0.device == id
        && $0.kind == ClassKeyRow.Kind.present.rawValue
    }?.id
  }

  private func make(_ accessibility: Accessibility, _ database: Database) throws -> UInt64 {
    let id = (try rows(database).map(\.id).max() ?? 0) &+ 1
    let device: DeviceKey? = try accessibility.isBoundToDevice ? directory.makeDeviceKey() : nil
    let row = try ClassKeyRow.make(
      id: id, accessibility, device, SymmetricKey(size: .bits256), keys.copyMasterKeys(), keys.header)
    try row.insert(database)
    made.insert(id)
    return id
  }
}
