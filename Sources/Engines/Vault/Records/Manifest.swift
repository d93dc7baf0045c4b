import Crypto
import FoundationEssentials
import GRDB
import Model
import Platform

/// The required state of the vault's tables. Sealed, and replaced in every transaction that changes a row.
struct Manifest: Equatable {
  /// Grows with every row that is written; no number is used twice.
  var generation: UInt64 = 0
  /// The generation at which the present master key was made.
  var keysSince: UInt64 = 0
  /// How many rows the table of items has.
  var count: UInt64 = 0
  var sum = Witness()
  /// The keyed digest of all slots.
  var slots: [UInt8] = []
  /// The keyed digest of all class keys.
  var classKeys: [UInt8] = []
  /// Whether a slot takes a passphrase.
  var takesPassphrase = false
  /// When the vault was last changed.
  var changed = Timestamp(seconds: 0)
  /// The key of the anchors and of the devices' numbers. It outlasts a change of the master key.
  var anchorKey = SymmetricKey(size: .bits256)
  /// The devices that have an anchor, by `MachineIdentity.device`.
  var devices: Set<[UInt8]> = []

  /// So many blobs may be sealed under one key with random nonces (NIST SP 800-38D, 8.3).
  private static let mostSeals: UInt64 = 1 << 32
  /// A list of devices does not grow without bounds.
  static let mostDevices = 256

  /// The number of the next row to be written.
  mutating func advance() throws(StoreError) -> UInt64 {
    guard generation &- keysSince < Self.mostSeals else {
      throw .readOnly(
        reason:
          "the vault's keys are used up: `keyhole passphrase` makes new ones, also with the same passphrase")
    }
    generation += 1
    return generation
  }

  /// Counts seals that were made by transactions which failed.
  mutating func skip(_ count: UInt64) {
    let (sum, overflow) = generation.addingReportingOverflow(count)
    if !overflow { generation = sum }
  }

  mutating func add(_ witness: Witness) {
    count &+= 1
    sum += witness
  }

  mutating func remove(_ witness: Witness) {
    count &-= 1
    sum -= witness
  }

  /// The state as it is shown to a person.
  var state: VaultState { VaultState(generation: generation, changed: changed, items: count) }
}

extension Manifest {
  private enum Tag {
    static let generation: UInt8 = 1
    static let keysSince: UInt8 = 2
    static let count: UInt8 = 3
    static let sum: UInt8 = 4
    static let slots: UInt8 = 5
    static let classKeys: UInt8 = 6
    static let takesPassphrase: UInt8 = 7
    static let changed: UInt8 = 8
    static let anchorKey: UInt8 = 9
    static let device: UInt8 = 10
  }

  /// - Throws: `damaged` also where there is none.
  static func fetch(_ database: Database, _ keys: VaultKeys) throws -> Manifest {
    let query = try Query(database, "SELECT sealed FROM manifest WHERE id = 1")
    guard try query.step() else { throw StoreError.damaged(what: "the manifest") }
    return try Sealing.open(query.bytes(0), under: keys.manifest, boundTo: binding(keys)) {
      guard keys.format >= .two else { return try Manifest(formatOne: $0, keys) }
      return try Manifest($0)
    }
  }

  /// nil: it is damaged or gone.
  static func fetchIfWhole(_ database: Database, _ keys: VaultKeys) throws -> Manifest? {
    do {
      return try fetch(database, keys)
    } catch StoreError.damaged {
      return nil
    }
  }

  /// Stores it with digests of the tables as they are now, and the time.
  mutating func store(_ database: Database, _ keys: VaultKeys) throws {
    let digests = try Digests(database, keys)
    (slots, classKeys, takesPassphrase) = (digests.slots, digests.classKeys, digests.takesPassphrase)
    changed = max(.now, changed)
    let sealed = try Sealing.seal(encoded, under: keys.manifest, boundTo: Self.binding(keys))
    let query = try Query(database, "INSERT OR REPLACE INTO manifest (id, sealed) VALUES (1, ?)")
    query.bind(1, sealed)
    try query.run()
  }

  private static func binding(_ keys: VaultKeys) -> [UInt8] {
    Binding.manifest(keys.format, store: keys.store, keys.header).bytes
  }

  var encoded: [UInt8] {
    var writer = FieldWriter(capacity: 256)
    writer.put(Tag.generation, generation)
    writer.put(Tag.keysSince, keysSince)
    writer.put(Tag.count, count)
    writer.put(Tag.sum, sum.bytes)
    writer.put(Tag.slots, slots)
    writer.put(Tag.classKeys, classKeys)
    writer.put(Tag.takesPassphrase, CollectionOfOne(takesPassphrase ? 1 : 0))
    writer.put(Tag.changed, ItemRecord.encode(changed))
    writer.put(Tag.anchorKey, anchorKey.array)
    for device in devices.sorted(by: { $0.lexicographicallyPrecedes($1) }) { writer.put(Tag.device, device) }
    return writer.bytes
  }

  init(_ bytes: Span<UInt8>) throws {
    var reader = FieldReader(bytes)
    while let field = try reader.next() { try take(field) }
    guard slots.count == 32, classKeys.count == 32 else { throw StoreError.damaged(what: "the manifest") }
  }

  private mutating func take(_ field: Field) throws {
    switch field.tag {
    case Tag.generation: generation = try field.integer(UInt64.self)
    case Tag.keysSince: keysSince = try field.integer(UInt64.self)
    case Tag.count: count = try field.integer(UInt64.self)
    case Tag.sum: sum = try ItemRecord.witness(field)
    case Tag.slots: slots = field.bytes.array
    case Tag.classKeys: classKeys = field.bytes.array
    case Tag.takesPassphrase: takesPassphrase = try field.integer(UInt8.self) != 0
    case Tag.changed: changed = try ItemRecord.time(field)
    case Tag.anchorKey: anchorKey = SymmetricKey(copying: field.bytes)
    case Tag.device: devices.insert(field.bytes.array)
    default: throw StoreError.damaged(what: "the manifest")
    }
  }

  /// Format 1 has the first three fields only, one after the other.
  private init(formatOne bytes: Span<UInt8>, _ keys: VaultKeys) throws {
    var reader = FieldReader(bytes)
    generation = try reader.integer(UInt64.self)
    count = try reader.integer(UInt64.self)
    sum = try Witness(reading: &reader)
    anchorKey = keys.anchorOfFormatOne
  }
}

extension Manifest {
  /// The manifest's sums of the tables of slots and class keys.
  struct Digests: Equatable {
    var slots: [UInt8]
    var classKeys: [UInt8]
    var takesPassphrase: Bool

    /// Those of the tables as they are.
    init(_ database: Database, _ keys: VaultKeys) throws {
      let slots = try KeySlot.fetchAll(database, keys.format)
      self.slots = keys.digest(of: KeySlot.fields(of: slots))
      takesPassphrase = slots.contains(where: \.takesPassphrase)
      classKeys = keys.digest(of: ClassKeyRow.fields(of: try ClassKeyRow.fetchAll(database, keys.statements)))
    }
  }

  /// Why the tables are not those that it was stored with; nil: they are.
  func reasonForDistrust(_ digests: Digests) -> String? {
    guard slots == digests.slots, takesPassphrase == digests.takesPassphrase else {
      return
        "its key slots are not those that Keyhole stored: an older one was put back, or one added or deleted"
    }
    guard classKeys == digests.classKeys else {
      return
        "its class keys are not those that Keyhole stored: an older one was put back, or one added or deleted"
    }
    return nil
  }
}
