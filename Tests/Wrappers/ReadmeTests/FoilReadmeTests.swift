import Foil
import Testing

// The examples of Foil's README. `@objc dynamic` is left out: Linux does not have it, and it is not needed.

@Suite(.timeLimit(.minutes(1))) struct FoilReadmeTests {
  @Test func usage() {
    final class AppSettings {
      @FoilDefaultStorage(key: "readme.flagEnabled")
      var flagEnabled = true
      @FoilDefaultStorage(key: "readme.totalCount")
      var totalCount = 0
      @FoilDefaultStorageOptional(key: "readme.timestamp")
      var timestamp: Date?
    }
    let settings = AppSettings()
    #expect(settings.flagEnabled)
    #expect(settings.totalCount == 0)
    #expect(settings.timestamp == nil)
    settings.flagEnabled = false
    settings.totalCount += 1
    settings.timestamp = Date(timeIntervalSince1970: 1_000)
    let others = AppSettings()
    #expect(!others.flagEnabled)
    #expect(others.totalCount == 1)
    #expect(others.timestamp == Date(timeIntervalSince1970: 1_000))
    others.timestamp = nil
    #expect(settings.timestamp == nil)
  }

  @Test func enumKeys() {
    #expect(EnumKeys().flagEnabled)
    EnumKeys().flagEnabled = false
    EnumKeys().timestamp = Date(timeIntervalSince1970: 5)
    EnumKeys().totalCount += 1
    #expect(AppSettingsKey.allCases.count == 3)
    #expect(EnumKeys().totalCount == 1)
    #expect(!EnumKeys().flagEnabled)
    #expect(EnumKeys().timestamp == Date(timeIntervalSince1970: 5))
  }

  final class AppSettings: NSObject {
    static let shared = AppSettings()
    @FoilDefaultStorageOptional(key: "readme.userId")
    var userId: String?
    @FoilDefaultStorageOptional(key: "readme.average")
    var average: Double?
  }

  @Test func keyValueObserving() {
    var changes: [String?] = []
    let observer = AppSettings.shared.observe(\.userId, options: [.new]) { settings, change in
      changes.append(change.newValue ?? nil)
      #expect(settings === AppSettings.shared)
    }
    AppSettings.shared.userId = "peter"
    AppSettings.shared.userId = "mary"
    observer.invalidate()
    AppSettings.shared.userId = "nobody"
    #expect(changes == ["peter", "mary"])
  }

  @Test func publisher() {
    var cancellable = Set<AnyCancellable>()
    var values: [Double?] = []
    AppSettings.shared.$average
      .sink {
        values.append($0)
      }
      .store(in: &cancellable)
    AppSettings.shared.average = 0.5
    AppSettings.shared.average = 0.75
    cancellable = []
    AppSettings.shared.average = 1
    #expect(values == [nil, 0.5, 0.75])
  }

  @Test func publisherForKeyPath() {
    final class Settings: NSObject {
      @FoilDefaultStorageOptional(key: "readme.userId.published")
      var userId: String?
    }
    let settings = Settings()
    settings.userId = "before"
    var cancellable = Set<AnyCancellable>()
    var values: [String?] = []
    settings
      .publisher(for: \.userId, options: [.new])
      .sink {
        values.append($0)
      }
      .store(in: &cancellable)
    #expect(values == [])
    settings.userId = "after"
    #expect(values == ["after"])
  }

  @Test func codable() {
    @FoilDefaultStorageOptional(key: "readme.user")
    var user: User?
    let peter = User(id: UUID(), name: "peter")
    user = peter
    #expect(user == peter)
    #expect(FoilDefaultStorageOptional<User>(key: "readme.user").wrappedValue == peter)
  }

  /// "This will crash if you change User by adding/removing properties": here it is the default, and what is stored
  /// stays.
  @Test func codableThatHasChanged() {
    struct NewUser: Codable, UserDefaultsSerializable, Equatable {
      var id = UUID()
      var name = "default"
      var age = 1
    }
    FoilDefaultStorageOptional<User>(key: "readme.user.changed").wrappedValue = User(id: UUID(), name: "old")
    @FoilDefaultStorage(key: "readme.user.changed") var user = NewUser()
    #expect(user.name == "default")
    #expect($user.error != nil)
    #expect(FoilDefaultStorageOptional<User>(key: "readme.user.changed").wrappedValue?.name == "old")
    user.name = "new"
    #expect(user.name == "new")
    #expect($user.error == nil)
  }

  @Test func customTypes() {
    struct Point: UserDefaultsSerializable, Hashable {
      var x: Int, y: Int
      var storedValue: [String: Int] { ["x": x, "y": y] }
      init(_ x: Int, _ y: Int) { (self.x, self.y) = (x, y) }
      init?(storedValue: [String: Int]) {
        guard let x = storedValue["x"], let y = storedValue["y"] else { return nil }
        self.init(x, y)
      }
    }
    @FoilDefaultStorage(key: "readme.foil.point") var point = Point(0, 0)
    @FoilDefaultStorage(key: "readme.foil.points") var points: [String: Set<Point>] = [:]
    @FoilDefaultStorageOptional(key: "readme.foil.point") var stored: [String: Int]?
    point = Point(1, 2)
    points = ["a": [Point(1, 2)]]
    #expect(point == Point(1, 2) && points == ["a": [Point(1, 2)]])
    #expect(stored == ["x": 1, "y": 2])
    stored = ["x": 1]
    #expect(point == Point(0, 0))
    #expect($point.error != nil)
    #expect(stored == ["x": 1])
  }

  @Test func equality() {
    let suite = Suite("readme.equality")
    let one = FoilDefaultStorage(wrappedValue: 1, key: "one", userDefaults: suite)
    let same = FoilDefaultStorage(wrappedValue: 1, key: "one", userDefaults: suite)
    let other = FoilDefaultStorage(wrappedValue: 1, key: "other", userDefaults: suite)
    #expect(one == same && one != other && Set([one, same, other]).count == 2)
    let none = FoilDefaultStorageOptional<Int>(key: "none", userDefaults: suite)
    #expect(none == FoilDefaultStorageOptional<Int>(key: "none") && Set([none, none]).count == 1)
  }

  @Test func suitesOfFoundation() throws {
    let defaults = try #require(UserDefaults(suiteName: "readme.named"))
    @FoilDefaultStorage(key: "number", userDefaults: defaults) var number = 1
    @FoilDefaultStorage(key: "number", userDefaults: Suite("readme.named")) var same = 1
    @FoilDefaultStorageOptional(key: "number", userDefaults: .standard) var other: Int?
    @FoilDefaultStorage(key: "number", userDefaults: SettingDefaults(Suite("readme.named"))) var third = 1
    number = 2
    #expect(same == 2 && third == 2 && other == nil)
  }

  @Test func anElementThatDoesNotReadMakesTheArrayUnreadable() {
    let suite = Suite("readme.elements")
    @FoilDefaultStorageOptional(key: "texts", userDefaults: suite) var texts: [String]?
    @FoilDefaultStorageOptional(key: "texts", userDefaults: suite) var textsAsNumbers: [Int]?
    texts = ["1", "x"]
    #expect(textsAsNumbers == nil)
    #expect($textsAsNumbers.error != nil)
    #expect(texts == ["1", "x"])
    texts = ["1", "2"]
    #expect(textsAsNumbers == [1, 2])
    #expect($textsAsNumbers.error == nil)
  }

  @Test func classesWithCoding() {
    @FoilDefaultStorage(key: "readme.foil.color") var color = Paint("red")
    color = Paint("blue")
    #expect(FoilDefaultStorageOptional<Paint>(key: "readme.foil.color").wrappedValue?.name == "blue")
  }

  @Test func rawRepresentable() {
    @FoilDefaultStorage(key: "readme.enum")
    var value = MyStringEnum.one
    value = .two
    #expect(value == .two)
    #expect(FoilDefaultStorageOptional<String>(key: "readme.enum").wrappedValue == "two")
  }

  @Test func supportedTypes() {
    check(true, "Bool")
    check(-5, "Int")
    check(UInt.max, "UInt")
    check(Float(0.1), "Float")
    check(0.1, "Double")
    check("text", "String")
    check(URL(string: "https://a/b"), "URL")
    check(Date(timeIntervalSince1970: 1_795_247_580), "Date")
    check(Data([0, 255]), "Data")
    check(["a", "b"], "Array")
    check(Set([1, 2, 3]), "Set")
    check(["a": [1.5]], "Dictionary")
    check(PlainEnum.two, "RawRepresentable")
    check(User(id: UUID(), name: "x"), "Codable")
    check(UInt8.max, "UInt8")
    check(Int64.min, "Int64")
    check(UUID(), "UUID")
    check(Decimal(string: "0.1234567890123456789"), "Decimal")
    check(BothEnum.two, "RawRepresentable and Codable")
  }

  private func check<T: UserDefaultsSerializable & Equatable>(_ value: T?, _ name: String) {
    @FoilDefaultStorageOptional(key: "readme.type.\(name)") var stored: T?
    #expect(stored == nil)
    stored = value
    #expect(stored == value && value != nil, "\(name)")
    #expect(FoilDefaultStorageOptional<T>(key: "readme.type.\(name)").wrappedValue == value, "\(name)")
  }
}

