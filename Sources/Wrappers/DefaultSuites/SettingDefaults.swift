public import Foundation
package import Model
public import WrapperCore

/// A suite as a subclass of Foundation's `UserDefaults`, for code that takes one.
///
/// A value is stored when it is set, not at `synchronize()`.
public final class SettingDefaults: UserDefaults {
  /// nil: it holds its values in memory.
  let suite: Suite?
  private let scratch = Guarded<[String: SettingValue]>([:])

  /// - Parameter suite: the suite to use.
  public convenience init(_ suite: Suite) {
    self.init(optional: suite)
  }

  /// Holds values in memory, for no longer than itself.
  package static func scratch() -> SettingDefaults { SettingDefaults(optional: nil) }

  private init(optional suite: Suite?) {
    self.suite = suite
    // It fails only for names that stand for other domains.
    // swift-format-ignore: NeverForceUnwrap
    super.init(suiteName: "keyhole")!
  }

  package func setting(_ key: String) -> SettingValue? {
    guard let suite else { return scratch.withLock { $0[key] } }
    return suite.live.key(key).current.value
  }

  package func store(_ value: SettingValue?, _ key: String) throws {
    guard let suite else { return scratch.withLock { $0[key] = value } }
    try suite.live.key(key).set(value)
  }

  /// The stored value as the type that Foundation's `UserDefaults` returns; nil: the key is not stored.
  public override func object(forKey defaultName: String) -> Any? {
    setting(defaultName).map(Plist.any)
  }

  /// Stores the value at once; nil removes the key. An error, of the file or for a value that is no property list, is
  /// logged, and the old value stays.
  public override func set(_ value: Any?, forKey defaultName: String) {
    do {
      try store(value.map(Plist.write), defaultName)
    } catch {
      Log.note("\(suite?.name ?? "") \(defaultName)", error)
    }
  }

  /// Removes the key from the suite; a key that is not stored is no error.
  public override func removeObject(forKey defaultName: String) {
    set(nil as Any?, forKey: defaultName)
  }

  /// Waits until everything that was set is on the disk (fsync(2)); false: that failed.
  public override func synchronize() -> Bool {
    (try? suite?.synchronize()) != nil || suite == nil
  }
}
