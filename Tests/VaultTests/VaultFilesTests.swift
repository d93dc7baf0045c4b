import GRDB
import Glibc
import Model
import Platform
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultDatabase

@Suite struct VaultFilesTests {
  /// SQLite has one code for all of them.
  @Test(arguments: [
    (EDQUOT, StoreError.quotaExceeded), (ENOSPC, .noSpace), (EMFILE, .tooManyOpen),
    (0, .system(.EIO, operation: "the vault's database")),
  ])
  func errorOfTheDiskIsTheOneOfTheCall(number: Int32, error: StoreError) {
    let failure = DatabaseError(resultCode: .SQLITE_IOERR_WRITE)
    errno = EEXIST
    #expect(StoreError(vault: failure, errno: number) == error)
  }

  @Test func everythingIsTheUsersAlone() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    try engine.add(KeychainSamples.full(), "x")
    for folder in [fixture.directory, fixture.state] {
      #expect(mode(folder) == 0o700)
      for name in names(in: folder) { #expect(mode(folder + "/" + name) == 0o600, "\(name)") }
    }
    #expect(names(in: fixture.directory).contains("vault.db-wal"))
  }

  @Test func whatWasWrittenIsThereAfterReopening() throws {
    let fixture = try VaultFixture()
    let item = try fixture.open().add(KeychainSamples.full(), "s3cret")
    let engine = try fixture.open()
    #expect(try engine.items() == [item])
    #expect(try engine.bytes(of: item.id) == Array("s3cret".utf8))
    #expect(engine.problems().isEmpty)
    #expect(try engine.changes().items() == nil)
  }

  @Test func thirtyTwoOpenersAtOnceMakeOneVault() async throws {
    let fixture = try VaultFixture()
    let (directory, state) = (fixture.directory, fixture.state)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<32 {
        group.addTask {
          let engine = try VaultEngine(directory: directory, stateDirectory: state)
          try engine.add(KeychainSamples.generic(ExactString("\(index)")), "\(index)")
        }
      }
      try await group.waitForAll()
    }
    let engine = try fixture.open()
    #expect(try engine.items().count == 32)
    #expect(engine.problems().isEmpty)
    #expect(names(in: fixture.directory).filter { $0.contains(".new") }.isEmpty)
  }

  /// close(2) of a descriptor of SQLite's file would drop the locks of every connection of this process; without them
  /// another process removes the log while it is written.
  @Test func openingTheVaultAgainLeavesTheLocksOfTheFirstOne() throws {
    let fixture = try VaultFixture()
    let first = try fixture.open()
    try first.add(KeychainSamples.full(), "x")
    #expect(fixture.isLocked)
    _ = try fixture.open().items()
    #expect(fixture.isLocked)
    _ = try first.items()
    // The change that would have happened.
    // SAFETY: a variadic call without its variable part.
    close(unsafe Glibc.open(fixture.database, O_RDONLY))
    #expect(!fixture.isLocked)
  }

  @Test func leftoversOfACrashWhileMakingAreNoHindrance() throws {
    let fixture = try VaultFixture()
    _ = failure { _ = try VaultDirectory(fixture.directory, state: fixture.state) }
    for name in ["vault.key.new", "vault.db.new", "vault.db.new-journal", "vault.db.new-wal"] {
      try write([1, 2, 3], to: fixture.directory + "/" + name)
    }
    #expect(try fixture.open().add(KeychainSamples.generic("a"), "1").size == 1)
  }

  @Test func aKeyWithoutADatabaseIsKept() throws {
    let fixture = try VaultFixture()
    try fixture.makeVault([])
    let key = contents(of: fixture.key)
    unsafe unlink(fixture.database)
    #expect(try fixture.open().items().isEmpty)
    #expect(contents(of: fixture.key) == key)
  }

  @Test func aMissingKeyIsNeverMadeAnew() throws {
    let fixture = try VaultFixture()
    try fixture.makeVault()
    unsafe unlink(fixture.key)
    let before = fixture.snapshot()
    let error = failure { _ = try fixture.open() }
    #expect(error?.kind == "accessDenied" && "\(error as Any)".contains("vault.key is missing"))
    #expect(fixture.snapshot() == before)
  }

  @Test func aWrongKeyOpensNothingAndChangesNothing() throws {
    let fixture = try VaultFixture()
    try fixture.makeVault()
    try write([UInt8](repeating: 7, count: 32), to: fixture.key)
    let before = fixture.snapshot()
    let error = failure { _ = try fixture.open() }
    #expect(error?.kind == "accessDenied" && "\(error as Any)".contains("vault.key is not"))
    #expect(fixture.snapshot() == before)
  }

  @Test(arguments: [0, 1, 31, 33, 4096]) func aKeyOfAnotherLengthIsDamaged(_ length: Int) throws {
    let fixture = try VaultFixture()
    try fixture.makeVault()
    try write([UInt8](repeating: 7, count: length), to: fixture.key)
    #expect(failure { _ = try fixture.open() } == .damaged(what: fixture.key))
  }

  @Test func aLogWithoutItsDatabaseIsNotBuriedUnderANewOne() throws {
    let fixture = try VaultFixture()
    try fixture.makeVault([])
    unsafe unlink(fixture.database)
    try write([1], to: fixture.database + "-wal")
    #expect(failure { _ = try fixture.open() }?.kind == "damaged")
    #expect(contents(of: fixture.database).isEmpty)
  }

  @Test(arguments: ["vault.db", "vault.key"]) func aFileOthersCanAccessIsRefused(_ name: String) throws {
    let fixture = try VaultFixture()
    try fixture.makeVault()
    let path = fixture.directory + "/" + name
    for mode in [0o644, 0o640, 0o604, 0o602] as [UInt32] {
      unsafe chmod(path, mode)
      let error = failure { _ = try fixture.open() }
      #expect(error?.kind == "accessDenied" && "\(error as Any)".contains("chmod 600"))
    }
    unsafe chmod(path, 0o600)
    #expect(try fixture.open().items().count == 3)
  }

  @Test(arguments: ["vault.db", "vault.key"]) func aLinkOrAPipeIsRefused(_ name: String) throws {
    let fixture = try VaultFixture()
    try fixture.makeVault()
    let path = fixture.directory + "/" + name
    unsafe rename(path, fixture.root + "/elsewhere")
    unsafe symlink(fixture.root + "/elsewhere", path)
    #expect(failure { _ = try fixture.open() }?.kind == "accessDenied")
    unsafe unlink(path)
    unsafe mkfifo(path, 0o600)
    #expect(failure { _ = try fixture.open() }?.kind == "accessDenied")
  }

  @Test(.enabled(if: geteuid() == 0, "needs root"), arguments: ["vault.db", "vault.key", ""])
  func fileOfAnotherUserIsRefusedAsRoot(_ name: String) throws {
    let fixture = try VaultFixture()
    try fixture.makeVault()
    unsafe chown(fixture.directory + "/" + name, 12345, 12345)
    let error = failure { _ = try fixture.open() }
    #expect(error?.kind == "accessDenied" && "\(error as Any)".contains("another user"))
  }

  @Test func aFolderOthersCanEnterIsRefused() throws {
    let fixture = try VaultFixture()
    try fixture.makeVault()
    for folder in [fixture.directory, fixture.state] {
      unsafe chmod(folder, 0o750)
      #expect(failure { _ = try fixture.open() }?.kind == "accessDenied")
      unsafe chmod(folder, 0o700)
    }
  }

  private func mode(_ path: String) -> UInt32 {
    var status = stat()
    _ = unsafe stat(path, &status)
    return status.st_mode & 0o777
  }
}
