import FTPropertyWrappers
import Foil
import Foundation
import KeychainStorage
import PropertyKit
import Testing
import UserDefault

/// Every type that one of the five lists, in all five.
@Suite(.timeLimit(.minutes(1))) struct EveryTypeTests {
  typealias Storable = Codable & Equatable & Sendable & UserDefaultsSerializable & DefaultsValueConvertible

  @Test func numbers() throws {
    try check(true)
    try check(Int.min)
    try check(Int8.min)
    try check(Int16.min)
    try check(Int32.min)
    try check(Int64.min)
    try check(UInt.max)
    try check(UInt8.max)
    try check(UInt16.max)
    try check(UInt32.max)
    try check(UInt64.max)
    try check(Float(0.1))
    try check(0.1)
    try check(Decimal(string: "-0.1234567890123456789"))
  }

  @Test func otherValues() throws {
    try check("")
    try check("true\n")
    try check(URL(string: "https://a/b?c#d"))
    try check(UUID())
    try check(Date(timeIntervalSince1970: 1_795_247_580))
    try check(Data())
    try check(Data([0, 255]))
  }

  @Test func collections() throws {
    try check([1, 2])
    try check([String]())
    try check([[Date(timeIntervalSince1970: 1)]])
    try check(Set(["a", "b"]))
    try check(["a": [UUID()], "": []])
    try check(["a": URL(string: "https://a/b")])
    try check([1, nil, 3])
  }

  @Test func typesOfOnesOwn() throws {
    try check(Raw.two)
    try check(Number.two)
    try check([Raw.two])
    try check(["a": Number.two])
    try check(Shape(name: "x", raw: .two, when: Date(timeIntervalSince1970: 0.5), parts: [["a": 1]]))
    try check([Shape(name: "x", raw: nil, when: .distantPast, parts: [])])
  }

  private func check<T: Storable>(_ value: T?, _ place: SourceLocation = #_sourceLocation) throws {
    let value = try #require(value)
    try check(value, place)
    // An optional type is one of them.
    try checkOptional(value, place)
  }

  private func check<T: Storable>(_ value: T, _ place: SourceLocation) throws {
    try alone { suite in
      let foil = FoilDefaultStorageOptional<T>(key: "foil", userDefaults: suite)
      foil.wrappedValue = value
      #expect(
        FoilDefaultStorageOptional<T>(key: "foil", userDefaults: suite).wrappedValue == value, "Foil",
        sourceLocation: place)

      let user = UserDefault<T?>("user", defaults: suite)
      user.wrappedValue = value
      #expect(
        UserDefault<T?>("user", defaults: suite).wrappedValue == value, "UserDefault", sourceLocation: place)

      let defaults = Defaults(suite: suite)
      defaults.set(value, key: "property")
      #expect(defaults.get(key: "property") == value, "PropertyKit", sourceLocation: place)

      let password = GenericPassword<T>(service: "types")
      password.wrappedValue = value
      #expect(
        GenericPassword<T>(service: "types").wrappedValue == value, "FTPropertyWrappers",
        sourceLocation: place)

      let provider = MemoryProvider()
      _ = KeychainStorage<T, _>(wrappedValue: value, provider: provider, key: "type")
      let entry = KeychainStorage<T?, _>(wrappedValue: nil, provider: provider, key: "type")
      #expect(entry.wrappedValue == value, "KeychainStorage", sourceLocation: place)
    }
  }

  private func checkOptional<T: Storable>(_ value: T, _ place: SourceLocation) throws {
    try alone { suite in
      let foil = FoilDefaultStorage<T?>(wrappedValue: value, key: "foil", userDefaults: suite)
      foil.wrappedValue = nil
      #expect(foil.wrappedValue == nil, "Foil", sourceLocation: place)
      foil.wrappedValue = value
      #expect(foil.wrappedValue == value, "Foil", sourceLocation: place)

      let password = GenericPassword<T?>(service: "types")
      password.wrappedValue = .some(value)
      #expect(
        GenericPassword<T?>(service: "types").wrappedValue == .some(value), "FTPropertyWrappers",
        sourceLocation: place)

      let user = UserDefault<T?>(wrappedValue: value, "user", defaults: suite)
      user.wrappedValue = nil
      #expect(
        UserDefault<T?>(wrappedValue: value, "user", defaults: suite).wrappedValue == nil, "UserDefault",
        sourceLocation: place)
    }
  }

  /// With a suite and a keychain of its own.
  private func alone(_ body: (Suite) throws -> Void) throws {
    try KeychainLocation.$current.withValue(.memory()) { try body(Suite("types", in: .memory())) }
  }

  enum Raw: String, Codable, UserDefaultsSerializable, DefaultsValueConvertible { case one, two }
  enum Number: Int, Codable, UserDefaultsSerializable, DefaultsValueConvertible { case one = 1, two }

  struct Shape: Codable, Equatable, UserDefaultsSerializable, DefaultsValueConvertible {
    var name: String
    var raw: Raw?
    var when: Date
    var parts: [[String: Int]]
  }
}
