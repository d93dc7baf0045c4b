import DefaultSuites
public import Foundation
public import WrapperCore

/// A property that is stored in a suite: `@UserDefault("name") var name: String?`.
///
/// Reading does not touch the disk, and returns what any wrapper, process or the mount has set last. If
/// nothing is stored it reads as the default, which is never stored by reading; where what is stored does not
/// read as `Value`, too, and `$property.error` says why.
@propertyWrapper
public struct UserDefault<Value: DefaultsValueConvertible> {
  /// The key's name.
  public let key: String
  /// The value where nothing is stored, or what is stored does not read as `Value`.
  public let defaultValue: Value
  /// Whether there was a value to load when the wrapper was made, or `loadValue()` was last called.
  public private(set) var wasLoadedSuccessfully: Bool
  private let suite: Suite
  private let live: LiveValue<Value>

  /// The suite of the program holds the key.
  public init(wrappedValue: Value, _ key: String) {
    self.init(wrappedValue: wrappedValue, key, defaults: Suite.standard)
  }

  /// The suite that Foundation's object names holds the key.
  public init(wrappedValue: Value, _ key: String, defaults: UserDefaults) {
    self.init(wrappedValue: wrappedValue, key, defaults: Suite(defaults))
  }

  /// The given suite holds the key; `wrappedValue` is the default.
  @_disfavoredOverload
  public init(wrappedValue: Value, _ key: String, defaults: Suite) {
    self.key = key
    defaultValue = wrappedValue
    suite = defaults
    let settings = SettingDefaults(defaults) as UserDefaults
    live = LiveValue(defaults, key, fallback: wrappedValue) { _ in
      try Value(defaultsRepresentation: Value.DefaultsRepresentation(from: settings, forKey: key))
    }
    wasLoadedSuccessfully = live.isStored
  }

  /// The default is nil; the suite that Foundation's object names holds the key.
  public init(_ key: String, defaults: UserDefaults = .standard) where Value: ExpressibleByNilLiteral {
    self.init(wrappedValue: nil, key, defaults: defaults)
  }

  /// The default is nil; the given suite holds the key.
  @_disfavoredOverload
  public init(_ key: String, defaults: Suite) where Value: ExpressibleByNilLiteral {
    self.init(wrappedValue: nil, key, defaults: defaults)
  }

  /// The suite that holds the key, as Foundation would show it.
  public var defaults: UserDefaults { SettingDefaults(suite) }

  /// The stored value, or the default. A value that `hasChanged(from:)` finds unchanged is not stored; one that can't
  /// be stored leaves the old one, and the error is logged.
  public var wrappedValue: Value {
    get { live.value }
    nonmutating set {
      if newValue.hasChanged(from: live.value) { save(newValue) }
    }
  }

  /// The changes of the value (`values`), and the last error (`error`).
  public var projectedValue: LiveProjection<Value> { LiveProjection(live) }

  /// Looks at the disk at once; without it, changes by others are seen some milliseconds after they are made.
  public mutating func loadValue() {
    live.reload()
    wasLoadedSuccessfully = live.isStored
  }

  /// Stores the present value, also where it is the default.
  public func saveValue() {
    save(live.value)
  }

  /// Removes the key, so that the property reads as its default.
  public mutating func clear() {
    live.set { nil }
  }

  private func save(_ value: Value) {
    live.set {
      let scratch = SettingDefaults.scratch()
      try value.defaultsRepresentation().save(to: scratch as UserDefaults, forKey: key)
      return scratch.setting(key)
    }
  }
}

extension UserDefault: Sendable where Value: Sendable {}
