import DefaultSuites
import Foundation
import Model
public import WrapperCore

/// A suite whose keys are the names of properties that you add in extensions:
///
/// ```swift
/// extension Defaults: PropertyDefaults {
///   public var name: String? { set { set(newValue) } get { get() } }
/// }
/// ```
public final class Defaults: Sendable {
  /// The suite of the program.
  public static let shared = Defaults()

  let suite: Suite

  /// - Parameter suiteName: the suite's name. nil, an empty name and one with a slash stand for the
  ///   suite of the program.
  public convenience init(suiteName: String? = nil) {
    let isUsable = suiteName.map { !$0.isEmpty && !$0.contains("/") } ?? false
    self.init(suite: isUsable ? Suite(suiteName ?? "") : .standard)
  }

  /// Stores the properties in the given suite.
  public init(suite: Suite) {
    self.suite = suite
  }
}

/// The methods with which properties of `Defaults` read and write.
public protocol PropertyDefaults {}

extension PropertyDefaults where Self: Defaults {
  /// Stores a value, or the default where there is none.
  public func set<T: Codable>(_ newValue: T? = nil, or defaultValue: T, key: String = #function) {
    store(newValue ?? defaultValue, key)
  }

  /// Stores a value; nil removes the key.
  public func set<T: Codable>(_ newValue: T? = nil, key: String = #function) {
    store(newValue, key)
  }

  /// The stored value, or else the default, which is not stored.
  public func get<T: Codable>(or defaultValue: T? = nil, key: String = #function) -> T? {
    read(key) ?? defaultValue
  }

  /// The stored value, or else the default, which is stored where there is none. A value of another type stays.
  public func get<T: Codable>(or defaultValue: T, key: String = #function) -> T {
    let live = suite.live.key(key)
    if let value: T = read(key) { return value }
    if live.stored.value == nil { store(defaultValue, key) }
    return defaultValue
  }

  /// Why the key does not read as a type; nil: it does, or nothing is stored.
  public func error<T: Codable>(of key: String, as type: T.Type) -> (any Error)? {
    guard let setting = suite.live.key(key).stored.value else { return nil }
    do {
      _ = try Properties.read(type, setting)
      return nil
    } catch {
      return error
    }
  }

  /// The value of a key now, nil where it has none, and then after every change from anywhere.
  public func values<T: Codable>(of key: String, as type: T.Type = T.self) -> LiveSequence<T?> {
    LiveValue<T?>(suite, key, fallback: nil) { try Properties.read(T.self, $0) }.sequence
  }

  private func read<T: Codable>(_ key: String) -> T? {
    guard let setting = suite.live.key(key).current.value else { return nil }
    do {
      return try Properties.read(T.self, setting)
    } catch {
      Log.note("\(suite.name) \(key)", error)
      return nil
    }
  }

  private func store<T: Codable>(_ value: T?, _ key: String) {
    do {
      try suite.live.key(key).set(value.map { try Values.encode($0) })
    } catch {
      Log.note("\(suite.name) \(key)", error)
    }
  }
}

/// How properties are stored.
enum Properties {
  /// Also reads what the original stores: for everything but strings, numbers and dates that is JSON in data.
  static func read<T: Codable>(_ type: T.Type, _ setting: SettingValue) throws -> T {
    if case .data(let bytes) = setting, type != Data.self,
      let value = try? JSONDecoder().decode(type, from: Data(bytes))
    {
      return value
    }
    return try Values.decode(type, from: setting)
  }
}
