import Crypto
import FoundationEssentials
import GRDB
import Model

/// The class keys that are open: one or more for each accessibility class, each to be dropped alone.
///
/// Class keys are made when a class is first used. Those of …ThisDeviceOnly classes exist once for each
/// device; a vault that came from elsewhere gets new ones and keeps the others.
final class ClassKeyring {
  private final class ClassKey {
    let accessibility: Accessibility
    let key: StoredKey

    init(_ accessibility: Accessibility, _ key: consuming StoredKey) {
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
  private var made: [UInt64] = []

  init(_ keys: VaultKeys, _ directory: VaultDirectory) {
    self.keys = keys
    self.directory = directory
  }

  /// The class key with this number.
  ///
  /// - Throws: `damaged`, also for a key of another class; `accessDenied` for another device's.
  func key(_ id: UInt64, _ accessibility: Accessibility, _ database: Database) throws -> SymmetricKey {
    if open[id] == nil { try unlock(id, database) }
    guard let found = open[id], found.accessibility == accessibility else {
      throw StoreError.damaged(what: "a class key")
    }
    return found.key.symmetric()
  }

  /// The class key with this number where it is open.
  func opened(_ id: UInt64) -> SymmetricKey? { open[id]?.key.symmetric() }

  /// The class key for new secrets, made now where this device has none. Needs a write transaction.
  func currentKey(_ accessibility: Accessibility, _ database: Database) throws -> (UInt64, SymmetricKey) {
    if current[accessibility] == nil {
      current[accessibility] = try find(accessibility, database) ?? make(accessibility, database)
    }
    let id = current[accessibility] ?? 0
    return (id, try key(id, accessibility, database))
  }

  /// The transaction is over: what it made is there to stay, or was rolled back.
  func settle(committed: Bool) {
    if !committed {
      for id in made { open[id] = nil }
      current = [:]
    }
    made = []
  }

  /// Drops the class keys that a lock closes. What stays readable is opened first: once the master key is
  /// gone, no class key opens any more.
  func lock(_ database: Database) throws {
    defer { open = open.filter { $0.value.accessibility.survivesLock } }
    for id in try lasting(database) where open[id] == nil { try? unlock(id, database) }
  }
}

extension ClassKeyring {
  /// This device's class keys that outlast a lock.
  private func lasting(_ database: Database) throws -> [UInt64] {
    var found: [UInt64] = []
    for accessibility in Accessibility.allCases where accessibility.survivesLock {
      let device = try device(accessibility)
      let query = try Query(database, "SELECT id FROM class_key WHERE class = ? AND device = ?")
      query.bind(1, UInt64(accessibility.code))
      query.bind(2, device.id ?? DeviceKey.anyID)
      while try query.step() { found.append(query.integer(0)) }
    }
    return found
  }

  private func unlock(_ id: UInt64, _ database: Database) throws {
    let query = try Query(database, "SELECT class, device, sealed FROM class_key WHERE id = ?")
    query.bind(1, id)
    guard try query.step(),
      let accessibility = Accessibility(code: UInt8(truncatingIfNeeded: query.integer(0)))
    else { throw StoreError.damaged(what: "a class key") }
    let device = try device(accessibility)
    let deviceID = device.id ?? DeviceKey.anyID
    guard query.bytes(1) == deviceID else { throw otherDevice(accessibility) }
    let wrap = try keys.classKeyWrap(accessibility, device: device.key)
    let binding = Binding.classKey(store: keys.store, id: id, class: accessibility.code, device: deviceID)
    let key = try unsafe Sealing.openKey(
      Sealing.box(query.blob(2)), under: wrap, boundTo: binding.bytes)
    open[id] = ClassKey(accessibility, try StoredKey(key))
  }

  private func find(_ accessibility: Accessibility, _ database: Database) throws -> UInt64? {
    let device = try device(accessibility)
    guard !accessibility.isBoundToDevice || device.id != nil else { return nil }
    let query = try Query(
      database, "SELECT id FROM class_key WHERE class = ? AND device = ? ORDER BY id DESC")
    query.bind(1, UInt64(accessibility.code))
    query.bind(2, device.id ?? DeviceKey.anyID)
    return try query.step() ? query.integer(0) : nil
  }

  private func make(_ accessibility: Accessibility, _ database: Database) throws -> UInt64 {
    if accessibility.isBoundToDevice { _ = try directory.makeDeviceKey() }
    let device = try device(accessibility)
    let deviceID = device.id ?? DeviceKey.anyID
    let id = try nextID(database)
    let wrap = try keys.classKeyWrap(accessibility, device: device.key)
    let binding = Binding.classKey(store: keys.store, id: id, class: accessibility.code, device: deviceID)
    let sealed = try Sealing.seal(key: SymmetricKey(size: .bits256), under: wrap, boundTo: binding.bytes)
    let query = try Query(database, "INSERT INTO class_key (id, class, device, sealed) VALUES (?, ?, ?, ?)")
    query.bind(1, id)
    query.bind(2, UInt64(accessibility.code))
    query.bind(3, deviceID)
    query.bind(4, sealed)
    try query.run()
    made.append(id)
    return id
  }

  private func nextID(_ database: Database) throws -> UInt64 {
    let query = try Query(database, "SELECT coalesce(max(id), 0) FROM class_key")
    return try query.step() ? query.integer(0) &+ 1 : 1
  }

  /// The device key where the class needs one.
  private struct Device: ~Copyable {
    var key: DeviceKey?
    var id: [UInt8]?
  }

  private func device(_ accessibility: Accessibility) throws -> Device {
    guard accessibility.isBoundToDevice else { return Device(key: nil, id: nil) }
    guard let key = try directory.fetchDeviceKey() else { return Device(key: nil, id: nil) }
    let id = key.id
    return Device(key: consume key, id: id)
  }

  private func otherDevice(_ accessibility: Accessibility) -> StoreError {
    guard accessibility.isBoundToDevice else { return .damaged(what: "a class key") }
    return .accessDenied(reason: "the secret can be read on the device that stored it only")
  }
}
