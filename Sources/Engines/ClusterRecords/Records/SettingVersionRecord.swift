package import Model
import Platform
import VaultRecords

/// A value that a setting had, as an entry of its suite holds it together with the others that the same commit has replaced.
package struct SettingVersionRecord: Hashable, Sendable {
  /// The version that the suite's head got with the commit.
  package var number: UInt64
  /// When the value was replaced.
  package var replaced: Timestamp
  /// The parts that the commit changed, as `VersionChanges` has them.
  package var changes: UInt8
  /// The setting as it was.
  package var setting: SettingRecord

  package init(number: UInt64, replaced: Timestamp, changes: UInt8, setting: SettingRecord) {
    (self.number, self.replaced, self.changes, self.setting) = (number, replaced, changes, setting)
  }

  private enum Tag {
    /// Of a version in an entry.
    static let version: UInt8 = 18
    static let number: UInt8 = 1
    static let replaced: UInt8 = 2
    static let changes: UInt8 = 3
    static let setting: UInt8 = 4
  }

  /// - Throws: `invalidValue`, `tooLarge`.
  package static func encode(_ versions: [SettingVersionRecord]) throws(StoreError) -> [UInt8] {
    var writer = FieldWriter(capacity: 1024)
    for version in versions { writer.put(Tag.version, try version.encoded()) }
    return writer.bytes
  }

  private func encoded() throws(StoreError) -> [UInt8] {
    let setting = try setting.encoded()
    var writer = FieldWriter(capacity: setting.count + 48)
    writer.put(Tag.number, number)
    writer.put(Tag.replaced, ItemRecord.encode(replaced))
    writer.put(Tag.changes, changes)
    writer.put(Tag.setting, setting)
    return writer.bytes
  }

  /// nil: these bytes are no list of versions. - Throws: `damaged`.
  package static func list(_ bytes: Span<UInt8>) throws(StoreError) -> [SettingVersionRecord]? {
    guard !bytes.isEmpty, bytes[0] == Tag.version else { return nil }
    var versions: [SettingVersionRecord] = []
    var reader = FieldReader(bytes)
    while let field = try reader.next() {
      guard field.tag == Tag.version else { throw .damaged(what: "an earlier value of a setting") }
      versions.append(try SettingVersionRecord(field.bytes))
    }
    return versions
  }

  private init(_ bytes: Span<UInt8>) throws(StoreError) {
    var (number, replaced): (UInt64?, Timestamp?) = (nil, nil)
    var (changes, setting): (UInt8?, SettingRecord?) = (nil, nil)
    var reader = FieldReader(bytes)
    while let field = try reader.next() {
      switch field.tag {
      case Tag.number: number = try field.integer(UInt64.self)
      case Tag.replaced: replaced = try ItemRecord.time(field)
      case Tag.changes: changes = try field.integer(UInt8.self)
      case Tag.setting: setting = try SettingRecord(field.bytes)
      default: throw .damaged(what: "an earlier value of a setting")
      }
    }
    self.init(
      number: try number.orDamaged(), replaced: try replaced.orDamaged(), changes: try changes.orDamaged(),
      setting: try setting.orDamaged())
  }
}
