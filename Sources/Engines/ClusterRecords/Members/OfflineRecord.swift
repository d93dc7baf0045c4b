package import Crypto
package import Model
import Platform
package import VaultRecords

/// The records that open a store for a member, as the cluster has them: the list of members, the master key sealed to the member, and
/// the ring.
package struct KeyRecords: Hashable, Sendable {
  /// The entries of the list of members.
  package var log: [[UInt8]]
  /// nil: there is none for this member.
  package var slot: [UInt8]?
  package var ring: [UInt8]?
  /// The version of the ring's key.
  package var ringVersion: UInt64

  package init(log: [[UInt8]], slot: [UInt8]?, ring: [UInt8]?, ringVersion: UInt64) {
    (self.log, self.slot, self.ring, self.ringVersion) = (log, slot, ring, ringVersion)
  }
}

/// The copy of a keychain that a device keeps for the time when the cluster does not answer.
///
/// The secrets in it are sealed as the cluster has them: what a lock takes, it takes of the copy too.
package struct OfflineRecord: Hashable, Sendable {
  /// How large the content of the file is at most, in bytes.
  package static let largest = 32 << 20

  /// The cluster that it was read from.
  package var cluster: UInt64
  /// When the cluster was read last, by this device's clock.
  package var time: Timestamp
  package var keys: KeyRecords
  package var items: CollectionRecord
  /// The sealed secrets.
  package var secrets: [SecretPlace: [UInt8]]

  package init(
    cluster: UInt64, time: Timestamp, keys: KeyRecords, items: CollectionRecord,
    secrets: [SecretPlace: [UInt8]]
  ) {
    (self.cluster, self.time, self.keys) = (cluster, time, keys)
    (self.items, self.secrets) = (items, secrets)
  }

  /// The key that seals the file of a device. - Throws: `outOfMemory`.
  package static func key(_ member: MemberSecret, _ store: ItemKey) throws(StoreError) -> SymmetricKey {
    try member.localKey("offline", store)
  }

  /// The associated data of the file.
  private static func binding(_ store: ItemKey, _ device: ItemKey) -> [UInt8] {
    var writer = FieldWriter(capacity: 64)
    writer.put(raw: "\(ClusterFormat.prefix)/offline".utf8)
    writer.put(1, store)
    writer.put(2, device)
    return writer.bytes
  }
}

// MARK: - The file

extension OfflineRecord {
  private enum Tag {
    static let cluster: UInt8 = 1
    static let time: UInt8 = 2
    static let log: UInt8 = 3
    static let slot: UInt8 = 4
    static let ring: UInt8 = 5
    static let head: UInt8 = 6
    static let entry: UInt8 = 7
    static let secret: UInt8 = 8
  }

  private static var damage: StoreError { .damaged(what: "the copy of the secrets on this device") }

  /// The file: a byte for the format, and the seal. - Throws: `tooLarge`.
  package func sealed(
    _ key: SymmetricKey, of store: ItemKey, _ device: ItemKey
  ) throws(StoreError) -> [UInt8] {
    let content = encoded
    guard content.count <= Self.largest else { throw .tooLarge(limit: Self.largest) }
    do {
      let sealed = try Cipher.seal(content, under: key, boundTo: Self.binding(store, device))
      return [ClusterFormat.version] + Array(sealed)
    } catch { throw StoreError(cluster: error) }
  }

  /// - Throws: `damaged` for a file that was changed, or is another device's.
  package init(
    opening file: [UInt8], _ key: SymmetricKey, of store: ItemKey, _ device: ItemKey
  ) throws(StoreError) {
    guard file.first == ClusterFormat.version else { throw Self.damage }
    do {
      self = try Cipher.open(Array(file.dropFirst()), under: key, boundTo: Self.binding(store, device)) {
        try OfflineRecord($0)
      }
    } catch { throw Self.damage }
  }

