public import Foundation
import Model
import WrapperCore

/// The stored form of an optional: nil as an empty array, so that it differs from a missing value, and a value
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
    try defaults.asSettings.store(Self.form.write(wrapped.map { try Part.write($0) }), key)
  }

  public init(from defaults: UserDefaults, forKey key: String) throws {
    let setting = try Self.setting(defaults, key)
    do {
      try self.init(Self.form.read(setting))
    } catch  where setting.type == .array {
      throw DefaultsError.illegalValue(found: Plist.any(setting), for: Wrapped?.self)
    }
  }

  private static var form: OptionalSetting<Wrapped> { OptionalSetting { try Part.read(Wrapped.self, $0) } }
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
