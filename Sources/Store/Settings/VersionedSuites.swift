public import Model

/// Suites of which the values that keys had are kept for a while.
public protocol VersionedSuites: Sendable {
  /// How much is kept; nil: this process adds nothing, and leaves what is there.
  var retention: HistoryRetention? { get }

  /// From now on this process keeps so much.
  func keep(_ retention: HistoryRetention)

  /// The values that keys of a suite had, the oldest first; also of a suite that is gone. None are kept: empty.
  ///
  /// - Throws: `unreachable`, `locked`, `damaged` where that can't be found out.
  func versions(of suite: ExactString) throws(StoreError) -> [SettingVersion]

  /// The suites of which something is kept, in no order.
  ///
  /// - Throws: as `versions`.
  func suitesWithVersions() throws(StoreError) -> [ExactString]

  /// Deletes what is kept of a key, or, with nil, of all keys of a suite.
  ///
  /// - Returns: how many values.
  /// - Throws: the system's errors.
  @discardableResult func purge(_ suite: ExactString, _ key: ExactString?) throws(StoreError) -> Int

  /// Deletes what is kept of keys that are about to be removed. For some seconds no process keeps what they are or were, so that
  /// their removal leaves nothing, whichever process notices it and whenever the one that calls this ends.
  ///
  /// - Returns: how many values.
  /// - Throws: the system's errors; then what is kept is as it was.
  @discardableResult
  func purge(_ keys: Set<ExactString>, beforeRemovalFrom suite: ExactString) throws(StoreError) -> Int

  /// After the removal: the names of the keys go, too. `isFollowed`: another process may notice the removal later, so that the note of these keys
  /// has to stay for those seconds.
  func endPurge(of suite: ExactString, isFollowed: Bool)

  /// Deletes what is kept for longer than `retention` says. - Returns: how many values.
  @discardableResult func prune() -> Int

  /// Keeps values that another program has replaced or removed, unless it has done so itself.
  func keep(_ values: [ExactString: SettingValue], of suite: ExactString, removed: Set<ExactString>)

  /// Whether values of a suite are kept. By default they are.
  func keepsVersions(of suite: ExactString) -> Bool

  /// Switches it on or off for one suite; off deletes what is kept. - Throws: the system's errors.
  func setKeepsVersions(_ keeps: Bool, of suite: ExactString) throws(StoreError)
}

/// A value that a key had.
public struct SettingVersion: Hashable, Sendable {
  /// Rises with each value that is kept of a suite.
  public var number: UInt64
  /// The key.
  public var key: ExactString
  /// The value that it had.
  public var value: SettingValue
  /// When it was replaced.
  public var replaced: Timestamp
  /// `value`, or `removal` where the key was removed.
  public var changes: VersionChanges

  /// A value that a key had.
  public init(
    number: UInt64, key: ExactString, value: SettingValue, replaced: Timestamp, changes: VersionChanges
  ) {
    (self.number, self.key, self.value) = (number, key, value)
    (self.replaced, self.changes) = (replaced, changes)
  }
}

extension SettingsStore {
  /// The values that a key had, the oldest first; empty where the engine keeps none.
  ///
  /// - Throws: `unreachable`, `locked`, `damaged` where that can't be found out.
  public func versions(of key: ExactString, in suite: ExactString) throws(StoreError) -> [SettingVersion] {
    try engine.history?.versions(of: suite).filter { $0.key == key } ?? []
  }

  /// Gives keys values that they had, which is one change like any other; makes the suite where it is gone.
  ///
  /// `onlyMissing`: keys that have a value keep it. More than the engine takes at once become several changes then.
  ///
  /// - Throws: `readOnly`, `noSpace`, `damaged`, and the system's errors.
  public func restore(
    _ versions: [SettingVersion], in suite: ExactString, onlyMissing: Bool = false
  ) throws(StoreError) {
    if try existingSuite(suite) == nil { try createSuite(suite) }
    var rest = [versions[...]]
    while let part = rest.popLast() {
      do throws(StoreError) {
        try self.suite(suite).update { contents in
          for version in part where !onlyMissing || contents.settings[version.key] == nil {
            contents.settings[version.key] = Setting(version.value)
          }
        }
      } catch {
        guard onlyMissing, part.count > 1, error.isOfSize else { throw error }
        let half = part.count / 2
        rest += [part.dropFirst(half), part.prefix(half)]
      }
    }
  }
}

extension StoreError {
  /// Whether less at once may be taken.
  fileprivate var isOfSize: Bool {
    switch self {
    case .tooLarge, .unsupported: true
    default: false
    }
  }
}
