import DefaultSuites
import FTPropertyWrappers
import Foil
import Foundation
import InMemory
import KeychainStorage
import Model
import Store
import Synchronization
import Testing

@testable import DefaultKeychain
@testable import WrapperCore

/// Changes between two steps of a wrapper: each test lets the other side act exactly there.
@Suite(.timeLimit(.minutes(1))) struct RaceTests {
  @Test func changeWhileAValueIsStoredIsNotOverwritten() {
    let provider = TellingProvider()
    @KeychainStorage(provider: provider, key: "turn") var turn: Int? = 0
    provider.afterStoring = { provider.storeByOthers("6") }
    turn = 5
    #expect(turn == 6)
    #expect(provider.secret(forKey: "turn") == Data("6".utf8))
  }

  @Test func changeWhileAValueIsReadIsNotOverwritten() {
    let provider = TellingProvider()
    @KeychainStorage(provider: provider, key: "turn") var turn: Int? = 0
    provider.afterReading = { provider.storeByOthers("3") }
    provider.storeByOthers("2")
    #expect(turn == 3)
  }

  @Test func changeBeforeTheFirstReadIsSeen() {
    let provider = TellingProvider()
    provider.storeByOthers("1")
    provider.afterReading = { provider.afterReading = { provider.storeByOthers("2") } }
    @KeychainStorage(provider: provider, key: "turn") var turn: Int? = 0
    #expect(turn == 2)
  }

  @Test func nilStaysNilWhateverTheFirstValue() {
    let provider = TellingProvider()
    @KeychainStorage(provider: provider, key: "turn") var turn: Int? = 42
    turn = nil
    #expect(turn == nil)
    provider.tell()
    #expect(turn == nil)
  }

  @Test func firstValueOfAnotherProcessStays() {
    let provider = TellingProvider()
    provider.afterReading = { provider.storeByOthers("7") }
    @KeychainStorage(provider: provider, key: "turn") var turn = 1
    #expect(turn == 7 && $turn.error == nil)
    #expect(provider.secret(forKey: "turn") == Data("7".utf8))
  }

  @Test func twoKeychainsWithOneKeyAreTwoStores() throws {
    let location = KeychainLocation.memory()
    @KeychainStorage(provider: Keychain(service: "one", in: location), key: "token") var one = 1
    @KeychainStorage(provider: Keychain(service: "two", in: location), key: "token") var two = 2
    one = 3
    #expect(one == 3 && two == 2)
  }
}

// Items that come and go between looking for them and storing them.
extension RaceTests {
  /// A keychain that calls `act` once, after an item was looked for and before it is stored.
  private static func location(_ act: @escaping @Sendable () -> Void) -> KeychainLocation {
    let isDone = Atomic(false)
    let digest = { @Sendable () -> String in
      if !isDone.exchange(true, ordering: .acquiringAndReleasing) { act() }
      return "fingers"
    }
    return KeychainLocation(
      live: LiveKeychain(enrolledFingers: digest) {
        LiveKeychain.Opened(store: KeychainStore(engine: MemoryKeychain()))
      })
  }

  private func wrapper(_ location: KeychainLocation) -> GenericPassword<String> {
    KeychainLocation.$current.withValue(location) {
      GenericPassword(
        service: "race", refreshPolicy: .manual, accessOption: kSecAttrAccessibleWhenUnlocked,
        accessFlags: .biometryCurrentSet)
    }
  }

  private static func other(_ location: KeychainLocation?) -> GenericPassword<String>? {
    location.map { location in
      KeychainLocation.$current.withValue(location) { GenericPassword<String>(service: "race") }
    }
  }

  @Test func itemThatIsAddedMeanwhileIsRewritten() throws {
    let place = Mutex<KeychainLocation?>(nil)
    let location = Self.location { Self.other(place.withLock { $0 })?.wrappedValue = "theirs" }
    place.withLock { $0 = location }
    let ours = wrapper(location)
    ours.wrappedValue = "ours"
    try ours.saveToKeychain()
    let items = try location.live.items(.generic(service: "race", account: nil))
    #expect(items.count == 1 && items.first?.size == 4)
    #expect(items.first?.access.flags == [.biometryCurrentSet])
  }

