import Observation
import PropertyKit
import Testing

// The examples of PropertyKit's README. In place of `@objc dynamic`, which Linux does not have, the watched class
// is `@Observable`.

extension Defaults: PropertyDefaults {
  public var autoStringProperty: String? {
    set { set(newValue) }
    get { return get() }
  }
  public var autoDateProperty: Date? {
    set { set(newValue) }
    get { return get() }
  }
}

public struct CustomValueType: Codable {
  var key: String = "value"
  var date: Date?
  var data: Data?
}

extension Defaults {
  // non-optional - must define the default value with the keyword 'or'
  public var autoCustomNonOptionalProperty: CustomValueType {
    set { set(newValue) }
    get { return get(or: CustomValueType()) }
  }
  // optional with/without setter default value
  public var autoCustomOptionalProperty: CustomValueType? {
    set { set(newValue) }
    get { return get() }
  }
  public var autoCustomOptionalPropertySetterDefaultValue: CustomValueType? {
    set { set(newValue, or: CustomValueType()) }
    get { return get() }
  }
}

protocol MyDefaultsKeysUsingInA: PropertyDefaults {
  var noThisIsMyKeyNotYours: Int? { get }
}

extension Defaults: MyDefaultsKeysUsingInA {
  var noThisIsMyKeyNotYours: Int? {
    set { set(newValue) }
    get { return get() }
  }
}

private protocol PrivateDefaultKeysInThisSwiftFile: PropertyDefaults {
  var filePrivateValue: String? { set get }
}

extension Defaults: PrivateDefaultKeysInThisSwiftFile {
  fileprivate var filePrivateValue: String? {
    set { set(newValue) }
    get { return get() }
  }
}

private var p1: Int {
  get { return Defaults.shared.get(or: 0) }
  set { Defaults.shared.set(newValue) }
}
private var p2: Int {
  return Defaults.shared.get(or: 0)
}

@Observable
class WatchableObject: NSObject, PropertyWatchable {
  var testingProperty: String?
}

