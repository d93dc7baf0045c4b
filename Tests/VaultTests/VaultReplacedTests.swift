import Glibc
import Model
import Platform
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultDatabase
@testable import VaultRecords

/// Changes of a vault's files while it is open.
enum Displacement: CaseIterable {
  case folderRemoved, filesRemoved, databaseRemoved, folderRenamed, logRemoved
  /// The others put a copy of the same vault there.
  case folderRestored, databaseReplaced

  var leavesAVault: Bool { [.folderRestored, .databaseReplaced, .logRemoved].contains(self) }

  func happen(to fixture: VaultFixture) throws {
    let (database, copy) = (fixture.database, fixture.snapshot())
    switch self {
    case .folderRemoved: removeAll(fixture.directory)
    case .filesRemoved: for ending in ["", "-wal", "-shm"] { unsafe unlink(database + ending) }
    case .databaseRemoved: unsafe unlink(database)
    case .logRemoved: unsafe unlink(database + "-wal")
    case .folderRenamed: unsafe rename(fixture.directory, fixture.root + "/elsewhere")
    case .folderRestored: try fixture.restore(copy)
    case .databaseReplaced:
      try write(contents(of: database), to: fixture.root + "/copy")
      unsafe rename(fixture.root + "/copy", database)
    }
  }
}