  private var encoded: [UInt8] {
    var writer = FieldWriter(capacity: 4096 + items.entries.count * 1024)
    writer.put(Tag.cluster, cluster)
    writer.put(Tag.time, ItemRecord.encode(time))
    for entry in keys.log { writer.put(Tag.log, entry) }
    if let slot = keys.slot { writer.put(Tag.slot, slot) }
    if let ring = keys.ring {
      var field = FieldWriter(capacity: 8 + ring.count)
      field.put(raw: keys.ringVersion)
      field.put(raw: ring)
      writer.put(Tag.ring, field.bytes)
    }
    var head = FieldWriter(capacity: 512)
    head.put(raw: items.version)
    head.put(raw: items.epoch)
    head.put(raw: UInt64(clamping: items.modified))
    head.put(raw: items.head.encoded)
    writer.put(Tag.head, head.bytes)
    for entry in items.entries { writer.put(Tag.entry, Self.encode(entry)) }
    for (place, secret) in secrets {
      var field = FieldWriter(capacity: 25 + secret.count)
      field.put(raw: place.item.high)
      field.put(raw: place.item.low)
      field.put(raw: place.part)
      field.put(raw: place.revision)
      field.put(raw: secret)
      writer.put(Tag.secret, field.bytes)
    }
    return writer.bytes
  }

  private static func encode(_ entry: CollectionRecord.Entry) -> [UInt8] {
    var writer = FieldWriter(capacity: 40 + entry.content.count)
    for number in [
      entry.id.high, entry.id.low, entry.state.version, entry.state.operation.number.high,
      entry.state.operation.number.low,
    ] { writer.put(raw: number) }
    writer.put(raw: entry.content)
    return writer.bytes
  }

  private init(_ bytes: Span<UInt8>) throws(StoreError) {
    var (cluster, time): (UInt64?, Timestamp?) = (nil, nil)
    var keys = KeyRecords(log: [], slot: nil, ring: nil, ringVersion: 0)
    var items: CollectionRecord?
    var entries: [CollectionRecord.Entry] = []
    var secrets: [SecretPlace: [UInt8]] = [:]
    var reader = FieldReader(bytes)
    while let field = try reader.next() {
      switch field.tag {
      case Tag.cluster: cluster = try field.integer(UInt64.self)
      case Tag.time: time = try ItemRecord.time(field)
      case Tag.log: keys.log.append(field.bytes.array)
      case Tag.slot: keys.slot = field.bytes.array
      case Tag.ring:
        var ring = FieldReader(field.bytes)
        keys.ringVersion = try ring.integer(UInt64.self)
        keys.ring = ring.remainder.array
      case Tag.head: items = try Self.items(field.bytes)
      case Tag.entry: entries.append(try Self.entry(field.bytes))
      case Tag.secret:
        let (place, secret) = try Self.secret(field.bytes)
        secrets[place] = secret
      default: throw Self.damage
      }
    }
    guard let cluster, let time, var items else { throw Self.damage }
    items.entries = entries
    self.init(cluster: cluster, time: time, keys: keys, items: items, secrets: secrets)
  }

  private static func items(_ bytes: Span<UInt8>) throws(StoreError) -> CollectionRecord {
    var reader = FieldReader(bytes)
    let version = try reader.integer(UInt64.self)
    let epoch = try reader.integer(UInt32.self)
    let modified = Int64(clamping: try reader.integer(UInt64.self))
    return CollectionRecord(
      head: try CollectionHead(reader.remainder), version: version, epoch: epoch, modified: modified,
      entries: [])
  }

  private static func entry(_ bytes: Span<UInt8>) throws(StoreError) -> CollectionRecord.Entry {
    var reader = FieldReader(bytes)
    let id = try key(&reader)
    let version = try reader.integer(UInt64.self)
    let state = EntryState(version: version, operation: Operation(try key(&reader)))
    return CollectionRecord.Entry(id: id, state: state, content: reader.remainder.array)
  }

  private static func secret(_ bytes: Span<UInt8>) throws(StoreError) -> (SecretPlace, [UInt8]) {
    var reader = FieldReader(bytes)
    let item = try key(&reader)
    let part = try reader.integer(UInt8.self)
    let place = SecretPlace(item: item, part: part, revision: try reader.integer(UInt64.self))
    return (place, reader.remainder.array)
  }

  private static func key(_ reader: inout FieldReader) throws(StoreError) -> ItemKey {
    let high = try reader.integer(UInt64.self)
    return ItemKey(high: high, low: try reader.integer(UInt64.self))
  }
}