@Suite(.serialized, .timeLimit(.minutes(1))) struct PropertyKitReadmeTests {
  @Test func automaticKeys() {
    let sharedDefaults = Defaults()
    sharedDefaults.autoStringProperty = "the new value will persist in shared scope"
    #expect(sharedDefaults.autoStringProperty == Defaults.shared.autoStringProperty)

    Defaults.shared.autoStringProperty = "another new value will persist in shared scope"
    #expect(Defaults.shared.autoStringProperty == sharedDefaults.autoStringProperty)

    let localDefaults = Defaults(suiteName: "local")
    localDefaults.autoStringProperty = "the new value will persist in local scope"
    #expect(localDefaults.autoStringProperty != Defaults.shared.autoStringProperty)

    Defaults.shared.autoDateProperty = Date(timeIntervalSince1970: 7)
    #expect(sharedDefaults.autoDateProperty == Date(timeIntervalSince1970: 7))
  }

  @Test func codableTypes() {
    #expect(Defaults.shared.autoCustomNonOptionalProperty.key == "value")
    Defaults.shared.autoCustomNonOptionalProperty.key = "other"
    Defaults.shared.autoCustomNonOptionalProperty.date = Date(timeIntervalSince1970: 0.25)
    Defaults.shared.autoCustomNonOptionalProperty.data = Data([1])
    let custom = Defaults().autoCustomNonOptionalProperty
    #expect(custom.key == "other" && custom.date == Date(timeIntervalSince1970: 0.25))
    #expect(custom.data == Data([1]))

    #expect(Defaults.shared.autoCustomOptionalProperty == nil)
    Defaults.shared.autoCustomOptionalProperty = CustomValueType(key: "set")
    #expect(Defaults.shared.autoCustomOptionalProperty?.key == "set")
    Defaults.shared.autoCustomOptionalProperty = nil
    #expect(Defaults.shared.autoCustomOptionalProperty == nil)

    Defaults.shared.autoCustomOptionalPropertySetterDefaultValue = nil
    #expect(Defaults.shared.autoCustomOptionalPropertySetterDefaultValue?.key == "value")
  }

  @Test func uniqueKeys() {
    Defaults.shared.noThisIsMyKeyNotYours = 1
    #expect(Defaults.shared.noThisIsMyKeyNotYours == 1)
    Defaults.shared.filePrivateValue = "mine"
    #expect(Defaults.shared.filePrivateValue == "mine")
  }

  @Test func whatIsStoredIsWhatItIs() throws {
    let defaults = Defaults(suite: Suite("readme.forms"))
    defaults.set(URL(string: "https://a/b"), key: "url")
    defaults.set(UInt8(200), key: "number")
    defaults.set([1.5], key: "array")
    defaults.set(CustomValueType(key: "k"), key: "custom")
    let stored = SettingDefaults(Suite("readme.forms"))
    #expect(stored.string(forKey: "url") == "https://a/b")
    #expect(stored.object(forKey: "number") as? Int == 200)
    #expect(stored.array(forKey: "array") as? [Double] == [1.5])
    #expect(stored.dictionary(forKey: "custom")?["key"] as? String == "k")
    // JSON in data, as the original stores it, is read.
    stored.set(Data(#"{"key":"json"}"#.utf8), forKey: "custom")
    let custom: CustomValueType? = defaults.get(key: "custom")
    #expect(custom?.key == "json")
    #expect(defaults.error(of: "custom", as: Int.self) != nil)
    #expect(defaults.error(of: "custom", as: CustomValueType.self) == nil)
  }

  @Test func noOptionsMeanTheNewValue() {
    let object = WatchableObject()
    var seen: [String??] = []
    object.watch(\.testingProperty) { _, change in seen += [change.newValue, change.oldValue] }
    object.testingProperty = "x"
    object.testingProperty = "x"
    #expect(seen == ["x", nil])
  }

  @Test func keysOfFunctions() {
    p1 = 2
    #expect(p1 == 2)
    #expect(p2 == 0)
  }

  @Test func watch() {
    let object = WatchableObject()
    var count = 0
    object.watch(\.testingProperty) {
      #expect(object.testingProperty == "some value")
      count += 1
    }
    object.testingProperty = "some value"
    #expect(count == 1)
  }

  @Test func watchWithOptions() {
    let object = WatchableObject()
    object.testingProperty = "before"
    var seen: [[String?]] = []
    object.watch(\.testingProperty, options: [.initial, .new, .old]) { (target, changes) in
      #expect(target === object)
      seen.append([changes.oldValue ?? nil, changes.newValue ?? nil])
    }
    object.testingProperty = "some value"
    #expect(seen == [[nil, "before"], ["before", "some value"]])
  }

  @Test func watchInitial() {
    let object = WatchableObject()
    object.testingProperty = "initial value"
    var count = 0
    object.watch(\.testingProperty, options: [.initial]) { (o, _) in
      #expect(o.testingProperty == "initial value")
      count += 1
    }
    #expect(count == 1)
  }

  @Test func automaticIdentifiers() {
    let object = WatchableObject()
    var heard: [String] = []
    object.watch(\.testingProperty) {
      heard.append("1")
    }
    object.watch(\.testingProperty) {
      heard.append("2")
    }
    object.watch(\.testingProperty, id: "myid", options: [.old]) {
      heard.append("myid")
    }
    object.testingProperty = "x"
    #expect(heard.sorted() == ["1", "2", "myid"])
    #expect(object.watching(by: \.testingProperty).count == 3)

    // Remove only an observer which has "myid" only
    #expect(object.unwatch(\.testingProperty, forIds: ["myid"]) == ["myid": true])
    heard = []
    object.testingProperty = "y"
    #expect(heard.sorted() == ["1", "2"])

    // Remove all observers that are watching ".testingProperty"
    object.unwatch(\.testingProperty)
    heard = []
    object.testingProperty = "z"
    #expect(heard == [])
  }

  @Test func removeInThisFile() {
    let object = WatchableObject()
    var heard: [String] = []
    object.watch(\.testingProperty) { heard.append("1") }
    object.watch(\.testingProperty) { heard.append("2") }
    object.watch(\.testingProperty, id: "kept") { heard.append("kept") }
    #expect(object.unwatchAllFilePrivate())
    #expect(!object.unwatchAllFilePrivate())
    object.testingProperty = "x"
    #expect(heard == ["kept"])
    #expect(!object.unwatchAllFilePrivate(\.testingProperty))
    #expect(object.unwatch(forIds: ["kept", "unknown"]) == ["kept": true, "unknown": false])
  }

  @Test func unwatchInAllFormsWhereNothingIsWatched() {
    let object = WatchableObject()
    #expect(object.unwatch(\.testingProperty).isEmpty)
    #expect(object.unwatch(\.testingProperty, forIds: ["none"]).isEmpty)
    #expect(object.unwatch(forIds: []).isEmpty)
    #expect(object.unwatch(forIds: ["none", "none"]) == ["none": false])
    #expect(!object.unwatchAllFilePrivate())
    object.unwatchAll()
    #expect(object.watching(by: \.testingProperty).isEmpty)
  }

  @Test func anIdThatIsWatchedAgainReplacesTheObservation() {
    let object = WatchableObject()
    var heard: [String] = []
    for name in ["first", "second"] {
      object.watch(\.testingProperty, id: "same") { heard.append(name) }
    }
    // One line is one observation, too.
    for name in ["third", "fourth"] { object.watch(\.testingProperty) { heard.append(name) } }
    object.testingProperty = "x"
    #expect(heard.sorted() == ["fourth", "second"])
    #expect(object.watching(by: \.testingProperty, id: "same").map(\.id) == ["same"])
    object.unwatch(\.testingProperty)
  }

  @Test func aHandlerMayEndItsObservation() {
    let object = WatchableObject()
    var count = 0
    object.watch(\.testingProperty, id: "once") {
      count += 1
      object.unwatch(forIds: ["once"])
    }
    object.testingProperty = "x"
    object.testingProperty = "y"
    #expect(count == 1)
  }

  @Test func removeInTheApplication() {
    let (one, two) = (WatchableObject(), WatchableObject())
    var heard = 0
    one.watch(\.testingProperty) { heard += 1 }
    two.watch(\.testingProperty) { heard += 1 }
    one.unwatchAll()
    one.testingProperty = "x"
    two.testingProperty = "x"
    #expect(heard == 0)
  }
}
