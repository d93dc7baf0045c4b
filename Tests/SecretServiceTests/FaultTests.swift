import Glibc
import KeyringHarness
import Model
import Store
import StoreConformance
import Testing

@testable import SecretService

/// A service that is locked, hangs, dies, comes back or is another one.
@Suite(.serialized, .timeLimit(.minutes(3))) struct FaultTests {
  let keyring: TestKeyring
  let item: Item

  init() throws {
    keyring = try TestKeyring()
    item = try keyring.engine.add(KeychainSamples.generic("S"), "secret")
  }

  private var engine: SecretServiceEngine { keyring.engine }

  @Test func lockedItemShowsAndGivesNothing() async throws {
    _ = try engine.items()
    try keyring.bus.lock()
    try engine.catchUp()
    #expect(!engine.isAccessible(item) && engine.lockState == .locked)
    #expect(throws: StoreError.locked) { try engine.bytes(of: item.id) }
    #expect(throws: StoreError.locked) { try engine.set(item.id, [1]) }
    #expect(throws: StoreError.locked) { _ = try engine.update([item.id]) { $0.label = "new" } }
    #expect(try engine.items().map(\.id) == [item.id])
    // No user answers the service's window.
    let nothing = try KeychainSamples.secret("")
    #expect(
      throws: StoreError.accessDenied(
        reason:
          "the keyring stayed locked: its prompt was closed, or had no display; `keyhole mount --keep -o keychain=vault` uses Keyhole's own vault"
      )
    ) {
      try engine.unlock(nothing)
    }
    try await unlockLogin(on: keyring.bus)
    try engine.catchUp()
    #expect(engine.isAccessible(item) && engine.lockState == .open)
    #expect(try engine.bytes(of: item.id) == Array("secret".utf8))
  }

  @Test func lockedItemStaysWhereTheServiceRefuses() throws {
    let second = try engine.add(KeychainSamples.generic("S", "second"), "secret")
    try keyring.bus.lock()
    try engine.catchUp()
    #expect(throws: StoreError.locked) { try engine.remove([item.id, second.id]) }
    #expect(Set(try engine.items().map(\.id)) == [item.id, second.id])
  }

  /// A call that waits for it holds up a whole mount.
  @Test(.timeLimit(.minutes(1))) func lockIsKnownWithoutAsking() throws {
    try keyring.bus.lock()
    try engine.catchUp()
    keyring.bus.signalKeyring(SIGSTOP)
    defer { keyring.bus.signalKeyring(SIGCONT) }
    // Each question would take seconds, and fail.
    for _ in 0..<1_000 { #expect(!engine.isAccessible(item)) }
  }

  @Test func neverUnlockedShowsNothing() async throws {
    try keyring.bus.lock()
    let other = try SecretServiceEngine(address: keyring.bus.address)
    try other.connect(within: 5_000)
    // Before its items are read.
    #expect(other.lockState == .sealed)
    #expect(throws: StoreError.locked) { try other.items() }
    #expect(other.lockState == .sealed)
    try await unlockLogin(on: keyring.bus)
    #expect(try other.items().count == 1)
  }

  /// Before any item is read, each service tells for itself whether it is locked.
  @Test func serviceThatTakesThePlaceOfALockedOneIsAskedAgain() async throws {
    try keyring.bus.lock()
    let other = try SecretServiceEngine(address: keyring.bus.address)
    try other.connect(within: 5_000)
    var news = other.news.makeAsyncIterator()
    for isUnlocked in [true, false] {
      try keyring.bus.stopKeyring()
      try keyring.bus.startKeyring(unlocked: isUnlocked)
      while other.lockState != (isUnlocked ? .open : .sealed) { await news.next() }
    }
  }

  @Test(.timeLimit(.minutes(1))) func hangingServiceIsUnreachableAndWorksAgain() throws {
    keyring.bus.signalKeyring(SIGSTOP)
    defer { keyring.bus.signalKeyring(SIGCONT) }
    #expect(throws: StoreError.unreachable(reason: "the Secret Service does not answer")) {
      try engine.bytes(of: item.id)
    }
    #expect(engine.isAccessible(item))
    keyring.bus.signalKeyring(SIGCONT)
    #expect(try engine.bytes(of: item.id) == Array("secret".utf8))
  }

  @Test func deadServiceIsUnreachableAndComesBack() throws {
    try keyring.bus.stopKeyring()
    #expect(throws: StoreError.unreachable(reason: "no Secret Service is running")) {
      try engine.bytes(of: item.id)
    }
    try keyring.bus.startKeyring()
    #expect(try engine.bytes(of: item.id) == Array("secret".utf8))
    try engine.set(item.id, [1, 2])
    #expect(try engine.bytes(of: item.id) == [1, 2])
  }

  @Test func serviceThatComesBackLockedKeepsItsNames() throws {
    try keyring.bus.stopKeyring()
    try keyring.bus.startKeyring(unlocked: false)
    #expect(throws: StoreError.locked) { try engine.bytes(of: item.id) }
    #expect(try engine.items().map(\.id) == [item.id])
  }

  @Test func otherServiceBringsItsOwnItems() async throws {
    try keyring.bus.stopKeyring()
    try keyring.bus.run("rm -r \"$0/data/keyrings\"")
    try keyring.bus.startKeyring()
    #expect(await keyring.nextNews { $0.id == item.id && $0.item == nil } != nil)
    #expect(try engine.items().isEmpty)
  }

  @Test func lostBusIsUnreachableAndComesBack() throws {
    keyring.bus.stop()
    #expect(throws: StoreError.self) { try engine.bytes(of: item.id) }
    try keyring.bus.startBus()
    try keyring.bus.startKeyring()
    #expect(try engine.bytes(of: item.id) == Array("secret".utf8))
  }

  @Test func noBusIsUnreachableAtOnce() throws {
    let nowhere = try SecretServiceEngine(address: "unix:path=/nowhere/bus")
    #expect(throws: StoreError.self) { try nowhere.connect(within: 50) }
  }
}
