public import Model

/// Keyhole's own suite: what it sets, and what of it is not followed.
///
/// Any program of the user's can write there, so a value that lies in the vault only (`ConfigurationKey.isForVault`) is
/// refused by every interface of Keyhole, and not followed where another program has written it into the file.
public struct SuiteConfiguration: Sendable {
  /// The name of the suite.
  public static let suite: ExactString = "keyhole"

  /// A setting that is not followed.
  public struct Ignored: Sendable {
    /// The key in the suite.
    public var key: ExactString
    /// The reason, as a clause; it holds no value.
    public var reason: String
  }

  /// The settings that are followed.
  public private(set) var values: [ConfigurationKey: SettingValue] = [:]
  /// The others, in the order of their keys.
  public private(set) var ignored: [Ignored] = []

  /// - Parameter snapshot: of the suite; nil: it is not there.
  public init(_ snapshot: SuiteSnapshot?) {
    for (name, entry) in snapshot?.entries.map({ ($0.key, $0.value) }) ?? [] {
      do throws(StoreError) {
        values[try Self.key(name, taking: entry.value)] = entry.value
      } catch {
        ignored.append(Ignored(key: name, reason: error.reason))
      }
    }
    ignored.sort { $0.key < $1.key }
  }

  /// The suite of a store as it is now; one that can't be read sets nothing.
  public init(in store: SettingsStore) {
    let suite = try? store.existingSuite(Self.suite)
    self.init((try? suite?.fetch()) ?? nil)
  }

  /// - Throws: `invalidValue` for an unknown key or another type, `notPermitted` for a value that lies in the vault
  ///   only.
  static func key(_ name: ExactString, taking value: SettingValue) throws(StoreError) -> ConfigurationKey {
    guard let key = ConfigurationKey(rawValue: name.string) else {
      throw .invalidValue(
        reason: "this is Keyhole's own suite, and `\(name.string.prefix(64))` is none of its settings; "
          + "`keyhole config` lists them")
    }
    try key.check(value)
    guard !key.isForVault(value) else {
      let effect =
        key.isWeaker(value, than: key.fallback) ? "protects less than the default" : "turns it off"
      throw .notPermitted(
        reason:
          "this value of `\(key.rawValue)` \(effect), and any program could set it here; "
          + "`keyhole config \(key.rawValue) \(ConfigurationKey.text(of: value))` keeps it in the vault, "
          + "with the passphrase")
    }
    return key
  }

  /// While the content of a key is written: a list of programs, and a text without its end, may become another value.
  ///
  /// `isLine`: a line feed ends what was written. `before`: the value that is stored, which may stay.
  /// - Throws: as `key(_:taking:)`.
  public static func check(
    _ name: ExactString, written value: SettingValue, isLine: Bool, before: SettingValue?
  ) throws(StoreError) {
    guard value != before else { return }
    if let key = ConfigurationKey(rawValue: name.string) {
      switch (key.definition.kind, value) {
      case (.programs, _): return
      case (.bool, .bool): break
      // Each further digit makes it larger, so also one that protects more.
      case (.number(let range, _), .integer(let number)):
        guard isLine || (before == nil && number >= range.lowerBound && !key.protectsMoreIfHigher)
        else { return }
      default: guard isLine else { return }
      }
    } else if before != nil, !isLine {
      return
    }
    _ = try self.key(name, taking: value)
  }

  /// Before a change of the suite: what was there may stay, also what is not followed.
  ///
  /// - Throws: as `key(_:taking:)`.
  static func check(
    _ contents: SuiteContents, since before: SuiteContents = SuiteContents()
  ) throws(StoreError) {
    for change in contents.settings.differences(from: before.settings) {
      guard let value = change.after?.value, value != change.before?.value else { continue }
      _ = try key(change.key, taking: value)
    }
  }
}

extension StoreError {
  fileprivate var reason: String {
    switch self {
    case .invalidValue(let reason), .notPermitted(let reason): reason
    default: message
    }
  }
}
