import Crypto
import FoundationEssentials
package import Model
import Platform
package import SecretMemory
package import VaultRecords

/// An item as its entry holds it: all but its secrets, and their keys, sealed under that of the item's class.
package struct ItemEntry {
  /// The item; `secretRevision` and the revisions of further secrets are parts of the secrets' keys in the cluster. Of a removed item, its
  /// last state.
  package var record: ItemRecord
  /// The sealed key of each secret, by its part.
  package var valueKeys: [UInt8: [UInt8]]
  /// The states that the item had, the oldest first.
  package var versions: [ItemVersionRecord] = []
  /// The item was removed: its last version is what it was.
  package var isRemoved = false

  package init(record: ItemRecord, valueKeys: [UInt8: [UInt8]] = [:]) {
    (self.record, self.valueKeys) = (record, valueKeys)
  }

  private enum Tag {
    static let record: UInt8 = 1
    static let valueKey: UInt8 = 2
    static let version: UInt8 = 3
    static let isRemoved: UInt8 = 4
  }

  /// - Throws: `tooLarge` for names and attributes above 1 MiB.
  package func encoded() throws(StoreError) -> [UInt8] {
    var writer = FieldWriter(capacity: 1024)
    if isRemoved { writer.put(Tag.isRemoved, [UInt8]()) } else { writer.put(raw: try encodedState()) }
    for version in versions { writer.put(Tag.version, version.encoded) }
    return writer.bytes
  }

  /// The item without the states that it had. - Throws: `tooLarge`.
  func encodedState() throws(StoreError) -> [UInt8] {
    let record = record.encoded
    guard record.count <= ItemRecord.largestSize else { throw .tooLarge(limit: ItemRecord.largestSize) }
    var writer = FieldWriter(capacity: record.count + 160)
    writer.put(Tag.record, record)
    for (part, key) in valueKeys.sorted(by: { $0.key < $1.key }) { writer.put(Tag.valueKey, [part] + key) }
    return writer.bytes
  }

  /// - Throws: `damaged`.
  package init(_ bytes: Span<UInt8>, _ key: ItemKey) throws(StoreError) {
    var record: ItemRecord?
    var valueKeys: [UInt8: [UInt8]] = [:]
    var versions: [ItemVersionRecord] = []
    var isRemoved = false
    var reader = FieldReader(bytes)
    while let field = try reader.next() {
      switch field.tag {
      case Tag.record:
        do { record = try ItemRecord(field.bytes, id: key.id) } catch { throw StoreError(cluster: error) }
      case Tag.valueKey:
        guard !field.bytes.isEmpty else { throw .damaged(what: "an item") }
        valueKeys[field.bytes[0]] = field.bytes.extracting(droppingFirst: 1).array
      case Tag.version: versions.append(try ItemVersionRecord(field.bytes))
      case Tag.isRemoved: isRemoved = true
      default: throw .damaged(what: "an item")
      }
    }
    if isRemoved {
      guard record == nil, let last = versions.last else { throw .damaged(what: "a removed item") }
      self = try last.state(of: key)
      self.isRemoved = true
    } else {
      self.init(record: try record.orDamaged(), valueKeys: valueKeys)
    }
    self.versions = versions
  }

  /// The revision of a secret; nil: there is no such secret.
  package func revision(ofPart part: UInt8) -> UInt64? {
    guard part != SecretPlace.main else { return record.secretRevision }
    return record.furtherSecrets.first { $0.part == part }?.revision
  }

  /// The secrets that the item has, and those that it had. - Throws: `damaged`.
  package func places(_ key: ItemKey) throws(StoreError) -> Set<SecretPlace> {
    var places = Set(isRemoved ? [] : record.places(key))
    for version in versions { places.formUnion(try version.state(of: key).record.places(key)) }
    return places
  }

  /// Changes the states that the item had, and it itself; a removed item is what its last state is.
  package mutating func changeStates(
    of key: ItemKey, _ body: (inout ItemEntry) throws(StoreError) -> Void
  ) throws(StoreError) {
    for index in versions.indices {
      var state = try versions[index].state(of: key)
      try body(&state)
      try versions[index].setState(state)
    }
    let (versions, isRemoved) = (versions, isRemoved)
    if isRemoved, let last = versions.last { self = try last.state(of: key) } else { try body(&self) }
    (self.versions, self.isRemoved) = (versions, isRemoved)
  }
}

