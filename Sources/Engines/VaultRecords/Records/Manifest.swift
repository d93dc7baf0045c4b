package import Crypto
package import FoundationEssentials
package import Model
import Platform

/// The required state of the vault's tables. Sealed, and replaced in every transaction that changes a row.
package struct Manifest: Equatable {
  /// Grows with every row that is written; no number is used twice.
  package var generation: UInt64 = 0
  /// The generation at which the present master key was made.
  package var keysSince: UInt64 = 0
  /// How many rows the table of items has.
  package var count: UInt64 = 0
  /// How the rows are divided among the leaves of the hash tree.
  package var leaves = LeafLayout.one
  /// The digests of the pages of the hash tree, 16 bytes each.
  package var pages: [UInt8] = []
  /// The rows that were inserted (1) and deleted (-1) since the manifest was read. `DigestTable.update` takes them.
  package var rowChanges: [ItemRow: Int] = [:]
  /// Whether there is the item that keeps the rules of folders: where it is missing then, the rules are not none.
  package var hasRules = false
  /// The sum of all witnesses in format 1, which has no hash tree.
  package private(set) var sum = Witness()
  /// The keyed digest of all slots.
  package var slots: [UInt8] = []
  /// The keyed digest of all class keys.
  package var classKeys: [UInt8] = []
  /// Whether a slot takes a passphrase.
  package var takesPassphrase = false
  /// When the vault was last changed.
  package var changed = Timestamp(seconds: 0)
  /// The key of the anchors and of the devices' numbers. It outlasts a change of the master key.
  package var anchorKey: SymmetricKey
  /// The devices that have an anchor, by `MachineIdentity.device`, each once.
  package var devices: [[UInt8]] = []

  /// Of a new vault.
  package init() {
    anchorKey = SymmetricKey(size: .bits256)
  }

  /// To be filled. A random key for each would cost four calls of the system.
  private init(anchorKey: SymmetricKey) {
    self.anchorKey = anchorKey
  }

  /// So many blobs may be sealed under one key with random nonces (NIST SP 800-38D, 8.3).
  private static let mostSeals: UInt64 = 1 << 32
  /// A list of devices does not grow without bounds.
  package static let mostDevices = 256

  /// The number of the next row to be written.
  package mutating func advance() throws(StoreError) -> UInt64 {
    guard generation &- keysSince < Self.mostSeals else {
      throw .readOnly(
        reason:
          "the vault's keys are used up: `keyhole passphrase` makes new ones, also with the same passphrase")
    }
    generation += 1
    return generation
  }

  /// Counts seals that were made by transactions which failed.
  package mutating func skip(_ count: UInt64) {
    let (sum, overflow) = generation.addingReportingOverflow(count)
    if !overflow { generation = sum }
  }

  /// Lists a device as one that has an anchor.
  package mutating func add(device: [UInt8]) {
    if !devices.contains(device) { devices.append(device) }
  }

  /// Notes a row that was inserted.
  package mutating func add(_ row: ItemRow) {
    count &+= 1
    rowChanges[row, default: 0] += 1
  }

  /// Notes a row that was deleted.
  package mutating func remove(_ row: ItemRow) {
    // Of a vault that was edited there may be more than the manifest counts; then the proof fails.
    if count > 0 { count -= 1 }
    rowChanges[row, default: 0] -= 1
  }

  /// The state as it is shown to a person.
  package var state: VaultState { VaultState(generation: generation, changed: changed, items: count) }
}

extension Manifest {
  private enum Tag {
    static let generation: UInt8 = 1
    static let keysSince: UInt8 = 2
    static let count: UInt8 = 3
    static let tree: UInt8 = 4
    static let slots: UInt8 = 5
    static let classKeys: UInt8 = 6
    static let takesPassphrase: UInt8 = 7
    static let changed: UInt8 = 8
    static let anchorKey: UInt8 = 9
    static let device: UInt8 = 10
    static let hasRules: UInt8 = 11
  }

  /// Opens what `seal` sealed. - Throws: `damaged`.
  package init(opening sealed: [UInt8], _ keys: VaultKeys) throws {
    self = try Cipher.open(sealed, under: keys.manifest, boundTo: Self.binding(keys)) {
      guard keys.format >= .two else { return try Manifest(formatOne: $0, keys) }
      return try Manifest($0)
    }
  }

