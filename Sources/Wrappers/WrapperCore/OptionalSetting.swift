package import Model

/// How an optional is stored: nil as an empty array, so that it differs from a missing value, and a value as
/// itself; as an array of one where it would read as something else without it (a value that is an array).
package struct OptionalSetting<Wrapped> {
  private let readWrapped: (SettingValue) throws -> Wrapped

  /// `readWrapped` reads a stored value that is not nil.
  package init(_ readWrapped: @escaping (SettingValue) throws -> Wrapped) {
    self.readWrapped = readWrapped
  }

  /// The stored form of a value that is stored as `wrapped` by itself.
  package func write(_ wrapped: SettingValue?) -> SettingValue {
    guard let wrapped else { return .array([]) }
    guard case .array(let items) = wrapped, wouldUnwrap(items) else { return wrapped }
    return .array([wrapped])
  }

  /// Also reads any value as an array of one.
  package func read(_ setting: SettingValue) throws -> Wrapped? {
    guard case .array(let items) = setting else { return try readWrapped(setting) }
    guard let first = items.first else { return nil }
    if items.count == 1, let value = try? readWrapped(first) { return value }
    return try readWrapped(setting)
  }

  /// Whether an array would not be read as the value that it is.
  private func wouldUnwrap(_ items: [SettingValue]) -> Bool {
    guard let first = items.first else { return true }
    return items.count == 1 && (try? readWrapped(first)) != nil
  }
}
