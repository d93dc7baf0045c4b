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

  /// Stores an empty array for nil, and else the value. - Throws: what storing the value throws.
  public func save(to defaults: UserDefaults, forKey key: String) throws {
    try defaults.asSettings.store(Self.form.write(wrapped.map { try Part.write($0) }), key)
  }

  /// - Throws: `DefaultsError.missingValue` where the key is not stored, `illegalValue` for an array that is neither
  ///   nil nor a value, and what reading the value throws.
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
  /// The wrapped value's stored form, or nil's.
  public typealias DefaultsRepresentation = OptionalRepresentation<Wrapped.DefaultsRepresentation>

  /// Reads the wrapped value, if there is one. - Throws: what reading it throws.
  public init(defaultsRepresentation: DefaultsRepresentation) throws {
    self = try defaultsRepresentation.wrapped.map { try Wrapped(defaultsRepresentation: $0) }
  }

  /// The stored form of the wrapped value, or of nil. - Throws: what storing the value throws.
  public func defaultsRepresentation() throws -> DefaultsRepresentation {
    OptionalRepresentation(try map { try $0.defaultsRepresentation() })
  }
}
