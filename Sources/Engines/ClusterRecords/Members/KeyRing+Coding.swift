import Crypto
package import Model
import Platform
import VaultRecords

extension KeyRing {
  private enum Tag {
    static let index: UInt8 = 1
    static let oldest: UInt8 = 2
    static let master: UInt8 = 3
  }

  /// Seals the ring under the present master key. - Throws: `locked`.
  package func seal(
    at key: [UInt8], version: UInt64, _ keys: ClusterKeyring
  ) throws(StoreError) -> [UInt8] {
    var writer = FieldWriter(capacity: 160)
    writer.put(Tag.index, index.array)
    writer.put(Tag.oldest, oldest)
    for (epoch, master) in masters.sorted(by: { $0.key < $1.key }) {
      var entry = FieldWriter(capacity: 36)
      entry.put(raw: epoch)
      entry.put(raw: master.array)
      writer.put(Tag.master, entry.bytes)
    }
    return try RecordSeal.seal(
      writer.bytes, at: RecordPlace(.ring, key, version: version), for: .ring, keys)
  }

  /// - Throws: `damaged`, `locked`.
  package init(
    opening sealed: [UInt8], at key: [UInt8], version: UInt64, _ keys: ClusterKeyring
  ) throws(StoreError) {
    let (bytes, epoch) = try RecordSeal.open(
      sealed, at: RecordPlace(.ring, key, version: version), for: .ring, keys)
    guard epoch == keys.epoch else { throw .damaged(what: "the key ring of the store") }
    var (index, oldest): (SymmetricKey?, UInt32?) = (nil, nil)
    var masters: [UInt32: SymmetricKey] = [:]
    let span = bytes.span
    var reader = FieldReader(span)
    while let field = try reader.next() {
      switch field.tag {
      case Tag.index: index = SymmetricKey(copying: field.bytes)
      case Tag.oldest: oldest = try field.integer(UInt32.self)
      case Tag.master:
        var entry = FieldReader(field.bytes)
        masters[try entry.integer(UInt32.self)] = SymmetricKey(copying: entry.remainder)
      default: throw .damaged(what: "the key ring of the store")
      }
    }
    self.init(index: try index.orDamaged(), oldest: try oldest.orDamaged(), masters: masters)
  }
}