  @Test func itemThatIsRemovedMeanwhileIsAdded() throws {
    let place = Mutex<KeychainLocation?>(nil)
    let location = Self.location { try? Self.other(place.withLock { $0 })?.deleteKeychain() }
    place.withLock { $0 = location }
    Self.other(location)?.wrappedValue = "theirs"
    let ours = wrapper(location)
    ours.wrappedValue = "ours"
    try ours.saveToKeychain()
    #expect(try location.live.items(.generic(service: "race", account: nil)).map(\.size) == [4])
  }
}

// Suites.
extension RaceTests {
  @Test func changeWhileASuiteIsReadFirstIsSeen() {
    let engine = GatedSuites()
    let changed = Mutex<(@Sendable (String?) -> Void)?>(nil)
    let settings = LiveSettings(SettingsStore(engine: engine)) { tell in
      changed.withLock { $0 = tell }
      return nil
    }
    let finished = DispatchSemaphore(value: 0)
    engine.afterReading {
      engine.base.replace("app", with: ["number": .integer(5)])
      let hasBegun = DispatchSemaphore(value: 0)
      // A look asks for the stamp first, and then waits for this read to end; where no look follows, it ends at once.
      engine.onStamp { hasBegun.signal() }
      Thread.detachNewThread {
        changed.withLock { $0 }?("app")
        hasBegun.signal()
        finished.signal()
      }
      hasBegun.wait()
    }
    let suite = Suite(settings.suite("app"))
    let number = FoilDefaultStorage(wrappedValue: 1, key: "number", userDefaults: suite)
    finished.wait()
    #expect(number.wrappedValue == 5)
  }
}

/// A keychain that tells of changes, and lets a test act at the end of a read or a write.
private final class TellingProvider: WatchedProvider, @unchecked Sendable {
  // Used by one thread.
  private var data: Data?
  private var listeners: [@Sendable () -> Void] = []
  /// Called once.
  var afterReading: (() -> Void)?
  var afterStoring: (() -> Void)?

  func storeByOthers(_ text: String) {
    data = Data(text.utf8)
    tell()
  }

  func tell() { for look in listeners { look() } }

  func secret(forKey key: String) -> Data? {
    let found = data
    afterReading.take()?()
    return found
  }

  func getData(forKey key: String) -> Data? { secret(forKey: key) }

  func setFirstData(_ data: Data, forKey key: String) -> Bool {
    self.data == nil ? setData(data, forKey: key) : true
  }

  func setData(_ data: Data, forKey key: String) -> Bool {
    self.data = data
    tell()
    afterStoring.take()?()
    return true
  }

  func deleteData(forKey key: String) -> Bool {
    data = nil
    tell()
    return true
  }

  func listen(_ look: @escaping @Sendable () -> Void) -> Listening {
    listeners.append(look)
    return Listening {}
  }
}

/// Suites in memory that let a test act at the end of the first read, and when a stamp is asked for.
private final class GatedSuites: SuiteEngine {
  let base = MemorySuites()
  private let actions = Mutex<(read: (@Sendable () -> Void)?, stamp: (@Sendable () -> Void)?)>((nil, nil))

  func afterReading(_ act: @escaping @Sendable () -> Void) { actions.withLock { $0.read = act } }
  func onStamp(_ act: @escaping @Sendable () -> Void) { actions.withLock { $0.stamp = act } }

  var propertyLists: any PropertyListCoding { base.propertyLists }
  func suites() throws(StoreError) -> [ExactString: SuiteStamp] { try base.suites() }

  func stamp(of suite: ExactString) throws(StoreError) -> SuiteStamp? {
    actions.withLock { $0.stamp.take() }?()
    return try base.stamp(of: suite)
  }

  func read(_ suite: ExactString, since known: SuiteContents?) throws(StoreError) -> SuiteContents? {
    let contents = try base.read(suite)
    actions.withLock { $0.read.take() }?()
    return contents
  }

  func update(
    _ suite: ExactString, known: SuiteContents?, _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteContents {
    try base.update(suite, known: known, body)
  }

  func readOnlyReason(of suite: ExactString) throws(StoreError) -> String? {
    try base.readOnlyReason(of: suite)
  }
  func create(_ suite: ExactString) throws(StoreError) -> SuiteContents { try base.create(suite) }
  func remove(_ suite: ExactString) throws(StoreError) { try base.remove(suite) }
  func rename(_ suite: ExactString, to name: ExactString) throws(StoreError) {
    try base.rename(suite, to: name)
  }
  func synchronize(_ suite: ExactString) throws(StoreError) {}
  func room() throws(StoreError) -> DiskRoom { try base.room() }
  func problems() -> [Problem] { [] }
}
