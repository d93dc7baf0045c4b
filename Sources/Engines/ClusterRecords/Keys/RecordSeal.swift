import Crypto
import FoundationEssentials
package import Model
import Platform
package import SecretMemory
import VaultRecords

/// The kind of a sealed value.
package enum RecordKind: UInt8, Sendable {
  case head = 1
  case entry = 2
  case secret = 3
  case valueKey = 4
  case slot = 5
  case ring = 6
  case seen = 7
  case memberName = 8
}

/// Where a sealed value belongs: its key and the version that it has there.
package struct RecordPlace: Hashable, Sendable {
  package var kind: RecordKind
  package var key: [UInt8]
  /// As the cluster counts, from 1.
  package var version: UInt64

  package init(_ kind: RecordKind, _ key: [UInt8], version: UInt64) {
    (self.kind, self.key, self.version) = (kind, key, version)
  }

  /// The associated data.
  func binding(_ store: ItemKey, epoch: UInt32) -> [UInt8] {
    var writer = FieldWriter(capacity: 96 + key.count)
    writer.put(raw: ClusterFormat.prefix.utf8)
    writer.put(1, store)
    writer.put(2, kind.rawValue)
    writer.put(3, key)
    writer.put(4, version)
    writer.put(5, epoch)
    return writer.bytes
  }
}

/// Seals of records: a byte for the format, the epoch (4), and the seal.
package enum RecordSeal {
  /// In bytes, without the padding.
  static let headerLength = 5

  /// - Throws: `locked`.
  package static func seal(
    _ content: [UInt8], at place: RecordPlace, for purpose: ClusterKeyPurpose, _ keys: ClusterKeyring
  ) throws(StoreError) -> [UInt8] {
    let epoch = keys.epoch
    let key = try keys.key(purpose, epoch: epoch)
    do {
      let sealed = try Cipher.seal(content, under: key, boundTo: place.binding(keys.store, epoch: epoch))
      return header(epoch) + Array(sealed)
    } catch { throw StoreError(cluster: error) }
  }

  /// The same of what is not left in memory. - Throws: `locked`, `outOfMemory`.
  package static func seal(
    secret content: borrowing SecretBytes, at place: RecordPlace, for purpose: ClusterKeyPurpose,
    _ keys: ClusterKeyring
  ) throws(StoreError) -> [UInt8] {
    let epoch = keys.epoch
    let key = try keys.key(purpose, epoch: epoch)
    do {
      let binding = place.binding(keys.store, epoch: epoch)
      return header(epoch) + Array(try Cipher.seal(secret: content, under: key, boundTo: binding))
    } catch { throw StoreError(cluster: error) }
  }

  /// The content of a value, and the epoch that it is sealed in. - Throws: `damaged`, `locked`.
  package static func open(
    _ value: [UInt8], at place: RecordPlace, for purpose: ClusterKeyPurpose, _ keys: ClusterKeyring
  ) throws(StoreError) -> (content: [UInt8], epoch: UInt32) {
    try lend(value, at: place, for: purpose, keys) { $0.array }
  }

  /// The same; `body` gets the content, which is wiped after it. - Throws: `damaged`, `locked`; what `body` throws.
  package static func lend<Result>(
    _ value: [UInt8], at place: RecordPlace, for purpose: ClusterKeyPurpose, _ keys: ClusterKeyring,
    _ body: (Span<UInt8>) throws -> Result
  ) throws(StoreError) -> (content: Result, epoch: UInt32) {
    let epoch = try epoch(of: value)
    let key = try keys.key(purpose, epoch: epoch)
    do {
      let content = try Cipher.open(
        Array(value[headerLength...]), under: key, boundTo: place.binding(keys.store, epoch: epoch), body)
      return (content, epoch)
    } catch { throw StoreError(cluster: error) }
  }

  private static func header(_ epoch: UInt32) -> [UInt8] {
    var writer = FieldWriter(capacity: headerLength)
    writer.put(raw: ClusterFormat.version)
    writer.put(raw: epoch)
    return writer.bytes
  }

  /// Whether a value is sealed under keys that were given up, as its header says, and not under those of an epoch before `least`. It is not
  /// looked at otherwise.
  package static func isOfEarlierKeys(
    _ value: [UInt8], _ keys: ClusterKeyring, from least: UInt32
  ) -> Bool {
    guard let epoch = try? epoch(of: value), epoch >= least else { return false }
    return keys.isGivenUp(epoch)
  }

  private static func epoch(of value: [UInt8]) throws(StoreError) -> UInt32 {
    guard value.count > headerLength else { throw .damaged(what: "a record of the cluster") }
    guard value[0] == ClusterFormat.version else {
      throw value[0] > ClusterFormat.version && value[0] < 32
        ? .unsupported(reason: "a newer Keyhole has written to the store; update Keyhole")
        : .damaged(what: "a record of the cluster")
    }
    var reader = FieldReader(value.span)
    _ = try reader.integer(UInt8.self)
    return try reader.integer(UInt32.self)
  }
}
