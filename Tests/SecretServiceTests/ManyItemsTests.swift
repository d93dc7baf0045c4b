import Dispatch
import KeyringHarness
import Model
import SecretMemory
import SecretService
import Store
import Testing

/// Keyrings of thousands, and how often the service is asked. Round trips are counted, not timed.
@Suite(.serialized, .timeLimit(.minutes(3))) struct ManyItemsTests {
  @Test func thousandsAreReadInOneRoundTripEach() throws {
    let bus = try PrivateBus()
    try bus.addKeyring(named: "many", items: 5_000)
    try bus.startKeyring()
    try bus.run("secret-tool lookup service many account 7")
    let engine = try SecretServiceEngine(address: bus.address)
    var items: [Item] = []
    let calls = try bus.traffic { items = try engine.items() }
    #expect(items.count == 5_000)
    #expect(items.allSatisfy { $0.size == "secret ".utf8.count + $0.accountLength })
    // Their properties, and their lengths in batches; the rest opens the session and finds the collections.
    #expect(calls.count < 5_000 + 5_000 / 64 + 30)
  }

  @Test func listingAsksLessThanThreeTimesWhatSecretToolAsks() throws {
    // secret-tool asks for everything at once, which only a bus with room for that passes on.
    let bus = try PrivateBus(replies: 50_000)
    try bus.addKeyring(named: "many", items: 300)
    try bus.startKeyring()
    try bus.run("secret-tool lookup service many account 7")
    let theirs = try bus.traffic { try bus.run("secret-tool search --all service many >/dev/null 2>&1") }
    let engine = try SecretServiceEngine(address: bus.address)
    var count = 0
    let ours = try bus.traffic { count = try engine.items().count }
    #expect(count == 300)
    #expect(theirs.count > 300 && ours.count <= 3 * theirs.count)
  }

  @Test func whoeverComesFirstTheItemsAreReadOnce() throws {
    let bus = try PrivateBus()
    try bus.addKeyring(named: "many", items: 100)
    try bus.startKeyring()
    try bus.run("secret-tool lookup service many account 7")
    let engine = try SecretServiceEngine(address: bus.address)
    let calls = try bus.traffic {
      DispatchQueue.concurrentPerform(iterations: 4) { _ in _ = try? engine.items() }
    }
    #expect(try engine.items().count == 100)
    #expect(calls.count { $0.method.hasSuffix("GetSecrets") } == 2)
  }

  @Test func aSecretIsOneRoundTripAndTheRestNone() throws {
    let bus = try PrivateBus()
    try bus.addKeyring(named: "many", items: 100)
    try bus.startKeyring()
    try bus.run("secret-tool lookup service many account 7")
    let store = KeychainStore(engine: try SecretServiceEngine(address: bus.address))
    try store.load()
    let first = try store.read { $0.all.first }
    let item = try #require(first)
    let calls = try bus.traffic {
      try store.refresh()
      let size = try store.read { $0[item.id]?.size }
      let count = try store.secret(of: item.id).count
      #expect(size == item.size && count == item.size)
    }
    #expect(
      calls.filter { $0.destination == "org.freedesktop.secrets" }.map(\.method) == [
        "org.freedesktop.Secret.Item.GetSecret"
      ])
  }
}

extension Item {
  fileprivate var accountLength: Int {
    guard case .generic(_, let account) = identity else { return 0 }
    return account.utf8.count
  }
}
