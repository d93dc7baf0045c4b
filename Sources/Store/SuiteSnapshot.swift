public import Model

/// What a suite holds at one moment, ready to be shown. Immutable, so that readers need no actor.
public final class SuiteSnapshot: Sendable {
  public let entries: [ExactString: Entry]
  public let stamp: SuiteStamp?
  /// Why nothing can be changed; nil: it can.
  public let readOnly: String?

  /// One key.
  public struct Entry: Sendable {
    public let value: SettingValue
    public let modified: Timestamp
    /// The exact length of the content in bytes.
    public let size: Int
    /// Another number for each other value, never used twice in a process.
    public let version: UInt64
  }

  init(entries: [ExactString: Entry], stamp: SuiteStamp?, readOnly: String?) {
    self.entries = entries
    self.stamp = stamp
    self.readOnly = readOnly
  }
}

extension SuiteSnapshot {
  /// The snapshot of `contents`, which keeps size and version of every value that `previous` had too.
  convenience init(
    _ contents: SuiteContents, after previous: SuiteSnapshot?, codec: SettingCodec,
    version: () -> UInt64
  ) {
    let epoch = contents.stamp?.modified ?? Timestamp(seconds: 0)
    let entries = contents.settings.map { key, setting in
      let modified = setting.modified ?? epoch
      guard let old = previous?.entries[key], old.value == setting.value else {
        // A value without any text form can be listed all the same; reading it says why.
        let size = (try? codec.size(of: setting.value)) ?? 0
        return (key, Entry(value: setting.value, modified: modified, size: size, version: version()))
      }
      return (key, Entry(value: old.value, modified: modified, size: old.size, version: old.version))
    }
    self.init(
      entries: Dictionary(uniqueKeysWithValues: entries), stamp: contents.stamp,
      readOnly: contents.readOnly)
  }

  /// The engine's view of the snapshot, which spares it a read.
  var contents: SuiteContents {
    SuiteContents(
      settings: entries.mapValues { Setting($0.value, modified: $0.modified) }, stamp: stamp,
      readOnly: readOnly)
  }

  /// What happened between `previous` and this one. Times alone are no change.
  func changes(
    of suite: ExactString, since previous: SuiteSnapshot?, origin: Change.Origin
  ) -> [Change] {
    let old = previous?.entries ?? [:]
    var changes: [Change] = []
    for (key, entry) in entries where old[key]?.version != entry.version {
      let kind: Change.Kind = old[key] == nil ? .created : .modified
      changes.append(Change(kind, .key(suite: suite, key: key), origin: origin))
    }
    for key in old.keys where entries[key] == nil {
      changes.append(Change(.deleted, .key(suite: suite, key: key), origin: origin))
    }
    return changes
  }
}
