import PropertyKit

// Internals of the original that its tests use.

struct Property<Value: Codable> {
  let key: String
  init(_ key: String) { self.key = key }
}

extension Defaults {
  func has<Value>(_ property: Property<Value>) -> Bool { get(for: property) != nil }
  func get<Value>(for property: Property<Value>) -> Value? { get(key: property.key) }
  func set<Value>(_ value: Value, for property: Property<Value>) { set(value, key: property.key) }
  func clear<Value>(_ property: Property<Value>) { set(nil as Value?, key: property.key) }
}
