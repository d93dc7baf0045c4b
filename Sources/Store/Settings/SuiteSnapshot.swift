public import Model

/// The contents of a suite at one moment, with sizes and versions. Immutable, so that readers need no actor.
public final class SuiteSnapshot: Sendable {
  /// Every key with its value, time, size and version.
  public let entries: SharedDictionary<Entry>
  /// The contents that it was made of, which spare the engine a read.
  let contents: SuiteContents

  /// One key.
  public struct Entry: Sendable {
    /// The value as it is stored.
    public let value: SettingValue
    /// When the value last changed.
    public let modified: Timestamp
    /// The exact length of the content in bytes.
    public let size: Int
    /// Another number for each other value, never used twice in a process.
    public let version: UInt64
  }

  /// The version of the suite that this is a snapshot of; nil: it was never stored.
  public var stamp: SuiteStamp? { contents.stamp }
  /// Why nothing can be changed; nil: it can.
  public var readOnly: String? { contents.readOnly }

  /// The snapshot of `contents`, which keeps size and version of every value that `previous` had too.
  init(
    _ contents: SuiteContents, after previous: SuiteSnapshot?, codec: SettingCodec, version: () -> UInt64
  ) {
    self.contents = contents
    let fresh = Fresh(epoch: contents.stamp?.modified ?? Timestamp(seconds: 0), codec: codec)
    guard let previous else {
      entries = contents.settings.mapValues { fresh.entry($0, after: nil, version) }
      return
    }
    var entries = previous.entries
    for difference in contents.settings.differences(from: previous.contents.settings) {
      entries[difference.key] = difference.after.map {
        fresh.entry($0, after: entries[difference.key], version)
      }
    }
    self.entries = entries
  }

  /// The changes between `previous` and this one. Times alone are no change.
  func changes(
    of suite: ExactString, since previous: SuiteSnapshot?, origin: Change.Origin
  ) -> [Change] {
    let differences = entries.differences(from: previous?.entries ?? [:]) { $0.version == $1.version }
    return differences.map { difference in
      let kind: Change.Kind =
        difference.after == nil ? .deleted : difference.before == nil ? .created : .modified
      return Change(kind, .key(suite: suite, key: difference.key), origin: origin)
    }
  }

  /// The keys that another program has changed after a moment at which they were not read.
  func changes(of suite: ExactString, after moment: Timestamp) -> [Change] {
    entries.filter { $0.value.modified > moment }.map {
      Change(.modified, .key(suite: suite, key: $0.key), origin: .external)
    }
  }
}

/// How settings become entries.
private struct Fresh {
  let epoch: Timestamp
  let codec: SettingCodec

  func entry(
    _ setting: Setting, after old: SuiteSnapshot.Entry?, _ version: () -> UInt64
  ) -> SuiteSnapshot.Entry {
    let modified = setting.modified ?? epoch
    guard let old, old.value == setting.value else {
      // A value without any text form can be listed all the same; reading it says why.
      let size = (try? codec.size(of: setting.value)) ?? 0
      return SuiteSnapshot.Entry(value: setting.value, modified: modified, size: size, version: version())
    }
    return SuiteSnapshot.Entry(
      value: old.value, modified: modified, size: old.size, version: old.version)
  }
}
