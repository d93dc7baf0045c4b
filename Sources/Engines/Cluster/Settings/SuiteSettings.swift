import ClusterRecords
import Model
import Store
import VaultRecords

/// An entry of a suite: a setting, a part of a change of many settings, which its head lists in its journal, or values that settings
/// had.
enum SuiteEntry: CollectionContent {
  case setting(SettingRecord)
  case changes([SettingChange])
  case versions([SettingVersionRecord])

  init(_ bytes: Span<UInt8>, _ id: ItemKey) throws(StoreError) {
    if let changes = try SettingChange.list(bytes) {
      self = .changes(changes)
    } else if let versions = try SettingVersionRecord.list(bytes) {
      self = .versions(versions)
    } else {
      self = .setting(try SettingRecord(bytes))
    }
  }

  func encoded() throws(StoreError) -> [UInt8] {
    switch self {
    case .setting(let record): try record.encoded()
    case .changes(let changes): try SettingChange.encode(changes)
    case .versions(let versions): try SettingVersionRecord.encode(versions)
    }
  }

  /// The setting's name; nil: it is another entry.
  var kept: ExactString? {
    switch self {
    case .setting(let record): record.name
    case .changes, .versions: nil
    }
  }

  /// The settings, the parts of changes that are not brought into them, and the values that they had.
  struct View: CollectionView {
    typealias Content = SuiteEntry
    private(set) var settings: SharedDictionary<Setting> = [:]
    private(set) var changes: [ItemKey: [SettingChange]] = [:]
    private(set) var versions = SuiteVersions()

    init() {}

    mutating func put(_ id: ItemKey, _ content: SuiteEntry, replacing old: ExactString??) {
      if let old { remove(id, old) }
      switch content {
      case .setting(let record): settings[record.name] = Setting(record.value, modified: record.modified)
      case .changes(let changes): self.changes[id] = changes
      case .versions(let versions): self.versions.put(id, versions)
      }
    }

    /// Takes equal settings that are in memory already.
    mutating func share(_ equal: SharedDictionary<Setting>) {
      if settings == equal { settings = equal }
    }

    mutating func remove(_ id: ItemKey, _ old: ExactString?) {
      guard let old else {
        changes[id] = nil
        return versions.remove(id)
      }
      settings[old] = nil
    }
  }
}

extension ClusterCollection<SuiteEntry> {
  /// The copy shares these settings from now on, as far as it has the same ones.
  func share(_ settings: SharedDictionary<Setting>) {
    state.use { $0.copy?.rearrange { $0.share(settings) } }
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
