import KeychainStorage
import Observation
import Synchronization
import Testing

// The examples of KeychainStorage's README. A view is any code that reads the value under Observation.

@Suite(.timeLimit(.minutes(1))) struct KeychainStorageReadmeTests {
  enum myKeychainProvider {
    static let shared = MemoryProvider()
  }

  struct WriterView {
    @KeychainStorage(provider: myKeychainProvider.shared, key: "someKey")
    private var someValue = false

    func tapToggle() {
      someValue.toggle()
    }
  }

  struct ReaderView {
    @KeychainStorage(provider: myKeychainProvider.shared, key: "someKey")
    private var someValue = false

    var body: String {
      "\(someValue)"
    }
  }

  @Test func writerAndReader() {
    let (writer, reader) = (WriterView(), ReaderView())
    #expect(reader.body == "false")
    let isStale = Mutex(false)
    withObservationTracking {
      _ = reader.body
    } onChange: {
      isStale.withLock { $0 = true }
    }
    writer.tapToggle()
    #expect(isStale.withLock { $0 })
    #expect(reader.body == "true")
    #expect(ReaderView().body == "true")
  }

  @Test func theFirstValueIsWritten() {
    let provider = MemoryProvider()
    @KeychainStorage(provider: provider, key: "first") var value = 5
    #expect(provider.getData(forKey: "first") == Data("5".utf8))
    #expect(value == 5)
  }

  @Test func nilDeletes() {
    let provider = MemoryProvider()
    @KeychainStorage(keychainProvider: provider, key: "optional") var value: String? = nil
    #expect(provider.getData(forKey: "optional") == nil)
    value = "secret"
    #expect(provider.getData(forKey: "optional") == Data("\"secret\"".utf8))
    value = nil
    #expect(provider.getData(forKey: "optional") == nil)
  }

  @Test func theFirstTypeIsKept() {
    let provider = MemoryProvider()
    @KeychainStorage(provider: provider, key: "clash") var text = "text"
    @KeychainStorage(provider: provider, key: "clash") var number = 1
    number = 2
    #expect(number == 1)
    #expect($number.error != nil)
    #expect(text == "text")
    #expect(provider.getData(forKey: "clash") == Data("\"text\"".utf8))
  }

  @Test func aProviderThatRefuses() {
    let provider = MemoryProvider()
    @KeychainStorage(provider: provider, key: "refused") var value = 1
    provider.refuses = true
    value = 2
    #expect(value == 1)
    provider.refuses = false
    value = 2
    #expect(value == 2)
  }

  /// The README's first example is of `@AppStorage`, which is SwiftUI's; here that is `@UserDefault.State`, and
  /// with a keychain:
  @Test func motivation() {
    struct Toggle {
      @KeychainStorage(keychainProvider: Keychain(service: "readme", in: .memory()), key: "toggle")
      var someValue = false
    }
    let toggle = Toggle()
    toggle.someValue.toggle()
    #expect(toggle.someValue)
  }

  @Test func aValueThatHasNoFormLeavesTheOldOne() {
    let provider = MemoryProvider()
    @KeychainStorage(provider: provider, key: "no JSON") var value = 0.5
    value = .nan
    #expect(value == 0.5)
    #expect($value.error != nil)
    #expect(provider.getData(forKey: "no JSON") == Data("0.5".utf8))
    value = 1
    #expect(value == 1)
    #expect($value.error == nil)
  }

  @Test func anotherTypeHearsNothing() {
    let provider = MemoryProvider()
    @KeychainStorage(provider: provider, key: "types") var text = "1"
    @KeychainStorage(provider: provider, key: "types") var same = "2"
    @KeychainStorage(provider: provider, key: "types") var other: String? = nil
    text = "3"
    #expect(same == "3")
    // Another type is another value until it is read again, though it would read what is stored.
    #expect(other == "1")
    @KeychainStorage(provider: provider, key: "types") var later: String? = nil
    #expect(later == "3")
  }

  @Test func sequence() async {
    let provider = MemoryProvider()
    @KeychainStorage(provider: provider, key: "sequence") var one = 0
    @KeychainStorage(provider: provider, key: "sequence") var other = 0
    var values = $other.values.makeAsyncIterator()
    #expect(await values.next() == 0)
    for next in 1...3 { one = next }
    for next in 1...3 { #expect(await values.next() == next) }
    #expect($other.value == 3)
  }

  @Test func damagedDataIsTheDefaultAndStays() {
    let provider = MemoryProvider()
    _ = provider.setData(Data("{".utf8), forKey: "damaged")
    @KeychainStorage(provider: provider, key: "damaged") var value = 1
    #expect(value == 1)
    #expect($value.error != nil)
    #expect(provider.getData(forKey: "damaged") == Data("{".utf8))
  }

  @Test func aProviderThatStoresNothing() {
    struct Nothing: KeychainProvider {
      func setData(_ data: Data, forKey key: String) -> Bool { true }
      func getData(forKey key: String) -> Data? { nil }
      func deleteData(forKey key: String) -> Bool { true }
    }
    @KeychainStorage(provider: Nothing(), key: "shared state") var one = 0
    @KeychainStorage(provider: Nothing(), key: "shared state") var other = 0
    one = 7
    #expect(other == 7)
  }

  @Test func keyholesKeychain() throws {
    let keychain = Keychain(service: "readme", in: .memory())
    @KeychainStorage(provider: keychain, key: "token") var token: String? = nil
    token = "x"
    #expect(try keychain.secret(forKey: "token") == Data("\"x\"".utf8))
    try keychain.setSecret(Data("\"y\"".utf8), forKey: "token")
    #expect(token == "y")
    try keychain.setSecret(nil, forKey: "token")
    #expect(token == nil)
  }
}

final class MemoryProvider: KeychainProvider, @unchecked Sendable {
  private var data: [String: Data] = [:]
  var refuses = false

  func setData(_ data: Data, forKey key: String) -> Bool {
    if !refuses { self.data[key] = data }
    return !refuses
  }

  func getData(forKey key: String) -> Data? { data[key] }

  func deleteData(forKey key: String) -> Bool {
    if !refuses { data[key] = nil }
    return !refuses
  }
}