  /// Takes the digests of the tables, and the time, and seals all.
  package mutating func seal(with digests: Digests, _ keys: VaultKeys) throws -> Data {
    (slots, classKeys, takesPassphrase) = (digests.slots, digests.classKeys, digests.takesPassphrase)
    changed = max(.now, changed)
    return try Cipher.seal(encoded, under: keys.manifest, boundTo: Self.binding(keys))
  }

  private static func binding(_ keys: VaultKeys) -> [UInt8] {
    Binding.manifest(keys.format, store: keys.store, keys.header).bytes
  }

  package var encoded: [UInt8] {
    var writer = FieldWriter(capacity: 256)
    writer.put(Tag.generation, generation)
    writer.put(Tag.keysSince, keysSince)
    writer.put(Tag.count, count)
    writer.put(Tag.tree, encodedTree)
    writer.put(Tag.slots, slots)
    writer.put(Tag.classKeys, classKeys)
    writer.put(Tag.takesPassphrase, CollectionOfOne(takesPassphrase ? 1 : 0))
    writer.put(Tag.changed, ItemRecord.encode(changed))
    writer.put(Tag.anchorKey, anchorKey.array)
    for device in devices.sorted(by: { $0.lexicographicallyPrecedes($1) }) { writer.put(Tag.device, device) }
    writer.put(Tag.hasRules, CollectionOfOne(hasRules ? 1 : 0))
    return writer.bytes
  }

  package init(_ bytes: Span<UInt8>) throws {
    self.init(anchorKey: SymmetricKey(data: []))
    var reader = FieldReader(bytes)
    while let field = try reader.next() { try take(field) }
    guard slots.count == 32, classKeys.count == 32, anchorKey.bitCount == 256, !pages.isEmpty else {
      throw StoreError.damaged(what: "the manifest")
    }
  }

  private mutating func take(_ field: Field) throws {
    switch field.tag {
    case Tag.generation: generation = try field.integer(UInt64.self)
    case Tag.keysSince: keysSince = try field.integer(UInt64.self)
    case Tag.count: count = try field.integer(UInt64.self)
    case Tag.tree: try takeTree(field)
    case Tag.slots: slots = field.bytes.array
    case Tag.classKeys: classKeys = field.bytes.array
    case Tag.takesPassphrase: takesPassphrase = try field.integer(UInt8.self) != 0
    case Tag.changed: changed = try ItemRecord.time(field)
    case Tag.anchorKey: anchorKey = SymmetricKey(copying: field.bytes)
    case Tag.device: devices.append(field.bytes.array)
    case Tag.hasRules: hasRules = try field.integer(UInt8.self) != 0
    default: throw StoreError.damaged(what: "the manifest")
    }
  }

  private var encodedTree: [UInt8] {
    var writer = FieldWriter(capacity: 8 + pages.count)
    writer.put(raw: leaves.count)
    writer.put(raw: pages)
    return writer.bytes
  }

  private mutating func takeTree(_ field: Field) throws {
    var reader = FieldReader(field.bytes)
    guard let layout = LeafLayout(count: try reader.integer(UInt64.self)) else {
      throw StoreError.damaged(what: "the manifest")
    }
    (leaves, pages) = (layout, reader.remainder.array)
    guard UInt64(pages.count) == leaves.pageCount * UInt64(LeafLayout.digestSize) else {
      throw StoreError.damaged(what: "the manifest")
    }
  }

  /// Format 1 has the first three fields only, one after the other.
  private init(formatOne bytes: Span<UInt8>, _ keys: VaultKeys) throws {
    self.init(anchorKey: keys.anchorOfFormatOne)
    var reader = FieldReader(bytes)
    generation = try reader.integer(UInt64.self)
    count = try reader.integer(UInt64.self)
    sum = try Witness(reading: &reader)
  }
}

extension Manifest {
  /// The manifest's sums of the tables of slots and class keys.
  package struct Digests: Equatable {
    package var slots: [UInt8]
    package var classKeys: [UInt8]
    package var takesPassphrase: Bool

    package init(_ slots: [KeySlot], _ classKeys: [ClassKeyRow], _ keys: VaultKeys) {
      self.slots = keys.digest(of: KeySlot.fields(of: slots))
      takesPassphrase = slots.contains(where: \.takesPassphrase)
      self.classKeys = keys.digest(of: ClassKeyRow.fields(of: classKeys))
    }
  }

  /// Why the tables are not those that it was stored with; nil: they are.
  package func reasonForDistrust(_ digests: Digests) -> String? {
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
