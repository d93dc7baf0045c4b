public import DefaultSuites
public import Foundation
import Model
public import OpenCombine
public import WrapperCore

/// A property that is stored in a suite: `@FoilDefaultStorage(key: "totalCount") var totalCount = 0`.
///
/// Reading does not touch the disk, and returns what any wrapper, process or the mount has set last. If
/// nothing is stored, it returns the default, which is never stored; so it does if the stored value does not read as
/// `T`, and `$property.error` says why.
@propertyWrapper
public struct FoilDefaultStorage<T: UserDefaultsSerializable> {
  /// The key's name.
  public let key: String
  private let live: LiveValue<T>

  /// - Parameters:
  ///   - wrappedValue: the default. The last wrapper of a key that was made gives it for all of them.
  ///   - keyName: the key.
  ///   - userDefaults: the suite that holds the key.
  @_disfavoredOverload
  public init(wrappedValue: T, key keyName: String, userDefaults: Suite = .standard) {
    key = keyName
    live = LiveValue(registering: wrappedValue, userDefaults, keyName)
  }

  /// The suite that Foundation's object names holds the key.
  public init(wrappedValue: T, key keyName: String, userDefaults: UserDefaults) {
    self.init(wrappedValue: wrappedValue, key: keyName, userDefaults: Suite(userDefaults))
  }

  /// The stored value, or the default. A value that can't be stored leaves the old one, and the error is logged.
  public var wrappedValue: T {
    get { live.value }
    nonmutating set { live.set { try Storing.write(newValue) } }
  }

  /// The value at once, and then after every change from anywhere.
  public var projectedValue: AnyPublisher<T, Never> { AnyPublisher(LivePublisher(live: live)) }
}

/// A property that may have no value, stored in a suite:
/// `@FoilDefaultStorageOptional(key: "timestamp") var timestamp: Date?`.
///
/// Setting it to nil removes the key.
@propertyWrapper
public struct FoilDefaultStorageOptional<T: UserDefaultsSerializable> {
  /// The key's name.
  public let key: String
  private let live: LiveValue<T?>

  /// - Parameters:
  ///   - keyName: the key.
  ///   - userDefaults: the suite that holds the key.
  @_disfavoredOverload
  public init(key keyName: String, userDefaults: Suite = .standard) {
    key = keyName
    live = LiveValue(userDefaults, keyName, fallback: nil) { try Storing.read(T.self, from: $0) }
  }

  /// The suite that Foundation's object names holds the key.
  public init(key keyName: String, userDefaults: UserDefaults) {
    self.init(key: keyName, userDefaults: Suite(userDefaults))
  }

  /// The stored value; nil: there is none, or it does not read as `T`. Setting nil removes the key.
  public var wrappedValue: T? {
    get { live.value }
    nonmutating set { live.set { try newValue.flatMap { try Storing.write($0) } } }
  }

  /// The value at once, and then after every change from anywhere.
  public var projectedValue: AnyPublisher<T?, Never> { AnyPublisher(LivePublisher(live: live)) }
}

/// Properties are equal that have one key and equal values.
extension FoilDefaultStorage: Equatable where T: Equatable {}
extension FoilDefaultStorage: Hashable where T: Hashable {}
extension FoilDefaultStorageOptional: Equatable where T: Equatable {}
extension FoilDefaultStorageOptional: Hashable where T: Hashable {}

extension FoilDefaultStorage: Sendable where T: Sendable {}
extension FoilDefaultStorageOptional: Sendable where T: Sendable {}

extension LiveValue where Value: UserDefaultsSerializable {
  /// Its default counts for all wrappers of the key.
  fileprivate convenience init(registering fallback: Value, _ suite: Suite, _ key: String) {
    let registered = try? Storing.write(fallback)
    self.init(suite, key, fallback: fallback) { setting in
      setting == registered ? fallback : try Storing.read(Value.self, from: setting)
    }
    if let registered { self.key.register(registered) }
  }
}
