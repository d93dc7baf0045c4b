import Crypto
import FoundationEssentials
import GRDB
import Glibc
import Model
import SecretMemory
import Store
import StoreConformance
import Synchronization
import Testing

@testable import Vault
@testable import VaultDatabase
@testable import VaultRecords

/// A new passphrase makes new keys: an earlier copy and its key open nothing of the vault any more.
@Suite(.timeLimit(.minutes(2))) struct VaultRekeyTests {
  private let fixture: VaultFixture

  init() throws {
    fixture = try VaultFixture()
  }

  @discardableResult private func change(
    _ engine: VaultEngine, to key: VaultKey = .passphraseAndKeyFile, _ new: String, present: String = ""
  ) throws -> RekeyingReport {
    try engine.change(
      to: key, KeychainSamples.secret(new), present: KeychainSamples.secret(present), cost: .least)
  }

  private func open(_ passphrase: String) throws -> VaultEngine {
    let engine = try fixture.open()
    try engine.unlock(KeychainSamples.secret(passphrase))
    return engine
  }

  /// Between two transactions of a process, another one makes new keys: every call goes on with these.
  @Test(arguments: ["refresh", "items", "secret", "update", "add", "remove"])
  func newKeysBetweenTwoTransactionsHideNothing(call: String) throws {
    let ids = try fixture.makeVault()
    let engine = try fixture.open()
    let count = try engine.items().count
    var calls = 0
    try engine.withSession { session throws(StoreError) in
      calls += 1
      if calls == 1 {
        do { try change(fixture.open(), to: .keyFile, "") } catch {
          throw .damaged(what: "the test: \(error)")
        }
      }
      switch call {
      case "refresh": #expect(try session.changes().items()?.count == count)
      case "items": #expect(try session.items().count == count)
      case "secret": _ = try session.secret(of: ids[0])
      case "update": _ = try session.update([ids[0]], nil) { $0.attributes["label"] = Array("new".utf8) }
      case "remove": try session.remove([ids[0]])
      default:
        var item = KeychainSamples.generic("service", "another")
        item.accessibility = .whenUnlocked
        guard let secret = try? KeychainSamples.secret("secret"), let none = try? KeychainSamples.secret("")
        else { throw .outOfMemory }
        _ = try session.add(item, secret: secret, otpauth: none)
      }
    }
    #expect(calls == 2 && engine.trust == .trusted)
    #expect(try engine.items().count == count + (call == "add" ? 1 : call == "remove" ? -1 : 0))
    #expect(engine.problems().isEmpty)
  }

  /// The same at any moment: no list lacks an item while another process makes new keys again and again.
  @Test func noListLacksAnItemWhileKeysAreMade() async throws {
    try fixture.makeVault()
    let (engine, other) = (try fixture.open(), try fixture.open())
    let count = try engine.items().count
    let keysAreMade = Made()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try keysAreMade.run(60, by: other) }
      group.addTask {
        while !keysAreMade.isOver {
          if let items = try engine.changes().items() { #expect(items.count == count) }
          #expect(try engine.items().count == count)
        }
      }
      try await group.waitForAll()
    }
  }

  /// Whether a process has made its keys.
  private final class Made: Sendable {
    private let flag = Atomic(false)

    var isOver: Bool { flag.load(ordering: .acquiring) }

    func run(_ times: Int, by engine: VaultEngine) throws {
      defer { flag.store(true, ordering: .releasing) }
      let none = try KeychainSamples.secret("")
      for _ in 0..<times { try engine.change(to: .keyFile, none, present: none, cost: .least) }
    }
  }

  /// audit.md, H1.
  @Test func oldSlotPutBackOpensNothing() throws {
    let ids = try fixture.makeVault()
    try keepOld("slot", "class_key")
    try change(fixture.open(), "correct horse")
    try open("correct horse").set(ids[0], Array("new".utf8))
    let whole = fixture.snapshot()

    try fixture.edit(attach, "DELETE FROM main.slot", "INSERT INTO main.slot SELECT * FROM o.slot")
    let error = failure { _ = try fixture.open() }
    #expect(error?.kind == "damaged" && "\(error as Any)".contains("older slot was put back"))

    // Beside the present one it opens nothing either, and is found.
    try fixture.restore(whole)
    try fixture.edit(attach, "INSERT INTO main.slot SELECT * FROM o.slot")
    let beside = try fixture.open()
    #expect(beside.needsPassphrase && beside.lockState == .sealed)
    #expect(throws: StoreError.locked) { _ = try beside.secret(of: ids[0]) }
    let engine = try open("correct horse")
    try expectDistrust(engine, "key slots")
    #expect(try engine.bytes(of: ids[0]) == Array("new".utf8))
    try engine.acceptRollback()
    #expect(try fixture.number("SELECT count(*) FROM slot") == 1)
    #expect(try open("correct horse").problems().isEmpty)

    // So with the class key: with what it opens, nothing is given.
    try fixture.restore(whole)
    try fixture.edit(
      attach, "DELETE FROM main.class_key", "INSERT INTO main.class_key SELECT * FROM o.class_key")
    let other = try open("correct horse")
    try expectDistrust(other, "class keys")
    #expect(failure { _ = try other.secret(of: ids[0]) }?.kind == "damaged")
  }

  @Test(arguments: ["DELETE FROM class_key", "DELETE FROM slot WHERE id = 9"])
  func deletedClassKeyOrSlotIsFound(edit: String) throws {
    try fixture.makeVault()
    let file = try VaultFile(opening: VaultDirectory(fixture.directory, state: fixture.state))
    try addSlot(file, 9)
    #expect(try fixture.open().problems().isEmpty)
    try fixture.edit(edit)
    try expectDistrust(fixture.open(), edit.contains("slot") ? "key slots" : "class keys")
  }

  /// Its number is what another program wrote: the next one is beyond 64 bits.
  @Test func slotWithTheLargestNumberEndsNoProcess() throws {
    try fixture.makeVault()
    let engine = try fixture.open()
    try fixture.edit(
      "INSERT INTO slot SELECT -1, kind, parameters, public, commitment, sealed, checksum FROM slot")
    #expect(failure { _ = try change(engine, "p") }?.kind == "readOnly")
    try expectDistrust(fixture.open(), "key slots")
  }

  @Test func slotOfAnotherIsFoundAndGetsNoNewKey() throws {
    try fixture.makeVault()
    let file = try VaultFile(opening: VaultDirectory(fixture.directory, state: fixture.state))
    let slot = try Self.deviceSlot(8, Curve25519.KeyAgreement.PrivateKey(), file)
    try file.connection.write { try slot.insert($0, .two) }
    let engine = try fixture.open()
    try expectDistrust(engine, "key slots")
    #expect(failure { try change(engine, "p") }?.kind == "readOnly")
    try engine.acceptRollback()
    #expect(try fixture.number("SELECT count(*) FROM slot") == 1)
  }

  @Test func oldKeysOpenNothingOfTheNewVault() throws {
    let ids = try fixture.makeVault()
    let file = try VaultFile(opening: VaultDirectory(fixture.directory, state: fixture.state))
    let old = try SlotOpener(file, KeychainSamples.secret("")).open(file.slots())[0]
    let seals = try self.seals()
    #expect(seals.count == 12)
    let report = try change(fixture.open(), "p")
    #expect(report.items == 3 && report.damaged == 0)
    let keys = try VaultKeys(old.keys, file.header)
    try file.connection.read { database in
      #expect(try Manifest.fetchIfWhole(database, keys) == nil)
      #expect(try !ItemTable(database: database, keys: keys).opensAny())
      for row in try ClassKeyRow.fetchAll(database, keys.statements) {
        #expect(throws: (any Error).self) {
          try row.open(old.keys, file.header, device: file.directory.fetchDeviceKey)
        }
      }
    }
    // Nothing that the old keys open is left, in free pages or the log.
    let files = names(in: fixture.directory).map { contents(of: fixture.directory + "/" + $0) }
    for seal in seals { #expect(!files.contains { $0.contains(seal) }) }
    #expect(try open("p").bytes(of: ids[1]) == Array("secret of b".utf8))
  }

  @Test func earlierCopyIsFoundAndOpensWithItsEarlierKey() throws {
    let ids = try fixture.makeVault()
    let copy = fixture.snapshot()
    try change(fixture.open(), "p")
    try fixture.restore(copy)
    let engine = try fixture.open()
    try expectDistrust(engine, "put back")
    #expect(try engine.bytes(of: ids[0]) == Array("secret of a".utf8))
    let states = try engine.comparison()
    #expect(states.present.items == 3 && states.lastSeen?.items == 3)
    #expect(states.present.generation < (states.lastSeen?.generation ?? 0))
    #expect(states.present.changed < (states.lastSeen?.changed ?? Timestamp(seconds: 0)))
  }

  @Test func everyChangeOfSlotsAdvancesTheGeneration() throws {
    try fixture.makeVault(["a"])
    let engine = try fixture.open()
    let first = try engine.comparison().present.generation
    try change(engine, "p")
    let second = try engine.comparison().present.generation
    try change(engine, "p", present: "p")
    #expect(try first < second && second < engine.comparison().present.generation)
  }

  @Test func slotWithAPublicKeyGetsTheNewMasterKey() throws {
    let ids = try fixture.makeVault()
    let file = try VaultFile(opening: VaultDirectory(fixture.directory, state: fixture.state))
    let key = try addSlot(file, 9)
    try change(fixture.open(), "p")
    let slot = try #require(try file.slots().first { $0.id == 9 })
    #expect(try slot.open(Curve25519.KeyAgreement.PrivateKey(), file.header) == nil)
    let keys = try #require(try slot.open(key, file.header))
    let session = try Session(file, OpenedSlot(slot: 9, keys: keys))
    #expect(session.distrust == nil)
    #expect(try session.secret(of: ids[0]).count == "secret of a".utf8.count)
    #expect(try fixture.number("SELECT count(*) FROM slot") == 2)
  }

  @Test func itemWithAPasswordKeepsIt() throws {
    var item = KeychainSamples.generic("a")
    item.access = [.applicationPassword]
    let id = try fixture.open().using(password("staple")).add(item, "secret of a").id
    try change(fixture.open(), "p")
    let engine = try open("p")
    #expect(try engine.using(password("staple")).bytes(of: id) == Array("secret of a".utf8))
    #expect(throws: StoreError.rejected) { _ = try engine.using(password("horse")).bytes(of: id) }
    let reader = try IndependentReader(
      database: fixture.database, key: contents(of: fixture.key), deviceKey: [], passphrase: "p",
      password: "staple")
    #expect(try reader.entries().map(\.secret) == [Array("secret of a".utf8)])
  }

  @Test func secretOfAnotherDeviceStaysThatDevices() throws {
    var item = KeychainSamples.generic("there")
    item.accessibility = .whenUnlockedThisDeviceOnly
    let id = try fixture.openElsewhere().add(item, "secret").id
    let here = try fixture.open()
    #expect(try change(here, "p").ofOtherDevices == 1)
    #expect(failure { _ = try open("p").bytes(of: id) }?.kind == "accessDenied")
    // Twice: what is carried is carried again.
    #expect(try change(here, "q", present: "p").ofOtherDevices == 1)
    let there = try fixture.openElsewhere()
    try there.unlock(KeychainSamples.secret("q"))
    #expect(try there.bytes(of: id) == Array("secret".utf8))
    item.identity = .generic(service: "also there", account: "me")
    try there.add(item, "x")
    #expect(try change(there, "r", present: "q").ofOtherDevices == 0)
    #expect(try there.bytes(of: id) == Array("secret".utf8))
  }

  @Test func passcodeItemsGoWithThePassphraseInOneTransaction() throws {
    let engine = try fixture.open()
    try change(engine, "p")
    var item = KeychainSamples.generic("a")
    item.accessibility = .whenPasscodeSetThisDeviceOnly
    try engine.add(item, "secret")
    #expect(try change(engine, to: .keyFile, "", present: "p").deleted == 1)
    for table in ["item", "secret", "class_key"] {
      #expect(try fixture.number("SELECT count(*) FROM \(table)") == 0)
    }
    #expect(failure { try engine.add(item, "secret") }?.kind == "accessDenied")
  }

  @Test func passcodeClassHasAKeyThatOnlyThePassphraseOpens() throws {
    let engine = try fixture.open()
    try change(engine, "p")
    var item = KeychainSamples.generic("a")
    item.accessibility = .whenPasscodeSetThisDeviceOnly
    let id = try engine.add(item, "secret").id
    let file = try VaultFile(opening: VaultDirectory(fixture.directory, state: fixture.state))
    let key = try addSlot(file, 9, passphrase: "p")
    let slot = try #require(try file.slots().first { $0.id == 9 })
    let keys = try #require(try slot.open(key, file.header))
    let session = try Session(file, OpenedSlot(slot: 9, keys: keys))
    #expect(failure { _ = try session.secret(of: id) }?.kind == "accessDenied")
    #expect(try open("p").bytes(of: id) == Array("secret".utf8))
  }

  @Test func damagedItemStaysAndTheOthersGetNewKeys() throws {
    let ids = try fixture.makeVault()
    try fixture.edit(
      "UPDATE secret SET sealed = zeroblob(length(sealed)) WHERE uuid = \(fixture.literal(ids[0]))",
      "UPDATE item SET sealed = zeroblob(length(sealed)) WHERE uuid = \(fixture.literal(ids[1]))")
    #expect(try change(fixture.open(), "p").damaged == 2)
    let engine = try open("p")
    #expect(engine.problems().count == 1)
    #expect(try engine.bytes(of: ids[2]) == Array("secret of c".utf8))
    #expect(failure { _ = try engine.secret(of: ids[0]) }?.kind == "damaged")
    try engine.remove([ids[0], ids[1]])
    #expect(try open("p").problems().isEmpty)
  }

  /// Secrets that later versions of Keyhole store beside an item's are sealed again with it.
  @Test func versionsAttachmentsAndFurtherSecretsAreKept() throws {
    let ids = try fixture.makeVault(["a", "b"])
    let key = try #require(ItemKey(ids[0]))
    try addParts(key, owner: ItemKey(ids[1]))
    try change(fixture.open(), "p")
    let engine = try open("p")
    try engine.withSession { session throws(StoreError) in try expectParts(session, key, ItemKey(ids[1])) }
    // Other rules are those of the further secret, too.
    _ = try engine.update([ids[0]]) { $0.accessibility = .afterFirstUnlock }
    try engine.withSession { session throws(StoreError) in try expectParts(session, key, ItemKey(ids[1])) }
    #expect(
      try engine.checkSecrets() == SecretCheck(opened: 4, damaged: [], ofOtherDevices: 0, withoutItem: 0))
    try engine.remove([ids[0]])
    #expect(try fixture.number("SELECT count(*) FROM secret") == 1)
    #expect(try fixture.number("SELECT count(*) FROM version") == 0)
  }

  @Test func costIsThatOfTheLastChange() throws {
    let engine = try fixture.open()
    try change(engine, "p")
    try engine.change(
      to: .passphraseAndKeyFile, KeychainSamples.secret("p"), present: KeychainSamples.secret("p"),
      cost: PassphraseCost(logarithm: 15, blockSize: 8, parallelism: 1))
    #expect(try fixture.number("SELECT hex(substr(parameters, 33, 1)) = '0F' FROM slot") == 1)
  }
}