/// Seals of secrets: each has a key of its own, and that is sealed under the key of the item's class.
package enum SecretSeal {
  /// A new key. - Throws: `outOfMemory`.
  package static func makeKey() throws(StoreError) -> SecretBytes {
    do {
      var bytes = try SecretBytes()
      try SymmetricKey(size: .bits256).append(to: &bytes)
      return bytes
    } catch { throw StoreError(cluster: error) }
  }

  /// - Throws: `tooLarge`, `outOfMemory`.
  package static func seal(
    _ secret: borrowing SecretBytes, at place: RecordPlace, _ store: ItemKey, key: borrowing SecretBytes
  ) throws(StoreError) -> [UInt8] {
    guard secret.count <= ClusterFormat.largestValue else {
      throw .tooLarge(limit: ClusterFormat.largestValue)
    }
    do {
      return Array(
        try Cipher.seal(
          secret: secret, under: SymmetricKey(copying: key.span), boundTo: place.binding(store, epoch: 0)))
    } catch { throw StoreError(cluster: error) }
  }

  /// - Throws: `damaged`, `outOfMemory`.
  package static func open(
    _ sealed: [UInt8], at place: RecordPlace, _ store: ItemKey, key: borrowing SecretBytes
  ) throws(StoreError) -> SecretBytes {
    do {
      return try Cipher.openSecret(
        Cipher.box(sealed), under: SymmetricKey(copying: key.span), boundTo: place.binding(store, epoch: 0))
    } catch { throw StoreError(cluster: error) }
  }

  /// Seals a secret's key for an item of this class, these flags and rules. - Throws: `locked`.
  package static func seal(
    key: borrowing SecretBytes, of item: ItemKey, part: UInt8, _ record: ItemRecord, _ keys: ClusterKeyring
  ) throws(StoreError) -> [UInt8] {
    let epoch = keys.epoch
    let classKey = try keys.key(.secrets(record.item.accessibility), epoch: epoch)
    do {
      let sealed = try Cipher.seal(
        secretBytes: key, under: classKey, boundTo: binding(item, part, record, keys.store, epoch))
      var writer = FieldWriter(capacity: 4 + sealed.count)
      writer.put(raw: epoch)
      writer.put(raw: Array(sealed))
      return writer.bytes
    } catch { throw StoreError(cluster: error) }
  }

  /// - Throws: `locked`, `damaged`.
  package static func openKey(
    _ sealed: [UInt8], of item: ItemKey, part: UInt8, _ record: ItemRecord, _ keys: ClusterKeyring
  ) throws(StoreError) -> SecretBytes {
    var reader = FieldReader(sealed.span)
    let epoch = try reader.integer(UInt32.self)
    let classKey = try keys.key(.secrets(record.item.accessibility), epoch: epoch)
    do {
      let key = try Cipher.openKey(
        Cipher.box(reader.remainder.array), under: classKey,
        boundTo: binding(item, part, record, keys.store, epoch))
      var bytes = try SecretBytes()
      try key.append(to: &bytes)
      return bytes
    } catch { throw StoreError(cluster: error) }
  }

  /// Class, flags and rules are among the fields: who changes them has to be able to open the secret.
  private static func binding(
    _ item: ItemKey, _ part: UInt8, _ record: ItemRecord, _ store: ItemKey, _ epoch: UInt32
  ) -> [UInt8] {
    let facts = SecretFacts(record)
    var writer = FieldWriter(capacity: 128)
    writer.put(raw: ClusterFormat.prefix.utf8)
    writer.put(1, store)
    writer.put(2, RecordKind.valueKey.rawValue)
    writer.put(3, item)
    writer.put(4, part)
    writer.put(5, epoch)
    writer.put(6, facts.accessibility.code)
    writer.put(7, facts.access)
    return writer.bytes
  }
}
