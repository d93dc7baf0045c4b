public import Model

/// The contents of a suite at one moment, with sizes and versions. Immutable, so that readers need no actor.
public final class SuiteSnapshot: Sendable {
  /// The contents that it shows, which spare the engine a read.
  package let contents: SuiteContents

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

  /// Every key with its value, time, size and version.
  public var entries: Entries { Entries(settings: contents.settings) }
  /// The version of the suite that this is a snapshot of; nil: it was never stored.
  public var stamp: SuiteStamp? { contents.stamp }
  /// Why nothing can be changed; nil: it can.
  public var readOnly: String? { contents.readOnly }

  /// The snapshot of `contents`, which keeps size and version of every value that `previous` had too.
  init(
    _ contents: SuiteContents, after previous: SuiteSnapshot?, codec: SettingCodec, version: () -> UInt64
  ) {
    let fresh = Fresh(epoch: contents.stamp?.modified ?? Timestamp(seconds: 0), codec: codec)
    var contents = contents
    if var settings = previous?.contents.settings {
      for difference in contents.settings.differences(from: settings) {
        let after = difference.after
        settings[difference.key] = after.map { fresh.setting($0, after: difference.before, version) }
      }
      // Not those of `contents`: what is equal is shared with the snapshot before.
      contents.settings = settings
    } else {
      contents.settings = contents.settings.mapValues { fresh.setting($0, after: nil, version) }
    }
    self.contents = contents
  }

  /// The changes between `previous` and this one. Times alone are no change.
  func changes(
    of suite: ExactString, since previous: SuiteSnapshot?, origin: Change.Origin
  ) -> [Change] {
    let differences = contents.settings.differences(from: previous?.contents.settings ?? [:]) {
      $0.version == $1.version
    }
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

  func setting(_ setting: Setting, after old: Setting?, _ version: () -> UInt64) -> Setting {
    var fresh = setting
    fresh.modified = setting.modified ?? epoch
    if let old, old.value == setting.value {
      (fresh.value, fresh.size, fresh.version) = (old.value, old.size, old.version)
    } else {
      // A value without any text form can be listed all the same; reading it says why.
      fresh.size = UInt32(clamping: (try? codec.size(of: setting.value)) ?? 0)
      fresh.version = version()
    }
    return fresh
  }
}

extension SuiteSnapshot {
  /// The keys of a snapshot, each looked up in constant time.
  public struct Entries: Sendable {
    fileprivate let settings: SharedDictionary<Setting>
  }
}

extension SuiteSnapshot.Entries: Sequence {
  /// The entry of a key; nil: there is none.
  public subscript(key: ExactString) -> SuiteSnapshot.Entry? { settings[key].map(SuiteSnapshot.Entry.init) }

  /// The number of keys.
  public var count: Int { settings.count }
  /// Whether there is no key.
  public var isEmpty: Bool { settings.isEmpty }
  /// The keys, in no particular order.
  public var keys: [ExactString] { settings.keys }

  /// Goes over the keys, in no particular order.
  public func makeIterator() -> some IteratorProtocol<(key: ExactString, value: SuiteSnapshot.Entry)> {
    settings.lazy.map { (key: $0.key, value: SuiteSnapshot.Entry($0.value)) }.makeIterator()
  }
}

extension SuiteSnapshot.Entry {
  fileprivate init(_ setting: Setting) {
    self.init(
      value: setting.value, modified: setting.modified ?? Timestamp(seconds: 0), size: Int(setting.size),
      version: setting.version)
  }
}
