public import Foundation
import Live
import Model

/// What an optional is stored as: nil as an empty array, so that it is told from what was never set, and a value
/// as itself.
///
/// The original stores a value as an array of one, which is read as well, and still written where a value
/// would read as something else without it (a value that is an array itself).
public struct OptionalRepresentation<Wrapped: DefaultsValue>: DefaultsValue {
  let wrapped: Wrapped?

  init(_ wrapped: Wrapped?) {
    self.wrapped = wrapped
  }

  public func save(to defaults: UserDefaults, forKey key: String) throws {
    try defaults.asSettings.store(setting(), key)
  }

  public init(from defaults: UserDefaults, forKey key: String) throws {
    try self.init(Self.read(Self.setting(defaults, key)))
  }

  private func setting() throws -> SettingValue {
    guard let wrapped else { return .array([]) }
    let plain = try Part.write(wrapped)
    guard case .array(let items) = plain else { return plain }
    return Self.wouldUnwrap(items) ? .array([plain]) : plain
  }

  /// Whether an array would not be read as the value that it is.
  private static func wouldUnwrap(_ items: [SettingValue]) -> Bool {
    items.isEmpty || items.count == 1 && items.first.flatMap { try? Part.read(Wrapped.self, $0) } != nil
  }

  private static func read(_ setting: SettingValue) throws -> Wrapped? {
    guard case .array(let items) = setting else { return try Part.read(Wrapped.self, setting) }
    guard let only = items.first else { return nil }
    if items.count == 1, let value = try? Part.read(Wrapped.self, only) { return value }
    do {
      return try Part.read(Wrapped.self, setting)
    } catch {
      throw DefaultsError.illegalValue(found: items.count, for: Wrapped?.self)
    }
  }
}

extension Optional: DefaultsValueConvertible where Wrapped: DefaultsValueConvertible {
  public typealias DefaultsRepresentation = OptionalRepresentation<Wrapped.DefaultsRepresentation>

  public init(defaultsRepresentation: DefaultsRepresentation) throws {
    self = try defaultsRepresentation.wrapped.map { try Wrapped(defaultsRepresentation: $0) }
  }

  public func defaultsRepresentation() throws -> DefaultsRepresentation {
    OptionalRepresentation(try map { try $0.defaultsRepresentation() })
  }
}