private enum AppSettingsKey: String, CaseIterable {
  case flagEnabled = "readme.keys.flagEnabled"
  case totalCount = "readme.keys.totalCount"
  case timestamp = "readme.keys.timestamp"
}

extension FoilDefaultStorage {
  fileprivate init(wrappedValue: T, _ key: AppSettingsKey) {
    self.init(wrappedValue: wrappedValue, key: key.rawValue)
  }
}

extension FoilDefaultStorageOptional {
  fileprivate init(_ key: AppSettingsKey) {
    self.init(key: key.rawValue)
  }
}

private final class EnumKeys {
  @FoilDefaultStorage(.flagEnabled)
  var flagEnabled = true
  @FoilDefaultStorage(.totalCount)
  var totalCount = 0
  @FoilDefaultStorageOptional(.timestamp)
  var timestamp: Date?
}

private struct User: Codable, UserDefaultsSerializable, Equatable {
  let id: UUID
  let name: String
}

private enum MyStringEnum: String {
  case one, two
}

extension MyStringEnum: UserDefaultsSerializable {
  // swift-format-ignore: NeverForceUnwrap
  init(storedValue: String) { self.init(rawValue: storedValue)! }
}

private enum PlainEnum: Int, UserDefaultsSerializable {
  case one = 1, two
}

private enum BothEnum: String, Codable, UserDefaultsSerializable {
  case one, two
}

/// An archive needs the class to have a name.
final class Paint: NSObject, NSCoding, UserDefaultsSerializable {
  let name: String

  init(_ name: String) { self.name = name }
  init?(coder: NSCoder) { name = coder.decodeObject(forKey: "name") as? String ?? "" }
  func encode(with coder: NSCoder) { coder.encode(name as NSString, forKey: "name") }
}
