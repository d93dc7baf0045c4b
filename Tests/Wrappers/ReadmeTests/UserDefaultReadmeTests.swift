import Foundation
import Testing
import UserDefault

// The examples of UserDefault's README.

@Suite(.timeLimit(.minutes(1))) struct UserDefaultReadmeTests {
  @Test func directStorage() {
    @UserDefault("readme.hasSeenSplashScreen") var hasSeenSplashScreen = false
    @UserDefault("readme.name") var name: String?
    @UserDefault("readme.count") var count: Int? = 42
    #expect(!hasSeenSplashScreen)
    #expect(name == nil)
    #expect(count == 42)

    hasSeenSplashScreen = true
    name = "John Appleseed"
    count = nil

    #expect(UserDefault(wrappedValue: false, "readme.hasSeenSplashScreen").wrappedValue)
    #expect(UserDefault<String?>("readme.name").wrappedValue == "John Appleseed")
    // nil was set, which is something else than never set.
    #expect(UserDefault<Int?>(wrappedValue: 42, "readme.count").wrappedValue == nil)
  }

  @Test func codable() {
    @UserDefault("readme.test") var test = CodableStruct(foo: "hello, world!")
    test.foo = "goodbye."
    #expect(UserDefault(wrappedValue: CodableStruct(foo: ""), "readme.test").wrappedValue.foo == "goodbye.")
  }

  @Test func coding() {
    @UserDefault("readme.color") var color = Color.systemRed
    #expect(color === Color.systemRed)
    color = .systemBlue
    #expect(UserDefault(wrappedValue: Color.systemRed, "readme.color").wrappedValue.name == "blue")
  }

  @Test func conditionalConformances() {
    check([1, 2, 3], "array")
    check(["a": ["b"]], "dictionary")
    check(Set(["a", "b"]), "set")
    check(Stringy.jklö, "raw value")
    check([Stringy.asdf], "array of raw values")
    check([Stringy.asdf: 1], "dictionary by raw values")
    check(Optional(["x"]), "optional array")
    check(Optional([String]()), "optional empty array")
    check(Optional([["x"]]), "optional nested array")
    check([1, nil, 3], "array of optionals")
    check(BothEnum.two, "raw value and codable")
    check(0.25, "double")
    check(UInt8(255), "UInt8")
    check(URL(string: "https://a/b"), "URL")
    check(UUID(), "UUID")
    check(ContiguousArray([1, 2]), "contiguous array")
  }

  @Test func customConformance() {
    check(Convertible(name: "direct"), "convertible")
    #expect(UserDefault<String?>("readme.convertible").wrappedValue == "direct")
  }

  @Test func indirectConformance() {
    check(IndirectConvertible(name: "indirect"), "indirect")
    #expect(UserDefault<String?>("readme.indirect").wrappedValue == "indirect")
  }

  private func check<Value: DefaultsValueConvertible & Equatable>(_ value: Value, _ name: String) {
    @UserDefault("readme.\(name)") var stored: Value?
    #expect(stored == nil, "\(name)")
    stored = value
    #expect(stored == value, "\(name)")
    #expect(UserDefault<Value?>("readme.\(name)").wrappedValue == value, "\(name)")
    #expect(UserDefault<Value?>("readme.\(name)").wasLoadedSuccessfully, "\(name)")
  }
}

private struct CodableStruct {
  var foo: String
}

extension CodableStruct: Equatable, Codable, DefaultsValueConvertible {}

/// Stands for UIColor, which Linux does not have. An archive needs the class to have a name.
final class Color: NSObject, NSCoding {
  static let systemRed = Color("red")
  static let systemBlue = Color("blue")
  let name: String

  init(_ name: String) { self.name = name }
  init?(coder: NSCoder) { name = coder.decodeObject(forKey: "name") as? String ?? "" }
  func encode(with coder: NSCoder) { coder.encode(name as NSString, forKey: "name") }
}

extension Color: DefaultsValueConvertible {}

private enum Stringy: String, DefaultsValueConvertible {
  case asdf
  case jklö

  typealias DefaultsRepresentation = String
}

private enum BothEnum: String, Codable, DefaultsValueConvertible {
  case one, two
  typealias DefaultsRepresentation = String
}

private struct Convertible: Equatable {
  var name: String
}

extension Convertible: DefaultsValueConvertible {
  typealias DefaultsRepresentation = String

  init(defaultsRepresentation: String) throws {
    name = defaultsRepresentation
  }

  func defaultsRepresentation() throws -> String {
    name
  }
}

private struct IndirectConvertible: Equatable {
  var name: String
}

extension IndirectConvertible: IndirectDefaultsValueConvertible {
  typealias DefaultsRepresentation = Convertible.DefaultsRepresentation

  init(indirectRepresentation: Convertible) throws {
    name = indirectRepresentation.name
  }

  func indirectRepresentation() throws -> Convertible {
    try .init(defaultsRepresentation: name)
  }
}
