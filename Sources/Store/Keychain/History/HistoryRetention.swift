public import Model

/// How much of what items were is kept.
public struct HistoryRetention: Hashable, Sendable {
  /// How many versions of an item are kept; 0: none.
  public var versions: Int
  /// How long a version is kept after it was replaced, in days; 0: none is.
  public var days: Int

  /// 10 versions for 30 days.
  public static let standard = HistoryRetention(versions: 10, days: 30)
  /// Nothing is kept.
  public static let none = HistoryRetention(versions: 0, days: 0)
  /// The largest number of versions that can be asked for.
  public static let mostVersions = 100
  /// The longest time that can be asked for, in days.
  public static let mostDays = 3650

  /// Values above `mostVersions` and `mostDays` count as these, negative ones as 0.
  public init(versions: Int, days: Int) {
    self.versions = min(max(0, versions), Self.mostVersions)
    self.days = min(max(0, days), Self.mostDays)
  }

  /// Whether anything is kept at all.
  public var keepsAny: Bool { versions > 0 && days > 0 }

  /// Whether what was replaced at `time` is no longer kept at `now`.
  public func isOver(_ time: Timestamp, at now: Timestamp) -> Bool {
    now.seconds &- time.seconds > Int64(days) &* 86_400
  }
}

extension Item {
  /// The attribute that says how many versions of the item are kept: a decimal number.
  public static let historyAttribute: ExactString = "keyhole.history"

  /// How much of the item is kept, where `retention` is the keychain's. The attribute can only keep fewer versions.
  public func retention(_ retention: HistoryRetention) -> HistoryRetention {
    guard let text = attributes[Self.historyAttribute], let count = Int(String(decoding: text, as: UTF8.self))
    else { return retention }
    return HistoryRetention(versions: min(count, retention.versions), days: retention.days)
  }
}