extension VaultRekeyTests {
  private func password(_ text: String) throws -> ItemPassword {
    ItemPassword(try KeychainSamples.secret(text))
  }

  private var attach: String { "ATTACH '\(fixture.root)/old.db' AS o" }

  private func keepOld(_ tables: String...) throws {
    for table in tables { try fixture.edit(attach, "CREATE TABLE o.\(table) AS SELECT * FROM main.\(table)") }
  }

  private func expectDistrust(_ engine: VaultEngine, _ reason: String) throws {
    guard case .distrusted(let problem) = engine.trust else {
      Issue.record("trusted: \(engine.trust)")
      return
    }
    #expect(problem.reason.contains(reason), "\(problem.reason)")
    #expect(failure { try engine.add(KeychainSamples.generic("new"), "") }?.kind == "readOnly")
  }

  /// All sealed bytes of the vault's tables.
  private func seals() throws -> [[UInt8]] {
    let queue = try DatabaseQueue(path: fixture.database)
    return try queue.read { database in
      try [
        "sealed FROM slot", "sealed FROM class_key", "sealed FROM item", "wrapped FROM secret",
        "sealed FROM secret", "sealed FROM manifest",
      ].flatMap { try Data.fetchAll(database, sql: "SELECT " + $0).map(Array.init) }
    }
  }

