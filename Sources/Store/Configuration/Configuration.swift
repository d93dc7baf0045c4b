public import Model

/// The settings of Keyhole that are in effect, each with its origin.
///
/// A mount option comes before the vault, the vault before the suite `keyhole`, and that before the default.
public struct Configuration: Sendable {
  /// The place where a value was set.
  public enum Origin: String, Sendable {
    case option = "mount option"
    case vault
    case suite
    case fallback = "default"
  }

  /// The value of a key that is in effect.
  public struct Entry: Sendable {
    /// The value, of the key's type.
    public var value: SettingValue
    /// The place where it was set.
    public var origin: Origin

    /// - Parameters:
    ///   - value: of the key's type.
    ///   - origin: the place where it was set.
    public init(_ value: SettingValue, _ origin: Origin) {
      (self.value, self.origin) = (value, origin)
    }
  }

  private var entries: [ConfigurationKey: Entry] = [:]

  /// - Parameters:
  ///   - options: of the mount.
  ///   - sealed: what lies in the vault.
  ///   - suite: what is followed of the suite `keyhole`.
  public init(
    options: [ConfigurationKey: SettingValue] = [:], sealed: [ConfigurationKey: SettingValue] = [:],
    suite: [ConfigurationKey: SettingValue] = [:]
  ) {
    for (values, origin) in [(suite, Origin.suite), (sealed, .vault), (options, .option)] {
      for (key, value) in values { entries[key] = Entry(value, origin) }
    }
  }

  /// The value of a key that is in effect.
  public subscript(key: ConfigurationKey) -> Entry { entries[key] ?? Entry(key.fallback, .fallback) }

  /// Whether a bool is true.
  public func isOn(_ key: ConfigurationKey) -> Bool { self[key].value == .bool(true) }

  /// A number, in the unit of the key.
  public func number(_ key: ConfigurationKey) -> Int {
    if case .integer(let number) = self[key].value { Int(clamping: number) } else { 0 }
  }

  /// How much history is kept.
  public var retention: HistoryRetention {
    HistoryRetention(versions: number(.history), days: number(.historyAge))
  }

  /// The path of a program, or a word; nil: none.
  public func text(_ key: ConfigurationKey) -> String? {
    if case .string(let text) = self[key].value, text != "" { text.string } else { nil }
  }

  /// The elements of an array.
  public func list(_ key: ConfigurationKey) -> [String] {
    if case .array = self[key].value { ConfigurationKey.words(of: self[key].value) } else { [] }
  }

  /// Keys whose value protects less than the default.
  public var weakened: [ConfigurationKey] {
    ConfigurationKey.allCases.filter { $0.isWeaker(self[$0].value, than: $0.fallback) }
  }
}
