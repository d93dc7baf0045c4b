import Foil
import Foundation
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
