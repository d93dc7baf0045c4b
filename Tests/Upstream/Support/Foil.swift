import Foil
import Foundation

// Fixtures and internals of the original that its tests use.

extension UserDefaults {
  static func testSuite(name: String = UUID().uuidString) -> UserDefaults { SettingDefaults(Suite(name)) }

  func reset(name: String) { try? Suite(name).removeAll() }

  func save<Value: UserDefaultsSerializable>(_ value: Value, for key: String) {
    FoilDefaultStorageOptional<Value>(key: key, userDefaults: self).wrappedValue = value
  }

  func fetchOptional<Value: UserDefaultsSerializable>(_ key: String) -> Value? {
    FoilDefaultStorageOptional<Value>(key: key, userDefaults: self).wrappedValue
  }

  func fetch<Value: UserDefaultsSerializable>(_ key: String) -> Value {
    guard let value: Value = fetchOptional(key) else { preconditionFailure("nothing is stored under \(key)") }
    return value
  }
}
