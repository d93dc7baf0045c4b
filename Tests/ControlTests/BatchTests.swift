import Control
import Glibc
import Model
import SecretMemory
import Store
import StoreConformance
import Synchronization
import Testing
import Vault
import VaultRecords

/// A mount's vault, and another process that stores many items in it at once.
@Suite(.serialized, .timeLimit(.minutes(1))) struct BatchTests {
  /// A vault behind the control socket.
  private final class VaultMount: Sendable {
    let engine: VaultEngine
    let store: KeychainStore
    let person = Person()
    let folder: String
    private let server: ControlServer

    init(isReadOnly: Bool = false) throws {
      folder = try Mount.makeFolder()
      engine = try VaultEngine(
        directory: folder + "/vault", stateDirectory: folder + "/state", passwordCost: .least)
      var options = AccessController.Options()
      options.reuse = 0
      store = KeychainStore(engine: engine, controller: AccessController(person, options))
      server = try ControlServer(folder: folder, TestService(store, isReadOnly))
    }

    /// The keychain as another process has it.
    func open() -> MountedKeychain {
      MountedKeychain(name: "vault", runtimeFolder: folder) { getpid() }
    }

    func connect() throws -> MessageChannel {
      try ControlClient.connect(to: getpid(), in: folder, identified: true)
    }

    /// Begins a batch that the caller goes on with, and has its answer.
    func begin(rewriting ids: [ItemID] = []) throws -> MessageChannel {
      let channel = try connect()
      #expect(channel.send(.beginBatch(rewriting: ids)))
      guard case .stored = try channel.reply().content else { throw StoreError.notFound }
      return channel
    }

    /// Returns when no batch is under way.
    func finishBatches() throws {
      let channel = try connect()
      #expect(channel.send(.finishBatches))
      _ = try channel.reply()
    }

    var count: Int {
      get throws { try engine.items().count }
    }

    deinit {
      server.end()
      let process = Process()
      process.remove(folder)
    }
  }

  private struct Process {
    func remove(_ path: String) {
      for name in Self.names(in: path) { remove(path + "/" + name) }
      unsafe unlink(path)
      unsafe rmdir(path)
    }

    static func names(in path: String) -> [String] {
      guard let folder = unsafe opendir(path) else { return [] }
      defer { unsafe closedir(folder) }
      var names: [String] = []
      while let entry = unsafe readdir(folder) {
        let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
          unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != ".", name != ".." { names.append(name) }
      }
      return names
    }
  }

  private static func item(_ number: Int) -> Item {
    var item = KeychainSamples.generic(ExactString("s\(number)"))
    item.id = ItemID(rawValue: "")
    return item
  }

  private static func secret(_ text: String) throws(StoreError) -> SecretBytes {
    do { return try KeychainSamples.secret(text) } catch { throw .outOfMemory }
  }

  @Test func manyItemsAreNewOrReplacedTogether() throws {
    let mount = try VaultMount()
    var old = Self.item(0)
    old.attributes = ["kept": [1]]
    let present = try mount.store.add(old, secret: KeychainSamples.secret("old"))
    let store = KeychainStore(engine: mount.open())
    #expect(store.isTransactional)
    var changes = (1..<300).map { ItemChange.add(Self.item($0)) }
    changes.append(.rewrite(present.id) { $0.label = "new" })
    try store.apply(changes) { (index) throws(StoreError) in try Self.secret("secret \(index)") }
    #expect(try mount.count == 300)
    #expect(try store.read { $0.count } == 300)
    let replaced = try #require(try mount.store.read { $0[present.id] })
    #expect(replaced.label == "new" && replaced.attributes == old.attributes)
    #expect(try mount.engine.bytes(of: present.id) == Array("secret 299".utf8))
    let added = try #require(try store.read { $0[Self.item(7).identity].first })
    #expect(try mount.engine.bytes(of: added.id) == Array("secret 6".utf8))
  }

  /// A process that fails, that is killed before the commit, or that sends what belongs to no batch.
  @Test func whatEndsBeforeTheCommitStoresNothing() throws {
    let mount = try VaultMount()
    let store = KeychainStore(engine: mount.open())
    #expect(throws: StoreError.interrupted) {
      try store.apply((0..<9).map { .add(Self.item($0)) }) { (index) throws(StoreError) in
        guard index < 5 else { throw .interrupted }
        return try Self.secret("x")
      }
    }
    let killed = try mount.begin()
    for number in 0..<3 { killed.send(.batchItem(Self.item(number)), secret: try Self.secret("x")) }
    killed.shut()
    try mount.finishBatches()
    let wrong = try mount.begin()
    wrong.send(.batchItem(Self.item(1)), secret: try Self.secret("x"))
    wrong.send(.fetchRoom)
    #expect(throws: (any Error).self) { _ = try wrong.reply() }
    let withoutSecret = try mount.begin()
    withoutSecret.send(.batchItem(Self.item(1)))
    #expect(throws: (any Error).self) { _ = try withoutSecret.reply() }
    try mount.finishBatches()
    #expect(try mount.count == 0)
    #expect(Process.names(in: mount.folder + "/vault").allSatisfy { $0.hasPrefix("vault.") })
    try store.apply([.add(Self.item(1))]) { (_) throws(StoreError) in try Self.secret("x") }
    #expect(try mount.count == 1)
  }

  @Test func guardedItemsAreAskedAboutInOneQuestionAndFirst() throws {
    let mount = try VaultMount()
    var ids: [ItemID] = []
    for number in 0..<3 {
      var item = Self.item(number)
      item.access = [.userPresence]
      ids.append(try mount.store.add(item, secret: KeychainSamples.secret("old")).id)
    }
    let store = KeychainStore(engine: mount.open())
    let changes = [ItemChange.add(Self.item(9))] + ids.map { .rewrite($0) { _ in } }
    mount.person.say(.refused)
    #expect(throws: StoreError.accessDenied(reason: "a person refused")) {
      try store.apply(changes) { (_) throws(StoreError) in try Self.secret("new") }
    }
    #expect(mount.person.questions.count == 1 && mount.person.questions.first?.items.count == 3)
    #expect(mount.person.questions.first?.operation == .write)
    #expect(try mount.count == 3)
  }

  @Test func anAnswerLetsAllOfThemIn() throws {
    let mount = try VaultMount()
    var item = Self.item(0)
    item.access = [.userPresence]
    let id = try mount.store.add(item, secret: KeychainSamples.secret("old")).id
    let store = KeychainStore(engine: mount.open())
    try store.apply([.rewrite(id) { _ in }, .add(Self.item(1))]) { (_) throws(StoreError) in
      try Self.secret("new")
    }
    #expect(mount.person.questions.count == 1)
    #expect(try mount.engine.bytes(of: id) == Array("new".utf8))
    // Taking the flag off is a question of its own, which a yes to writing does not answer.
    mount.person.say(.refused)
    #expect(throws: StoreError.accessDenied(reason: "a person refused")) {
      try store.apply([.rewrite(id) { $0.access = [] }]) { (_) throws(StoreError) in try Self.secret("x") }
    }
    #expect(mount.person.questions.last?.operation == .change)
    #expect(mount.person.questions.last?.change?.removesProtection == true)
    #expect(try mount.engine.bytes(of: id) == Array("new".utf8))
  }

  /// While a process stalls in the middle of a batch.
  @Test func nobodyWaitsForAStalledBatch() throws {
    let mount = try VaultMount()
    let id = try mount.store.add(Self.item(0), secret: KeychainSamples.secret("one")).id
    let stalled = try mount.begin(rewriting: [id])
    stalled.send(.batchItem(Self.item(1)), secret: try Self.secret("x"))
    #expect(KeychainSamples.bytes(try mount.store.secret(of: id)) == Array("one".utf8))
    try mount.store.add(Self.item(2), secret: KeychainSamples.secret("two"))
    let engine = mount.open()
    #expect(try engine.bytes(of: id) == Array("one".utf8))
    #expect(throws: StoreError.unreachable(reason: "the mount takes another import at this moment")) {
      _ = try engine.apply([.add(Self.item(3))]) { (_) throws(StoreError) in try Self.secret("x") }
    }
    try mount.store.lock()
    stalled.send(.commitBatch)
    #expect(throws: StoreError.locked) { _ = try stalled.reply() }
    try mount.store.unlock(KeychainSamples.secret(""))
    #expect(try mount.count == 2)
  }

  @Test func anItemThatChangedMeanwhileRefusesAll() throws {
    let mount = try VaultMount()
    let present = try mount.store.add(Self.item(0), secret: KeychainSamples.secret("one"))
    let batch = try mount.begin(rewriting: [present.id])
    batch.send(.batchItem(Self.item(1)), secret: try Self.secret("x"))
    batch.send(.batchItem(present), secret: try Self.secret("two"))
    try mount.store.update([present.id]) { $0.label = "another" }
    batch.send(.commitBatch)
    #expect(throws: (any Error).self) { _ = try batch.reply() }
    #expect(try mount.count == 1)
    #expect(try mount.engine.bytes(of: present.id) == Array("one".utf8))
  }

  @Test func whatMayNotBeStoredIsRefused() throws {
    let readOnly = try VaultMount(isReadOnly: true)
    #expect(throws: StoreError.readOnly(reason: "the mount is read-only")) {
      _ = try readOnly.open().apply([.add(Self.item(0))]) { (_) throws(StoreError) in try Self.secret("x") }
    }
    let mount = try VaultMount()
    var password = Self.item(0)
    password.access = [.applicationPassword]
    try mount.store.setRules("ask *", of: .folder(.generic, "elsewhere"), nil)
    var rules = try #require(try mount.store.read { $0.rulesItem() })
    rules.id = ItemID(rawValue: "")
    for item in [password, rules] {
      #expect(throws: (any Error).self) {
        _ = try mount.open().apply([.add(Self.item(1)), .add(item)]) { (_) throws(StoreError) in
          try Self.secret("x")
        }
      }
    }
    #expect(throws: StoreError.notFound) { _ = try mount.begin(rewriting: [ItemID(rawValue: "none")]) }
    #expect(throws: StoreError.exists) {
      _ = try mount.open().apply([.add(Self.item(1)), .add(Self.item(1))]) { (_) throws(StoreError) in
        try Self.secret("x")
      }
    }
    #expect(try mount.store.read { $0.count } == 0)
  }

  @Test func secondSecretsComeInTheSameTransaction() throws {
    let mount = try VaultMount()
    var guarded = Self.item(0)
    guarded.access = [.userPresence]
    let id = try mount.store.add(guarded, secret: KeychainSamples.secret("old")).id
    let store = KeychainStore(engine: mount.open())
    let now = Timestamp(seconds: 5)
    let uri = "otpauth://totp/me?secret=JBSWY3DPEHPK3PXP"
    let changes: [ItemChange] = [
      .add(Self.item(1)), .setOtpauth(Self.item(1).identity, modified: now), .rewrite(id) { _ in },
      .setOtpauth(guarded.identity, modified: now),
    ]
    try store.apply(changes) { (index) throws(StoreError) in
      try Self.secret(index == 1 || index == 3 ? uri : "new")
    }
    // Both secrets of the guarded item are named, and those of the new one are not.
    #expect(mount.person.questions.count == 1 && mount.person.questions.first?.items.count == 2)
    #expect(try KeychainSamples.bytes(mount.engine.otpauth(of: id)) == Array(uri.utf8))
    let added = try #require(try store.read { $0[Self.item(1).identity].first })
    #expect(try KeychainSamples.bytes(mount.engine.otpauth(of: added.id)) == Array(uri.utf8))
    #expect(throws: (any Error).self) {
      try store.apply([.add(Self.item(2)), .setOtpauth(Self.item(2).identity, modified: now)]) {
        (_) throws(StoreError) in try Self.secret("no URI")
      }
    }
    mount.person.say(.refused)
    #expect(throws: StoreError.accessDenied(reason: "a person refused")) {
      try store.apply([.setOtpauth(guarded.identity, modified: now)]) { (_) throws(StoreError) in
        try Self.secret(uri)
      }
    }
    #expect(try mount.count == 2)
  }

  /// A keychain without transactions, as a Secret Service behind a mount, says so.
  @Test func anotherKeychainTakesOneItemAtATime() throws {
    let mount = try Mount()
    defer { mount.stop() }
    #expect(!KeychainStore(engine: mount.open()).isTransactional)
  }
}
