import GRDB
import Glibc
import Model
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultDatabase
@testable import VaultRecords

/// Copies that are written over the open vault in place: the same file, other bytes.
@Suite(.timeLimit(.minutes(1))) struct VaultOverwrittenTests {
  /// How a copy that is written over the open vault differs from it.
  enum Change: CaseIterable {
    case newer, newKeys, newPassphrase
    /// Its manifest does not open, and it has a slot that Keyhole did not store.
    case forged
  }

  /// The next write goes on from what is in the file then, though the watcher of the folder has read it before.
  @Test(arguments: Change.allCases, [false, true])
  func writeGoesOnFromACopyThatWasWrittenOverTheOpenFile(change: Change, isRefreshed: Bool) throws {
    let fixture = try VaultFixture()
    let (engine, item) = try openAtRest(fixture)
    #expect(try engine.bytes(of: item.id) == Array("old".utf8))
    let copy = try copied(fixture)
    try apply(change, toTheVaultIn: copy, item.id)
    try fixture.overwrite(with: contents(of: copy + "/vault.db"))

    if isRefreshed { _ = try? engine.changes() }
    let error = failure { _ = try engine.add(KeychainSamples.generic("b"), "added") }
    if isRefreshed { _ = try? engine.changes() }
    let again = try fixture.open()
    switch change {
    case .newer, .newKeys:
      #expect(error == nil)
      #expect(try engine.items().count == 3 && again.items().count == 3)
      #expect(try engine.bytes(of: item.id) == Array("newer".utf8))
      #expect(try again.bytes(of: item.id) == Array("newer".utf8))
    case .newPassphrase:
      #expect(error == .locked)
      #expect(again.needsPassphrase)
      try again.unlock(KeychainSamples.secret("pass"))
      #expect(try again.items().count == 2)
    case .forged:
      #expect(error?.kind == "readOnly")
      #expect(!again.problems().isEmpty)
      return
    }
    #expect(again.problems().isEmpty && engine.problems().isEmpty && again.trust == .trusted)
  }

  /// Reading half of a copy fails, and SQLite keeps none of its pages.
  @Test(arguments: [0, 100, 4096, 5000, 20_000, 30_000])
  func halfOfACopyIsForgotten(count: Int) throws {
    let fixture = try VaultFixture()
    let (engine, item) = try openAtRest(fixture)
    let copy = contents(of: fixture.database)
    try #require(copy.count > count)
    for _ in 0..<2 {
      try fixture.overwrite(with: copy.prefix(count))
      _ = try? engine.changes()
      _ = try? engine.bytes(of: item.id)
      _ = try? engine.items()
      try fixture.overwrite(with: copy)
      _ = try engine.changes()
      #expect(try engine.bytes(of: item.id) == Array("old".utf8))
    }
    try fixture.overwrite(with: copy.prefix(count))
    _ = failure { try engine.set(item.id, Array("lost".utf8)) }
    try fixture.overwrite(with: copy)
    try engine.set(item.id, Array("new".utf8))
    let again = try fixture.open()
    #expect(try again.bytes(of: item.id) == Array("new".utf8) && again.problems().isEmpty)
  }

  /// The class key that was made last is not in the copy: what is stored from then on is sealed under one that is.
  @Test(arguments: [true, false]) func classKeysAreThoseOfTheCopy(isAcceptedHere: Bool) throws {
    let fixture = try VaultFixture()
    let (engine, _) = try openAtRest(fixture)
    let copy = contents(of: fixture.database)
    var item = KeychainSamples.generic("s", "one")
    item.accessibility = .afterFirstUnlockThisDeviceOnly
    _ = try engine.add(item, "of a class of its own")
    try rest(engine, fixture)
    try fixture.overwrite(with: copy)
    _ = try engine.changes()
    _ = try (isAcceptedHere ? engine : fixture.open()).acceptRollback()
    item = KeychainSamples.generic("s", "two")
    item.accessibility = .afterFirstUnlockThisDeviceOnly
    _ = try? engine.changes()
    let added = try engine.add(item, "kept")
    let again = try fixture.open()
    #expect(try again.bytes(of: added.id) == Array("kept".utf8) && again.problems().isEmpty)
  }

  /// Another program's commit, which touches nothing but the log.
  @Test(arguments: ["DELETE FROM class_key", "UPDATE class_key SET id = 9"])
  func noNewClassKeyHidesWhatWasDoneToTheOthers(edit: String) throws {
    let fixture = try VaultFixture()
    let (engine, _) = try openAtRest(fixture)
    let queue = try DatabaseQueue(path: fixture.database)
    try queue.writeWithoutTransaction { try $0.execute(sql: edit) }
    var item = KeychainSamples.generic("s", "one")
    item.accessibility = .afterFirstUnlockThisDeviceOnly
    let error = failure { _ = try engine.add(item, "lost") }
    #expect(["readOnly", "damaged"].contains(error?.kind), "\(error as Any)")
    try queue.close()
    #expect(try !fixture.open().problems().isEmpty)
  }

  /// A vault with an item, which its process has committed, and an empty log.
  private func openAtRest(_ fixture: VaultFixture) throws -> (VaultEngine, Item) {
    let engine = try fixture.open()
    let item = try engine.add(KeychainSamples.generic("a"), "old")
    try rest(engine, fixture)
    return (engine, item)
  }

  private func rest(_ engine: VaultEngine, _ fixture: VaultFixture) throws {
    engine.vault.use { $0.file.connection.checkpoint() }
    #expect(contents(of: fixture.database + "-wal").isEmpty)
  }

  private func copied(_ fixture: VaultFixture) throws -> String {
    let copy = fixture.root + "/copy"
    try #require(unsafe mkdir(copy, 0o700) == 0)
    for (name, bytes) in fixture.snapshot() { try write(bytes, to: copy + "/" + name) }
    return copy
  }

  private func apply(_ change: Change, toTheVaultIn folder: String, _ id: ItemID) throws {
    if change == .forged {
      let queue = try DatabaseQueue(path: folder + "/vault.db")
      try queue.writeWithoutTransaction { database in
        try database.execute(sql: "UPDATE manifest SET sealed = zeroblob(length(sealed))")
        try database.execute(sql: "CREATE TEMP TABLE foreign_slot AS SELECT * FROM slot")
        try database.execute(sql: "UPDATE foreign_slot SET id = id + 7")
        try database.execute(sql: "INSERT INTO slot SELECT * FROM foreign_slot")
      }
      return try queue.close()
    }
    let machine = MachineIdentity(machine: Array("another machine".utf8), user: 1000)
    let engine = try VaultEngine(
      VaultDirectory(folder, state: folder + ".state", machine: machine), .items, .least)
    try engine.set(id, Array("newer".utf8))
    _ = try engine.add(KeychainSamples.generic("c"), "of the copy")
    if change == .newer { return }
    let new = change == .newKeys ? "" : "pass"
    try engine.change(
      to: change == .newKeys ? .keyFile : .passphrase, KeychainSamples.secret(new),
      present: KeychainSamples.secret(""), cost: .least)
  }
}