@Suite(.timeLimit(.minutes(1))) struct VaultReplacedTests {
  @Test(arguments: Displacement.allCases)
  func nothingIsStoredInAFileThatIsNotThereAnyMore(_ displacement: Displacement) throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let item = try engine.add(KeychainSamples.generic("a"), "old")
    _ = try engine.items()
    try displacement.happen(to: fixture)
    #expect(failure { try engine.requireWritable() }?.errno.rawValue == EIO)
    #expect(failure { try engine.set(item.id, Array("new".utf8)) }?.kind == "unreachable")
    #expect(failure { try engine.add(KeychainSamples.generic("b"), "x") }?.kind == "unreachable")
    #expect(failure { try engine.remove([item.id]) }?.kind == "unreachable")
    #expect(!engine.problems().isEmpty)
    #expect(engine.readOnlyReason != nil)
    #expect(try engine.bytes(of: item.id) == Array("old".utf8), "what is open can still be read")
    let news = try engine.changes().items()
    guard displacement.leavesAVault else {
      #expect(news == nil)
      #expect(failure { try engine.set(item.id, Array("new".utf8)) }?.kind == "unreachable")
      #expect(try engine.bytes(of: item.id) == Array("old".utf8))
      return
    }
    #expect(news?.map(\.id) == [item.id])
    #expect(engine.problems().isEmpty)
    try engine.set(item.id, Array("new".utf8))
    #expect(try fixture.open().bytes(of: item.id) == Array("new".utf8))
  }

  @Test func theStoreTakesTheNewVaultOver() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let store = KeychainStore(engine: engine)
    try store.add(KeychainSamples.generic("a"), secret: KeychainSamples.secret("old"))
    let copy = fixture.snapshot()
    try store.add(KeychainSamples.generic("b"), secret: KeychainSamples.secret("newer"))
    try fixture.restore(copy)
    #expect(throws: StoreError.self) {
      try store.add(KeychainSamples.generic("c"), secret: KeychainSamples.secret("lost"))
    }
    #expect(try store.read { $0.count } == 1, "what the restored vault holds")
    // It is older than what this device has seen.
    try engine.acceptRollback()
    try store.add(KeychainSamples.generic("c"), secret: KeychainSamples.secret("kept"))
    #expect(try fixture.open().items().count == 2)
  }

  @Test func anOlderCopyOverTheOpenFileIsFoundBeforeACommit() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let item = try engine.add(KeychainSamples.generic("a"), "old")
    let events = try FileEvents(fixture.database + "-wal")
    #expect(events.wait { contents(of: fixture.database + "-wal").isEmpty })
    let old = contents(of: fixture.database)
    try engine.set(item.id, Array("new".utf8))
    #expect(events.wait { contents(of: fixture.database + "-wal").isEmpty })
    try fixture.overwrite(with: old)
    #expect(failure { try engine.set(item.id, Array("newer".utf8)) }?.kind == "readOnly")
    #expect(engine.problems().contains { $0.reason.contains("older than what") })
  }

  /// As `cp -a` of a folder does it: the database before its key file.
  @Test(arguments: [false, true]) func aVaultWhoseKeyFileComesLaterIsOpened(isLocked: Bool) throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let item = try engine.add(KeychainSamples.generic("a"), "old")
    let (copy, key) = (fixture.snapshot(), contents(of: fixture.key))
    if isLocked { try engine.lock() }
    try fixture.restore(copy.filter { !$0.key.hasSuffix(".key") })
    _ = try? engine.changes()
    #expect(engine.problems().contains { $0.reason.contains("can't be opened") })
    try write(key, to: fixture.key)
    #expect(try engine.changes().items()?.map(\.id) == [item.id])
    #expect(engine.problems().isEmpty)
    #expect(engine.lockState == (isLocked ? .locked : .open))
    if isLocked { try engine.unlock(SecretBytes()) }
    #expect(try engine.bytes(of: item.id) == Array("old".utf8))
  }

  /// The vault opens by itself when its key file comes: not after it was locked meanwhile.
  @Test func aVaultThatIsLockedWhileItIsCopiedStaysLocked() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let store = KeychainStore(engine: engine)
    let item = try engine.add(KeychainSamples.generic("a"), "old")
    let (copy, key) = (fixture.snapshot(), contents(of: fixture.key))
    try fixture.restore(copy.filter { !$0.key.hasSuffix(".key") })
    _ = try? engine.changes()
    #expect(engine.lockState == .sealed)
    try store.lock()
    try write(key, to: fixture.key)
    #expect(try engine.changes().items()?.map(\.id) == [item.id])
    #expect(engine.lockState == .locked)
    #expect(failure { _ = try engine.bytes(of: item.id) } == .locked)
    try engine.unlock(SecretBytes())
    #expect(try engine.bytes(of: item.id) == Array("old".utf8))
  }

  /// The same while what is at its path is no vault, and the open one is kept.
  @Test func aVaultThatIsLockedBesideABrokenCopyStaysLocked() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let item = try engine.add(KeychainSamples.generic("a"), "old")
    let copy = fixture.snapshot()
    var broken = copy
    for name in copy.keys where name.hasSuffix(".db") { broken[name] = Array("no database".utf8) }
    try fixture.restore(broken)
    _ = try? engine.changes()
    #expect(engine.lockState == .open)
    try engine.lock()
    try fixture.restore(copy)
    #expect(try engine.changes().items()?.map(\.id) == [item.id])
    #expect(engine.lockState == .locked)
  }

  @Test func aVaultWithAPassphraseIsLockedAfterItWasReplaced() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let item = try engine.add(KeychainSamples.generic("a"), "old")
    _ = try engine.change(
      to: .passphrase, KeychainSamples.secret("pass"), present: KeychainSamples.secret(""), cost: .least)
    _ = try engine.items()
    try Displacement.folderRestored.happen(to: fixture)
    #expect(try engine.changes().items() == [])
    #expect(engine.lockState == .sealed)
    #expect(failure { _ = try engine.bytes(of: item.id) } == .locked)
    try engine.unlock(KeychainSamples.secret("pass"))
    #expect(try engine.changes().items()?.map(\.id) == [item.id])
    try engine.set(item.id, Array("new".utf8))
  }

  @Test func whatIsNoVaultIsNamed() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let item = try engine.add(KeychainSamples.generic("a"), "old")
    try write(Array("no database".utf8), to: fixture.database)
    _ = try? engine.changes()
    #expect(failure { try engine.set(item.id, Array("new".utf8)) } != nil)
    #expect(engine.problems().contains { $0.reason.contains("not a vault") })
    #expect(contents(of: fixture.database) == Array("no database".utf8))
  }

  /// The open one is closed before the other one is opened.
  @Test func whatOnlyBeginsAsAVaultEndsNoProcess() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let item = try engine.add(KeychainSamples.generic("a"), "old")
    engine.vault.use { $0.file.connection.checkpoint() }
    let good = contents(of: fixture.database)
    let other = fixture.root + "/other"
    try write(Array(good.prefix(200)) + [UInt8](repeating: 0xA5, count: good.count - 200), to: other)
    unsafe rename(other, fixture.database)
    _ = try? engine.changes()
    _ = engine.needsPassphrase
    #expect(!engine.problems().isEmpty)
    #expect(failure { try engine.set(item.id, Array("lost".utf8)) } != nil)
    _ = try? engine.changes()
    #expect(engine.lockState == .sealed)
    for ending in ["-wal", "-shm"] { unsafe unlink(fixture.database + ending) }
    try write(good, to: other)
    unsafe rename(other, fixture.database)
    #expect(try engine.changes().items()?.map(\.id) == [item.id])
    #expect(engine.problems().isEmpty)
    #expect(try engine.bytes(of: item.id) == Array("old".utf8))
  }

  @Test func aMissingKeyFileIsAProblemWhileTheVaultIsOpen() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    #expect(engine.problems().isEmpty)
    unsafe unlink(fixture.key)
    let problem = engine.problems().first
    #expect(problem?.subject == fixture.key && problem?.reason.contains("missing") == true)
  }
}
