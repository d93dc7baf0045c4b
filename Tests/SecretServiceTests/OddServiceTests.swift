import KeyringHarness
import Model
import SecretService
import Store
import StoreConformance
import Testing

/// Services that do what gnome-keyring without a user at the machine never does.
@Suite(.serialized, .timeLimit(.minutes(1))) struct OddServiceTests {
  let bus: PrivateBus

  init() throws {
    bus = try PrivateBus()
  }

  @Test func plainSessionIsRefusedUnlessAllowed() throws {
    try bus.startStandIn(.plain)
    let strict = try SecretServiceEngine(address: bus.address)
    let calls = try bus.traffic {
      #expect(throws: Self.noEncryption) { try strict.items() }
    }
    // Not a word of any item has crossed the bus.
    #expect(calls.contains { $0.method.hasSuffix("OpenSession") })
    #expect(!calls.contains { $0.path.contains("collection") || $0.method.contains("GetSecret") })
    let lenient = try SecretServiceEngine(address: bus.address, allowsPlain: { true })
    let item = try #require(try lenient.items().first)
    #expect(try lenient.bytes(of: item.id) == Array("s3cret".utf8))
  }

  @Test func otherProgramUnderTheNameOfAServiceIsNamed() throws {
    try bus.startStandIn(.foreign)
    let engine = try SecretServiceEngine(address: bus.address)
    #expect {
      try engine.connect(within: 5_000)
    } throws: { error in
      guard case .unreachable(let reason)? = error as? StoreError else { return false }
      return reason.contains("is no Secret Service")
    }
  }

  private static let noEncryption = StoreError.notPermitted(
    reason:
      "the Secret Service offers no encrypted session; `keyhole mount -o plain-session` takes it for one mount, "
      + "and `keyhole config plain-session true` from now on")

  @Test func unlockingIsWhatAPersonSaysInTheWindow() throws {
    try bus.startStandIn(.plain, .prompt)
    let engine = try SecretServiceEngine(address: bus.address, allowsPlain: { true })
    #expect(throws: StoreError.locked) { try engine.items() }
    try engine.unlock(KeychainSamples.secret(""))
    let item = try #require(try engine.items().first)
    #expect(engine.lockState == .open)
    #expect(try engine.bytes(of: item.id) == Array("s3cret".utf8))
  }

  @Test func firstItemOfAFreshKeyringMakesItsCollection() throws {
    try bus.startStandIn(.plain, .fresh)
    let engine = try SecretServiceEngine(address: bus.address, allowsPlain: { true })
    #expect(try !engine.hasCollection())
    let item = Item(
      id: ItemID(rawValue: ""), identity: .generic(service: "S", account: "A"), created: .init(seconds: 0),
      modified: .init(seconds: 0))
    let added = try engine.add(item, secret: KeychainSamples.secret("first"))
    #expect(try engine.bytes(of: added.id) == Array("first".utf8))
    #expect(try engine.hasCollection())
  }

  @Test func aServiceThatMakesNoCollectionSaysSo() throws {
    try bus.startStandIn(.plain, .fresh, .barren)
    let engine = try SecretServiceEngine(address: bus.address, allowsPlain: { true })
    let item = Item(
      id: ItemID(rawValue: ""), identity: .generic(service: "S", account: "A"), created: .init(seconds: 0),
      modified: .init(seconds: 0))
    let secret = try KeychainSamples.secret("first")
    #expect(throws: StoreError.noCollection) { try engine.add(item, secret: secret) }
  }

  @Test func closedWindowIsARefusal() throws {
    try bus.startStandIn(.plain, .dismiss)
    let engine = try SecretServiceEngine(address: bus.address, allowsPlain: { true })
    #expect(throws: StoreError.locked) { try engine.items() }
    #expect(
      throws: StoreError.accessDenied(
        reason:
          "the keyring stayed locked: its prompt was closed, or had no display; `keyhole mount --keep -o keychain=vault` uses Keyhole's own vault"
      )
    ) {
      try engine.unlock(KeychainSamples.secret(""))
    }
    #expect(engine.lockState == .sealed)
  }

  @Test(arguments: [PrivateBus.Oddity.prompt, .dismiss])
  func lockedItemIsRemovedWhereAPersonAgrees(_ person: PrivateBus.Oddity) throws {
    try bus.startStandIn(.plain, .open, person)
    let engine = try SecretServiceEngine(address: bus.address, allowsPlain: { true })
    let item = try #require(try engine.items().first)
    try engine.lock()
    #expect(engine.lockState == .locked && !engine.isAccessible(item))
    if person == .prompt {
      try engine.remove([item.id])
      #expect(try engine.items().isEmpty)
    } else {
      #expect(
        throws: StoreError.accessDenied(
          reason:
            "the keyring stayed locked: its prompt was closed, or had no display; `keyhole mount --keep -o keychain=vault` uses Keyhole's own vault"
        )
      ) {
        try engine.remove([item.id])
      }
      #expect(try engine.items() == [item])
    }
  }

  /// It is unlocked by another program, and no signal says so.
  @Test func silentUnlockingIsFoundByWhoAsks() throws {
    try bus.startStandIn(.plain, .open, .prompt)
    let engine = try SecretServiceEngine(address: bus.address, allowsPlain: { true })
    let item = try #require(try engine.items().first)
    try engine.lock()
    #expect(!engine.isAccessible(item))
    let other = try SecretServiceEngine(address: bus.address, allowsPlain: { true })
    try other.unlock(KeychainSamples.secret(""))
    // Each question from memory makes the engine look again.
    let deadline = ContinuousClock.now + .seconds(10)
    while engine.lockState != .open, ContinuousClock.now < deadline { _ = engine.isAccessible(item) }
    #expect(engine.isAccessible(item) && engine.lockState == .open)
  }

  @Test(.enabled(if: PrivateBus.hasKeePassXC, "needs keepassxc"))
  func secretToolAndTheEngineAgreeOnKeePassXC() async throws {
    try bus.startKeePassXC()
    let engine = try SecretServiceEngine(address: bus.address)
    #expect(try engine.items().isEmpty)
    try bus.run("printf s3cret | secret-tool store --label=label service S account A color blue")
    var item = try #require(try await waitForItem(engine))
    #expect(item.identity == .generic(service: "S", account: "A") && item.label == "label")
    let attributes = ["color", "Title", Item.omittedAttribute].map { item.attributes[$0] ?? [] }
    #expect(attributes == ["blue", "label", "username"].map { Array($0.utf8) } && item.attributes.count == 3)
    #expect(try engine.bytes(of: item.id) == Array("s3cret".utf8))
    try engine.set(item.id, Array("two\nlines".utf8))
    #expect(try bus.run("secret-tool lookup service S") == "two\nlines")
    // As text it would lose some of that, and so secret-tool does not print it.
    try engine.set(item.id, [1, 0, 255])
    #expect(try SecretServiceEngine(address: bus.address).bytes(of: item.id) == [1, 0, 255])
    item = try engine.update([item.id]) { item in
      (item.attributes["color"], item.attributes["size"]) = (nil, Array("big".utf8))
      item.identity = .generic(service: "S", account: "B")
    }[0]
    #expect(Set(item.attributes.keys) == ["size", "Title", Item.omittedAttribute])
    #expect(try bus.run("secret-tool search service S size big 2>&1").contains("attribute.account = B"))
    try bus.run("secret-tool clear service S")
    try engine.catchUp()
    #expect(try engine.items().isEmpty)
  }

  private func waitForItem(_ engine: SecretServiceEngine) async throws -> Item? {
    var rest = engine.news.makeAsyncIterator()
    repeat {
      if let item = try engine.items().first { return item }
    } while await rest.next() != nil
    return nil
  }
}
