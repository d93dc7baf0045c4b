import Crypto
package import Model
import Platform
import SecretMemory
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
    let place = RecordPlace(.ring, key, version: version)
    do {
      var content = try SecretBytes()
      try content.append(Self.header(Tag.index, length: 32).span)
      try index.append(to: &content)
      var number = FieldWriter(capacity: 16)
      number.put(Tag.oldest, oldest)
      try content.append(number.bytes.span)
      for (epoch, master) in masters.sorted(by: { $0.key < $1.key }) {
        var header = FieldWriter(capacity: 16)
        header.put(raw: Self.header(Tag.master, length: 36))
        header.put(raw: epoch)
        try content.append(header.bytes.span)
        try master.append(to: &content)
      }
      return try RecordSeal.seal(secret: content, at: place, for: .ring, keys)
    } catch { throw StoreError(cluster: error) }
  }

  /// Tag and length of a field, whose content follows.
  private static func header(_ tag: UInt8, length: UInt32) -> [UInt8] {
    var writer = FieldWriter(capacity: 8)
    writer.put(raw: tag)
    writer.put(raw: length)
    return writer.bytes
  }

  /// - Throws: `damaged`, `locked`.
  package init(
    opening sealed: [UInt8], at key: [UInt8], version: UInt64, _ keys: ClusterKeyring
  ) throws(StoreError) {
    let (ring, epoch) = try RecordSeal.lend(
      sealed, at: RecordPlace(.ring, key, version: version), for: .ring, keys
    ) { try KeyRing($0) }
    guard epoch == keys.epoch else { throw .damaged(what: "the key ring of the store") }
    self = ring
  }

  /// - Throws: `damaged`.
  private init(_ span: Span<UInt8>) throws(StoreError) {
    var (index, oldest): (SymmetricKey?, UInt32?) = (nil, nil)
    var masters: [UInt32: SymmetricKey] = [:]
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
