import KeyringHarness
import Model
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import SecretService

/// A keyring of a test's own, with an engine on it.
struct TestKeyring {
  let bus: PrivateBus
  let engine: SecretServiceEngine

  init(unlocked: Bool = true) throws {
    bus = try PrivateBus()
    try bus.startKeyring(unlocked: unlocked)
    engine = try SecretServiceEngine(address: bus.address)
  }

  /// The one item of a service.
  func item(_ service: ExactString) throws -> Item? {
    try engine.items().first { $0.identity == .generic(service: service, account: "me") }
  }

  /// Stores an item as a program of the desktop would.
  func store(_ secret: String, _ attributes: String, label: String = "label") throws {
    try bus.run("secret-tool store --label='\(label)' \(attributes)", input: Array(secret.utf8))
  }

  /// The engine's next report.
  func nextNews(where isWanted: (ItemNews) -> Bool) async -> ItemNews? {
    var rest = engine.news.makeAsyncIterator()
    repeat {
      if let wanted = engine.takeNews().first(where: isWanted) { return wanted }
    } while await rest.next() != nil
    return nil
  }
}

/// Unlocks a collection without a prompt, by gnome-keyring's interface for its own programs.
func unlockLogin(on bus: PrivateBus) async throws {
  let loop = try MainLoop()
  #expect(loop.start())
  let address = bus.address
  let unlocking = Task(executorPreference: loop) { () async throws -> Void in
    let keyring = SecretServiceClient(
      address: address, startsService: true, allowsPlain: { false }, loop: loop
    ) {}
    try await keyring.unlockLogin()
  }
  try await unlocking.value
  loop.stop()
}

extension SecretServiceClient {
  fileprivate func unlockLogin() async throws {
    let deadline = Deadline(milliseconds: 5_000)
    let (bus, session) = try await ready(before: deadline)
    let password = try KeychainSamples.secret(PrivateBus.password)
    guard let secret = session.encode(password, contentType: "text/plain") else {
      throw StoreError.outOfMemory
    }
    _ = try await bus.call(
      ServiceName.bus, ServiceName.path, "org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface",
      "UnlockWithMasterPassword",
      [Variant(path: ServiceName.path + "/collection/login"), secret], before: deadline)
  }
}
