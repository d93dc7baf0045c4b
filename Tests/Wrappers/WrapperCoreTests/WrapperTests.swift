import DefaultKeychain
import Foil
import Foundation
import FoundationEssentials
import KeyPathObservation
import Model
import Observation
import PropertyKit
import Synchronization
import Testing
import UserDefault
import WrapperCore

@testable import DefaultSuites

/// The common behaviour of the wrappers, on one suite in memory.
@Suite(.timeLimit(.minutes(1))) struct WrapperTests {
  private let suite = Suite("app", in: .memory())

  private func foil<T: UserDefaultsSerializable>(_ value: T, _ key: String = "key") -> FoilDefaultStorage<T> {
    FoilDefaultStorage(wrappedValue: value, key: key, userDefaults: suite)
  }

  private func user<T: DefaultsValueConvertible>(_ value: T, _ key: String = "key") -> UserDefault<T> {
    UserDefault(wrappedValue: value, key, defaults: suite)
  }

  private func store(_ value: SettingValue, _ key: String = "key") throws {
    try suite.live.key(key).set(value)
  }

  private func stored(_ key: String = "key") -> SettingValue? { suite.live.key(key).stored.value }

  @Test func aTestHasAStoreInMemory() {
    #expect(Suite("somebody's").live !== Suite("somebody's", in: .user).live)
    #expect(Suite("one").live === Suite("one").live)
    #expect(Suite(UserDefaults(suiteName: "named") ?? .standard).name == "named")
    #expect(Suite(UserDefaults.standard) == .standard)
    // Neither is opened by that.
    #expect(KeychainLocation.chosen.live !== KeychainLocation.user.live)
    #expect(KeychainLocation.chosen.live === KeychainLocation.chosen.live)
  }

  @Test func foundationTellsTheNameOfASuite() throws {
    final class Mine: UserDefaults {
      let suite = 5
    }
    let named = try #require(UserDefaults(suiteName: "named"))
    #expect(FoundationSuite(named) == .named("named"))
    #expect(
      FoundationSuite(UserDefaults.standard) == .standard && FoundationSuite(UserDefaults()) == .standard)
    #expect(try FoundationSuite(#require(Mine(suiteName: "mine"))) == .named("mine"))
    #expect(FoundationSuite(nil as Any?) == .unknown && FoundationSuite(5 as Any?) == .unknown)
    // A Foundation that does not: nothing of it gets into the program's suite.
    let (one, other) = (Suite(.unknown, of: named), Suite(.unknown, of: UserDefaults()))
    #expect(one != .standard && one != other && one == Suite(.unknown, of: named))
    #expect(Suite(.unknown, of: .standard) == .standard)
  }

  @Test func aLineOfTheLogIsOneLine() {
    #expect(Log.line("app key", "no number") == "keyhole: app key: no number\n")
    let name = "a\nkeyhole: b\u{1B}[2J\u{2028}\u{202E}é😀"
    #expect(Log.line(name, "x") == "keyhole: a\\u{a}keyhole: b\\u{1b}[2J\\u{2028}\\u{202e}é😀: x\n")
  }

  @Test func errorsNameTypesAndNeverValues() throws {
    try store(.string("secret"))
    let value = user(5)
    #expect(value.wrappedValue == 5)
    let error = try #require(value.projectedValue.error as? any LoggedError)
    #expect(error.logText.contains("Int") && !error.logText.contains("secret"))
  }

  @Test func wrappersOfOneKeyAgree() {
    let (one, other) = (foil(1), user(1))
    one.wrappedValue = 5
    #expect(other.wrappedValue == 5)
    other.wrappedValue = 6
    #expect(one.wrappedValue == 6)
  }

  @Test func theLastDefaultCountsForAllAndIsNotStored() {
    let (one, other) = (foil(1), foil(2))
    #expect(one.wrappedValue == 2 && other.wrappedValue == 2)
    one.wrappedValue = 3
    try? suite.removeAll()
    #expect(one.wrappedValue == 2)
    #expect(suite.live.storedKeys.isEmpty)
  }

  @Test(arguments: [
    SettingValue.string("no number"), .data([1, 2]), .array([]), .integer(300), .integer(-1), .real(1.5),
    .real(.nan),
  ])
  func whatDoesNotReadGivesTheDefaultAndStays(_ value: SettingValue) throws {
    try store(value)
    let (one, other) = (foil(UInt8(7)), user(UInt8(7)))
    #expect(one.wrappedValue == 7 && other.wrappedValue == 7)
    #expect(one.projectedValue.error != nil)
    #expect(other.projectedValue.error != nil)
    #expect(!other.wasLoadedSuccessfully)
    #expect(stored() == value)
    one.wrappedValue = 8
    #expect(one.projectedValue.error == nil)
    #expect(other.wrappedValue == 8)
  }

  @Test func numbersReadAsWhateverHoldsThem() throws {
    try store(.real(42))
    #expect(foil(0).wrappedValue == 42)
    try store(.string("42"))
    #expect(foil(0).wrappedValue == 42 && foil(0.0).wrappedValue == 42 && user(Int8(0)).wrappedValue == 42)
    try store(.integer(Int128(UInt64.max)))
    #expect(foil(UInt(0)).wrappedValue == .max)
    #expect(foil(5).wrappedValue == 5)
    try store(.string("0.1"))
    #expect(foil(Decimal(0)).wrappedValue == Decimal(string: "0.1"))
    for text in ["0x10", "nan", "inf", "1 apple", ""] {
      try store(.string(ExactString(text)))
      #expect(foil(Decimal(7)).wrappedValue == 7, "\(text)")
    }
  }

  @Test func equalValuesAreNoNews() {
    let value = foil([1, 2])
    let heard = Mutex<[[Int]]>([])
    let subscription = value.projectedValue.sink { next in heard.withLock { $0.append(next) } }
    value.wrappedValue = [1, 2]
    value.wrappedValue = [3]
    value.wrappedValue = [3]
    user([0]).wrappedValue = [3]
    #expect(heard.withLock { $0 } == [[1, 2], [3]])
    subscription.cancel()
  }

  @Test func aSubscriberMaySetTheValue() {
    let value = foil(0)
    let heard = Mutex<[Int]>([])
    let subscription = value.projectedValue.sink { next in
      heard.withLock { $0.append(next) }
      if next < 3 { value.wrappedValue = next + 1 }
    }
    #expect(heard.withLock { $0 } == [0, 1, 2, 3])
    subscription.cancel()
  }

  @Test func aSequenceMissesNothing() async {
    let value = user(0)
    var values = value.projectedValue.values.makeAsyncIterator()
    for next in 1...100 { value.wrappedValue = next }
    for next in 0...100 { #expect(await values.next() == next) }
  }

  @Test func manyThreads() async {
    let value = foil(0, "shared")
    let subscription = value.projectedValue.sink { _ in }
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        group.addTask { [self] in
          let own = foil(-1, "own\(number)")
          for next in 0..<50 {
            own.wrappedValue = next
            value.wrappedValue = next
            _ = value.wrappedValue
          }
        }
      }
    }
    #expect(value.wrappedValue == 49)
    for number in 0..<8 { #expect(foil(0, "own\(number)").wrappedValue == 49) }
    subscription.cancel()
  }

  struct Person: Codable, Equatable, UserDefaultsSerializable, DefaultsValueConvertible {
    var name: String
    var born: Date
    var tags: [String]
  }

  @Test func codableIsStoredByItsShape() {
    let person = Person(name: "x", born: Date(timeIntervalSinceReferenceDate: 0.5), tags: ["a"])
    let optional = FoilDefaultStorageOptional<Person>(key: "key", userDefaults: suite)
    optional.wrappedValue = person
    let shape: SettingValue = .dictionary([
      "name": .string("x"), "born": .real(0.5), "tags": .array([.string("a")]),
    ])
    #expect(stored() == shape)
    #expect(optional.wrappedValue == person)
    #expect(UserDefault<Person?>("key", defaults: suite).wrappedValue == person)
  }

  @Test func datesKeepTheirFraction() throws {
    let date = Date(timeIntervalSinceReferenceDate: 816_940_380.123456)
    let other = OtherProcess()
    let suite = Suite("app", in: .folder(other.suites))
    let value = FoilDefaultStorageOptional<Date>(key: "date", userDefaults: suite)
    value.wrappedValue = date
    UserDefault<[Date]>(wrappedValue: [], "dates", defaults: suite).wrappedValue = [date]
    #expect(value.wrappedValue == date)
    // As another process reads the file.
    let fresh = Suite("app", in: .folder(other.suites))
    #expect(FoilDefaultStorageOptional<Date>(key: "date", userDefaults: fresh).wrappedValue == date)
    #expect(UserDefault<[Date]>(wrappedValue: [], "dates", defaults: fresh).wrappedValue == [date])
    #expect(SettingDefaults(fresh).object(forKey: "date") as? Date == date)
  }

  @Test func jsonOfTheOriginalsIsRead() throws {
    let json = Array(#"{"name":"x","born":0.5,"tags":["a"]}"#.utf8)
    try store(.data(json))
    let person = Person(name: "x", born: Date(timeIntervalSinceReferenceDate: 0.5), tags: ["a"])
    #expect(FoilDefaultStorageOptional<Person>(key: "key", userDefaults: suite).wrappedValue == person)
    #expect(UserDefault<Person?>("key", defaults: suite).wrappedValue == person)
  }

  @Test func optionalsOfTheOriginalAreRead() throws {
    try store(.array([.integer(5)]))
    #expect(UserDefault<Int?>("key", defaults: suite).wrappedValue == 5)
    let value = UserDefault<Int?>(wrappedValue: 42, "key", defaults: suite)
    value.wrappedValue = 6
    #expect(stored() == .integer(6))
    value.wrappedValue = nil
    #expect(stored() == .array([]))
    try store(.array([.integer(1), .integer(2)]))
    #expect(value.wrappedValue == 42)
    #expect(value.projectedValue.error is DefaultsError)
  }

  @Test func readingWithADefaultStoresItOnlyWhereNothingIs() throws {
    let defaults = Defaults(suite: suite)
    #expect(defaults.counter == 3)
    #expect(stored("counter") == .integer(3))
    try store(.string("text"), "counter")
    #expect(defaults.counter == 3)
    #expect(stored("counter") == .string("text"))
    #expect(defaults.error(of: "counter", as: Int.self) != nil)
  }

  @Observable final class Model {
    let wrapped: FoilDefaultStorage<Int>
    var plain = 1
    var sum: Int { plain + wrapped.wrappedValue }

    init(_ wrapped: FoilDefaultStorage<Int>) { self.wrapped = wrapped }
  }

  @Test func aKeyPathFollowsAllThatItReads() {
    let model = Model(foil(10))
    let heard = Mutex<[Int?]>([])
    let observation = model.observe(\.sum, options: [.initial, .new]) { _, change in
      let value = change.newValue
      heard.withLock { $0.append(value) }
    }
    model.plain = 2
    model.wrapped.wrappedValue = 20
    model.wrapped.wrappedValue = 20
    user(0).wrappedValue = 30
    observation.invalidate()
    model.plain = 5
    #expect(heard.withLock { $0 } == [11, 12, 22, 32])
  }

  @Test func aPublisherOfAnObservableClassFollowsAllThatItReads() {
    let model = Model(foil(10))
    let heard = Mutex<[Int]>([])
    let subscription = model.publisher(for: \.sum).sink { sum in heard.withLock { $0.append(sum) } }
    model.plain = 2
    user(0).wrappedValue = 30
    subscription.cancel()
    model.plain = 5
    #expect(heard.withLock { $0 } == [11, 12, 32])
  }

  @Test func theOptionPriorTellsBeforeAChange() {
    let model = Model(foil(10))
    let heard = Mutex<[String]>([])
    let observation = model.observe(\.plain, options: [.prior, .old, .new]) { model, change in
      let (old, new) = (change.oldValue ?? -1, change.newValue ?? -1)
      let line = "\(change.isPrior ? "before" : "after") \(model.plain): \(old) \(new)"
      heard.withLock { $0.append(line) }
    }
    model.plain = 2
    observation.invalidate()
    #expect(heard.withLock { $0 } == ["before 1: 1 -1", "after 2: 1 2"])
  }

  @Test func observationHasTheNewValueAtOnce() {
    let value = foil(0)
    let heard = Mutex<[Int]>([])
    @Sendable func follow() {
      withObservationTracking {
        let now = value.wrappedValue
        heard.withLock { $0.append(now) }
      } onChange: {
        follow()
      }
    }
    follow()
    for next in 1...3 { value.wrappedValue = next }
    #expect(heard.withLock { $0 } == [0, 1, 2, 3])
  }

  @Test func aBindingIsTwoWay() {
    SuiteStorage.$current.withValue(.memory()) {
      let state = UserDefault<Int>.State(wrappedValue: 1, "state")
      let binding = state.projectedValue
      binding.wrappedValue = 2
      #expect(state.wrappedValue == 2)
      state.wrappedValue = 3
      #expect(binding.wrappedValue == 3)
    }
  }
}

extension Defaults {
  fileprivate var counter: Int { get { get(or: 3) } }
}