  private static func deviceSlot(
    _ id: UInt64, _ key: Curve25519.KeyAgreement.PrivateKey, _ file: VaultFile, passphrase: String = ""
  ) throws -> KeySlot {
    let keys = try SlotOpener(file, KeychainSamples.secret(passphrase)).open(file.slots())[0].keys
    return try KeySlot(
      id: id, .device, parameters: [1, 2, 3], SlotPublicKey(key.publicKey), keys, file.header)
  }

  /// Adds a slot of a device as a later version of Keyhole will.
  @discardableResult private func addSlot(
    _ file: VaultFile, _ id: UInt64, passphrase: String = ""
  ) throws -> Curve25519.KeyAgreement.PrivateKey {
    let key = Curve25519.KeyAgreement.PrivateKey()
    let slot = try Self.deviceSlot(id, key, file, passphrase: passphrase)
    let opened = try SlotOpener(file, KeychainSamples.secret(passphrase)).open(file.slots())[0]
    let session = try Session(file, opened)
    let manifest = try file.connection.write { database in
      var manifest = try session.trustedManifest(database)
      try slot.insert(database, .two)
      _ = try manifest.advance()
      try manifest.store(database, session.keys)
      return manifest
    }
    session.advanceAnchor(manifest)
    return key
  }

  private func addParts(_ key: ItemKey, owner: ItemKey?) throws {
    try fixture.open().withSession { session throws(StoreError) in
      let manifest = try session.connection.write { database in
        var manifest = try session.trustedManifest(database)
        let table = session.items(database)
        guard var row = try table.fetch(key), let columns = try table.fetchColumns(key) else {
          throw StoreError.notFound
        }
        let former = row.record
        manifest.remove(columns)
        try session.versions(database).put(former, key, row.revision)
        row.record.versions = [row.revision]
        let revision = try manifest.advance()
        row.record.owner = owner
        row.record.furtherSecrets = [
          .init(part: 1, revision: revision, size: 4, modified: KeychainSamples.time)
        ]
        row.record.secretRevision = revision
        row.revision = try manifest.advance()
        try table.delete(key)
        manifest.add(try table.insert(row))
        let secrets = session.secrets(database)
        for (part, text) in [(0, "main"), (1, "code")] as [(UInt8, String)] {
          let place = SecretPlace(item: key, part: part, revision: revision)
          try secrets.put(KeychainSamples.secret(text), place, row.record, former: revision)
        }
        try manifest.store(database, session.keys)
        return manifest
      }
      session.advanceAnchor(manifest)
    }
  }

  private func expectParts(_ session: Session, _ key: ItemKey, _ owner: ItemKey?) throws(StoreError) {
    try session.connection.read { database in
      let record = try #require(try session.items(database).fetch(key)).record
      #expect(record.owner == owner && record.versions.count == 1)
      let secrets = session.secrets(database)
      let further = try #require(record.furtherSecrets.first)
      let place = SecretPlace(item: key, part: 1, revision: further.revision)
      #expect(try Self.text(secrets.open(secrets.fetchSealed(place, record))) == "code")
      #expect(try Self.text(secrets.fetch(key, record)) == "main")
      let version = try session.versions(database).fetch(key, record.versions[0])
      #expect(try Self.text(secrets.fetch(key, version)) == "secret of a")
    }
  }

  private static func text(_ secret: borrowing SecretBytes) -> String {
    unsafe secret.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
  }
}
