import Observation
import Synchronization
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

  @Test func longChains() {
    check(LongChain(name: "chain"), "chain")
    #expect(UserDefault<String?>("readme.chain").wrappedValue == "chain")
  }

  @Test func state() {
    struct View {
      @UserDefault.State("readme.state") var count = 1
      @UserDefault.State("readme.state.name") var name: String?
      var body: String { "\(count) \(name ?? "nobody")" }
    }
    let (view, same) = (View(), View())
    #expect(view.body == "1 nobody")
    view.count += 1
    view.$name.wrappedValue = "x"
    #expect(same.body == "2 x")
    let isStale = Mutex(false)
    withObservationTracking {
      _ = same.body
    } onChange: {
      isStale.withLock { $0 = true }
    }
    view.$count.wrappedValue = 7
    #expect(isStale.withLock { $0 })
    #expect(same.body == "7 x")
  }

  @Test func bindings() {
    @UserDefault.State("readme.binding") var test = CodableStruct(foo: "one")
    $test.foo.wrappedValue = "two"
    #expect(test.foo == "two")
    let constant = Binding.constant(1)
    constant.wrappedValue = 2
    #expect(constant.wrappedValue == 1)
  }

  @Test func whatCannotBeSavedLeavesTheOldValue() {
    struct Picky: DefaultsValueConvertible, Equatable {
      var number: Int
      init(_ number: Int) { self.number = number }
      init(defaultsRepresentation: Int) throws { number = defaultsRepresentation }
      func defaultsRepresentation() throws -> Int {
        guard number < 10 else { throw DefaultsError.illegalValue(found: number, for: Picky.self) }
        return number
      }
    }
    @UserDefault("readme.picky") var picky = Picky(1)
    picky = Picky(2)
    picky = Picky(10)
    #expect(picky.number == 2)
    #expect($picky.error is DefaultsError)
    picky = Picky(3)
    #expect(picky.number == 3)
    #expect($picky.error == nil)
  }

  @Test func loadingSavingAndClearing() {
    let suite = Suite("readme.methods")
    var one = UserDefault(wrappedValue: 5, "number", defaults: suite)
    #expect(one.key == "number" && one.defaultValue == 5 && !one.wasLoadedSuccessfully)
    #expect(one.defaults.object(forKey: "number") == nil)
    one.saveValue()
    #expect(one.defaults.integer(forKey: "number") == 5 && !one.wasLoadedSuccessfully)
    one.loadValue()
    #expect(one.wasLoadedSuccessfully)
    let other = UserDefault(wrappedValue: 0, "number", defaults: one.defaults)
    #expect(other.wasLoadedSuccessfully && other.wrappedValue == 5)
    other.wrappedValue = 6
    #expect(one.wrappedValue == 6)
    one.clear()
    #expect(one.wrappedValue == 5 && other.wrappedValue == 0)
    #expect(one.defaults.object(forKey: "number") == nil)
  }

  /// Types of one's own, by its documentation: they may store themselves as they like.
  @Test func aValueThatStoresItself() throws {
    struct Point: DefaultsValue, Equatable {
      var x = 0, y = 0
      init(x: Int, y: Int) { (self.x, self.y) = (x, y) }
      func save(to defaults: UserDefaults, forKey key: String) throws {
        defaults.set(["x": x, "y": y], forKey: key)
      }
      init(from defaults: UserDefaults, forKey key: String) throws {
        guard let found = defaults.object(forKey: key) else { throw DefaultsError.missingValue(key: key) }
        guard let parts = found as? [String: Int] else {
          throw DefaultsError.typeMismatch(found: found, expected: [String: Int].self)
        }
        self.init(x: parts["x"] ?? 0, y: parts["y"] ?? 0)
      }
    }
    check(Point(x: 1, y: 2), "point")
    check([Point(x: 1, y: 2)], "points")
    check(["p": Point(x: 1, y: 2)], "named points")
    #expect(UserDefault<[String: Int]?>("readme.point").wrappedValue == ["x": 1, "y": 2])
    let wrong = UserDefault<Point>(wrappedValue: Point(x: 9, y: 9), "readme.name.wrong")
    UserDefault<String?>("readme.name.wrong").wrappedValue = "text"
    #expect(wrong.wrappedValue.x == 9)
    guard case .typeMismatch? = wrong.projectedValue.error as? DefaultsError else {
      Issue.record("no mismatch")
      return
    }
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

private struct LongChain: Equatable {
  var name: String
}

extension LongChain: IndirectDefaultsValueConvertible {
  typealias DefaultsRepresentation = IndirectConvertible.DefaultsRepresentation

  init(indirectRepresentation: IndirectConvertible) throws {
    name = indirectRepresentation.name
  }

  func indirectRepresentation() throws -> IndirectConvertible {
    try .init(defaultsRepresentation: name)
  }
}
