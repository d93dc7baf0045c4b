import Model

/// A suite of settings, as Foundation's `UserDefaults(suiteName:)` names one.
///
/// It is the property list `~/.config/NAME.plist`, and the folder `defaults/NAME` of the mount. Two values of
/// one name are the same suite.
public struct Suite: Sendable {
  package let live: LiveSuite

  package init(_ live: LiveSuite) {
    self.live = live
  }

  /// The suite's name, without `.plist`.
  public var name: String { live.name.string }

  /// Removes every key.
  ///
  /// - Throws: `StoreError`, where the file can't be written.
  public func removeAll() throws { try live.removeAll() }

  /// Returns when everything that was set is on the disk. Without it, everything outlives this process, and
  /// what was set in the last moments may be lost where the machine loses its power.
  public func synchronize() throws { try live.synchronize() }
}

extension Suite: Hashable {
  /// Suites are equal that have one storage and one name.
  public static func == (left: Suite, right: Suite) -> Bool { left.live === right.live }
  /// Hashes the object that all suites of one storage and name share.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(live)) }
}
