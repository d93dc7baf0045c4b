import ClusterRecords
import Model
import Store
import VaultRecords

/// An entry of a suite: a setting, or a part of a change of many settings, which its head lists in its journal.
enum SuiteEntry: CollectionContent {
  case setting(SettingRecord)
  case changes([SettingChange])

  init(_ bytes: Span<UInt8>, _ id: ItemKey) throws(StoreError) {
    if let changes = try SettingChange.list(bytes) {
      self = .changes(changes)
    } else {
      self = .setting(try SettingRecord(bytes))
    }
  }

  func encoded() throws(StoreError) -> [UInt8] {
    switch self {
    case .setting(let record): try record.encoded()
    case .changes(let changes): try SettingChange.encode(changes)
    }
  }

  /// The setting's name; nil: it is a part of a change.
  var kept: ExactString? {
    switch self {
    case .setting(let record): record.name
    case .changes: nil
    }
  }

  /// The settings, and the parts of changes that are not brought into them.
  struct View: CollectionView {
    typealias Content = SuiteEntry
    private(set) var settings: SharedDictionary<Setting> = [:]
    private(set) var changes: [ItemKey: [SettingChange]] = [:]

    init() {}

    mutating func put(_ id: ItemKey, _ content: SuiteEntry, replacing old: ExactString??) {
      if let old { remove(id, old) }
      switch content {
      case .setting(let record): settings[record.name] = Setting(record.value, modified: record.modified)
      case .changes(let changes): self.changes[id] = changes
      }
    }

    mutating func remove(_ id: ItemKey, _ old: ExactString?) {
      if let old { settings[old] = nil } else { changes[id] = nil }
    }
  }
}

extension VerifiedCopy<SuiteEntry> {
  /// The suite as a store gets it, with the change that its journal holds.
  func contents(of id: ItemKey) -> SuiteContents {
    var settings = view.settings
    for part in head.journal {
      for change in view.changes[part] ?? [] {
        switch change {
        case .set(let record): settings[record.name] = Setting(record.value, modified: record.modified)
        case .remove(let name): settings[name] = nil
        }
      }
    }
    return SuiteContents(settings: settings, stamp: head.stamp(of: id))
  }
}

extension CollectionHead {
  /// The stamp of the suite with this head: another one for each change of a value.
  func stamp(of id: ItemKey) -> SuiteStamp {
    SuiteStamp(device: id.high, number: valueVersion, modified: valueTime)
  }
}
