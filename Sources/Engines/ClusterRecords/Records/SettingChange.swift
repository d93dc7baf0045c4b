package import Model
import Platform
import VaultRecords

/// One of many changes of settings that are made together.
package enum SettingChange: Hashable, Sendable {
  case set(SettingRecord)
  case remove(ExactString)

  package var name: ExactString {
    switch self {
    case .set(let record): record.name
    case .remove(let name): name
    }
  }

  private static let tagOfSet: UInt8 = 16
  private static let tagOfRemove: UInt8 = 17

  /// - Throws: `invalidValue`, `tooLarge`.
  package static func encode(_ changes: [SettingChange]) throws(StoreError) -> [UInt8] {
    var writer = FieldWriter(capacity: 4096)
    for change in changes {
      switch change {
      case .set(let record): writer.put(tagOfSet, try record.encoded())
      case .remove(let name): writer.put(tagOfRemove, name.utf8)
      }
    }
    return writer.bytes
  }

  /// nil: these bytes are no list of changes. - Throws: `damaged`.
  package static func list(_ bytes: Span<UInt8>) throws(StoreError) -> [SettingChange]? {
    guard !bytes.isEmpty, bytes[0] == tagOfSet || bytes[0] == tagOfRemove else { return nil }
    var changes: [SettingChange] = []
    var reader = FieldReader(bytes)
    while let field = try reader.next() {
      switch field.tag {
      case tagOfSet: changes.append(.set(try SettingRecord(field.bytes)))
      case tagOfRemove: changes.append(.remove(try field.string()))
      default: throw .damaged(what: "a change of settings")
      }
    }
    return changes
  }
}
