package import Model
import Platform
import VaultRecords

/// A setting of a suite as its entry holds it.
package struct SettingRecord: Hashable, Sendable {
  package var name: ExactString
  package var value: SettingValue
  package var modified: Timestamp

  package init(name: ExactString, value: SettingValue, modified: Timestamp) {
    (self.name, self.value, self.modified) = (name, value, modified)
  }

  private enum Tag {
    static let name: UInt8 = 1
    static let modified: UInt8 = 2
    static let value: UInt8 = 3
  }

  /// - Throws: `invalidValue` for what no property list can hold, `tooLarge`.
  package func encoded() throws(StoreError) -> [UInt8] {
    var values = ValueWriter()
    try values.put(value)
    guard values.bytes.count <= ClusterFormat.largestValue + ValueWriter.longestHead else {
      throw .tooLarge(limit: ClusterFormat.largestValue)
    }
    var writer = FieldWriter(capacity: name.utf8.count + values.bytes.count + 32)
    writer.put(Tag.name, name.utf8)
    writer.put(Tag.modified, ItemRecord.encode(modified))
    writer.put(Tag.value, values.bytes)
    return writer.bytes
  }

  /// - Throws: `damaged`.
  package init(_ bytes: Span<UInt8>) throws(StoreError) {
    var (name, value, modified): (ExactString?, SettingValue?, Timestamp?) = (nil, nil, nil)
    var reader = FieldReader(bytes)
    while let field = try reader.next() {
      switch field.tag {
      case Tag.name: name = try field.string()
      case Tag.modified: modified = try ItemRecord.time(field)
      case Tag.value:
        var values = ValueReader(field.bytes)
        value = try values.whole()
      default: throw .damaged(what: "a setting")
      }
    }
    self.init(
      name: try name.orDamaged(), value: try value.orDamaged(), modified: try modified.orDamaged())
  }
}
