import Backup
import Glibc
import Model
import SecretMemory
import Store
import Suites
import Testing
import Vault
import VaultRecords

/// The contents of a backup, and its restore elsewhere.
@Suite struct BackupFileTests {
  private func secrets(_ vault: VaultEngine) throws -> [String: String] {
    var found: [String: String] = [:]
    for item in try vault.items() {
      guard case .generic(_, let account) = item.identity else { continue }
      found[account.string] = try? unsafe vault.secret(of: item.id).withUnsafeBytes {
        unsafe String(decoding: $0, as: UTF8.self)
      }
    }
    return found
  }

  @Test func everythingIsThereElsewhere() throws {
    let fixture = try BackupFixture()
    try fixture.fill()
    let path = fixture.folders.settings + "/one.plist"
    let times = [timespec(tv_sec: 1_000_000_000, tv_nsec: 5), timespec(tv_sec: 1_000_000_001, tv_nsec: 7)]
    try #require(unsafe utimensat(AT_FDCWD, path, times, 0) == 0)
    let summary = try fixture.backUp()
    #expect(summary.suites == 2 && summary.hasVault && summary.items == 1 && summary.leftOut == 1)
    let report = try fixture.restore(fixture.others)
    #expect(report.summary == summary && report.suites == 2 && report.setAside.isEmpty)
    for name in ["one.plist", "two.plist"] {
      #expect(
        try Files.bytes("\(fixture.others.settings)/\(name)")
          == Files.bytes("\(fixture.folders.settings)/\(name)"))
    }
    let modified = try Files.status(fixture.others.settings + "/one.plist").st_mtim
    #expect(modified.tv_sec == 1_000_000_001 && modified.tv_nsec == 7)
    let vault = try fixture.engine(fixture.others)
    _ = try vault.items()
    // The same user of the same machine without the state folder: that is said, and can be accepted.
    #expect(try vault.comparison().reason?.contains("is missing") == true)
    try vault.acceptRollback()
    #expect(try vault.removeItemsLeftOut() == 1)
    #expect(try secrets(vault) == ["account": "hunter2"])
    try fixture.add("more", .whenUnlocked, "written", to: vault)
    #expect(vault.problems().isEmpty)
  }

  /// The rows are as they were, so that the vault knows what was taken from it.
  /// The file of a large suite lags behind by up to a second.
  @Test func whatOnlyAJournalHasIsBackedUpAndSetAside() throws {
    let fixture = try BackupFixture()
    let suites = PropertyListFolder(folder: fixture.folders.settings, stateFolder: fixture.folders.state)
    _ = try suites.create("large")
    let filling = SettingValue.data([UInt8](repeating: 7, count: 300_000))
    _ = try suites.update("large", known: nil) { contents in
      contents.settings["filling"] = Setting(filling)
      contents.settings["k"] = Setting(.string("old"))
    }
    let file = fixture.folders.settings + "/large.plist"
    let before = try Files.bytes(file)
    _ = try suites.update("large", known: nil) { $0.settings["k"] = Setting(.string("new")) }
    #expect(try Files.bytes(file) == before)
    try fixture.backUp()
    #expect(try Files.bytes(file) != before)
    _ = try suites.update("large", known: nil) { $0.settings["k"] = Setting(.string("newer")) }
    try fixture.restore(fixture.folders)
    #expect(try suites.read("large")?.settings["k"]?.value == .string("new"))
  }

  @Test func theRestoredVaultAddsUp() throws {
    let fixture = try BackupFixture()
    try fixture.fill()
    try fixture.backUp()
    let report = try fixture.restore(fixture.folders)
    #expect(
      report.setAside == [fixture.folders.vault + report.setAside[0].dropFirst(fixture.folders.vault.count)])
    let vault = try fixture.engine(fixture.folders)
    #expect(try secrets(vault) == ["account": "hunter2"])
    #expect(try vault.items().count == 2 && vault.comparison().reason == nil && vault.trust == .trusted)
    for item in try vault.items() where item.accessibility == .whenUnlockedThisDeviceOnly {
      let error = #expect(throws: StoreError.self) { _ = try vault.secret(of: item.id) }
      #expect(error?.message.contains("stayed on the device") == true)
    }
    #expect(try vault.removeItemsLeftOut() == 1 && vault.items().count == 1)
    #expect(try vault.removeItemsLeftOut() == 0)
  }

  @Test func aLockedVaultIsBackedUp() throws {
    let fixture = try BackupFixture()
    try fixture.fill()
    let vault = try fixture.engine(fixture.folders)
    let horse = try BackupFixture.secret(Array("horse".utf8))
    let least = try #require(PassphraseCost(logarithm: 14))
    try vault.change(to: .passphraseAndKeyFile, horse, present: SecretBytes(), cost: least)
    let summary = try fixture.backUp()
    #expect(summary.items == 1 && summary.leftOut == 1)
    try fixture.restore(fixture.others)
    let other = try fixture.engine(fixture.others)
    #expect(other.needsPassphrase && other.lockState != .open)
    try other.unlock(horse)
    #expect(try secrets(other) == ["account": "hunter2"])
  }

  @Test func aVaultWhoseKeyFileIsGoneIsNotBackedUp() throws {
    let fixture = try BackupFixture()
    try fixture.fill()
    unsafe unlink(fixture.folders.vault + "/vault.key")
    let error = #expect(throws: BackupError.self) { try fixture.backUp() }
    #expect(error?.reason.contains("vault.key is missing") == true)
    #expect(Files.names(fixture.root) == ["a"])
  }

  @Test func aFileThatIsThereStays() throws {
    let fixture = try BackupFixture()
    try fixture.fill()
    try Files.write("precious", to: fixture.file)
    #expect(throws: BackupError.self) { try fixture.backUp() }
    #expect(try Files.text(fixture.file) == "precious")
    try fixture.backUp(.isReplaced)
    #expect(try fixture.opened().check().suites == 2)
    #expect(Files.names(fixture.root) == ["a", "backup"])
  }

  @Test func whatIsNoFileIsNotReplaced() throws {
    let fixture = try BackupFixture()
    try #require(unsafe mkdir(fixture.file, 0o700) == 0)
    #expect(throws: BackupError.self) { try fixture.backUp(.isReplaced) }
    unsafe rmdir(fixture.file)
    try #require(unsafe mkfifo(fixture.file, 0o600) == 0)
    #expect(throws: BackupError.self) { try fixture.backUp(.isReplaced) }
    #expect(Files.names(fixture.root) == ["backup"])
  }

  @Test func whatCanNotBeLookedAtIsAnError() throws {
    let fixture = try BackupFixture()
    try fixture.fill()
    for folder in [fixture.folders.settings, fixture.folders.vault] {
      for mode: mode_t in [0, 0o300, 0o400] where mode != 0o300 || folder == fixture.folders.settings {
        unsafe chmod(folder, mode)
        defer { unsafe chmod(folder, 0o700) }
        // Root may read all.
        guard unsafe access(folder, R_OK | X_OK) != 0 else { continue }
        #expect(throws: BackupError.self, "\(folder) \(mode)") { try fixture.backUp() }
      }
    }
    unsafe unlink(fixture.folders.vault + "/vault.db")
    #expect(throws: BackupError.self) { try fixture.backUp() }
    #expect(Files.names(fixture.root) == ["a"])
  }

  /// A slash and the mark behind it are one Character.
  @Test(arguments: ["\u{301}x", "a\u{600}"]) func marksInNamesAreBytes(name: String) throws {
    let fixture = try BackupFixture()
    try fixture.fill()
    try Files.write("{ a = 1; }", to: "\(fixture.folders.settings)/\(name).plist")
    #expect(try fixture.backUp().suites == 3)
    try fixture.restore(fixture.others)
    #expect(try Files.text("\(fixture.others.settings)/\(name).plist") == "{ a = 1; }")
    try Files.write("{ a = 2; }", to: "\(fixture.others.settings)/\(name).plist")
    #expect(try fixture.restore(fixture.others).setAside.count == 2)
    #expect(try Files.text("\(fixture.others.settings)/\(name).plist") == "{ a = 1; }")
  }

  /// Files that are named like suites and are in no backup are listed by name.
  @Test func whatIsLeftOutIsNamed() throws {
    let fixture = try BackupFixture()
    try fixture.fill()
    let folder = fixture.folders.settings
    try #require(unsafe symlink("nowhere", folder + "/link.plist") == 0)
    try #require(unsafe mkfifo(folder + "/pipe.plist", 0o600) == 0)
    var name = (folder + "/f").utf8.map { CChar(bitPattern: $0) }
    name += [CChar(bitPattern: 0xFC)] + ".plist\0".utf8.map { CChar(bitPattern: $0) }
    try #require(unsafe mknod(name, S_IFREG | 0o600, 0) == 0)
    defer { unsafe unlink(name) }
    var backup = try BackupFile(fixture.file, of: fixture.folders, existing: .isKept)
    var omissions: [String: String] = [:]
    backup.onOmission = { omissions[$0] = $1 }
    #expect(try backup.write(sealedTo: fixture.key).suites == 2)
    #expect(
      omissions == [
        folder + "/link.plist": "it is a link that leads to no file",
        folder + "/pipe.plist": "it is no regular file",
        folder + "/f\\xFC.plist": "its name is not UTF-8",
      ])
  }

  @Test func aLinkIsFollowedToItsDisk() throws {
    let fixture = try BackupFixture()
    try fixture.fill()
    let target = fixture.root + "/elsewhere"
    try #require(unsafe symlink(target, fixture.file) == 0)
    #expect(throws: BackupError.self) { try fixture.backUp(.isReplaced) }
    try Files.write("", to: target)
    try fixture.backUp(.isReplaced)
    #expect(try fixture.opened(target).check().suites == 2)
    #expect(try Files.status(target).st_mode & S_IFMT == S_IFREG)
  }

  @Test func whatAKilledBackupHasLeftIsRemoved() throws {
    let fixture = try BackupFixture()
    try fixture.fill()
    // No process has such a number: the largest is 2²².
    for name in ["backup.99999999.part", "backup.1.part", "backup.x.part", "other.99999999.part"] {
      try Files.write("", to: "\(fixture.root)/\(name)")
    }
    try fixture.backUp()
    #expect(
      Files.names(fixture.root) == ["a", "backup", "backup.1.part", "backup.x.part", "other.99999999.part"])
  }

  @Test func nothingButAVaultOrSettingsWillDo() throws {
    let fixture = try BackupFixture()
    let empty = try fixture.backUp()
    #expect(empty.suites == 0 && !empty.hasVault)
    #expect(try fixture.restore(fixture.others).suites == 0)
    #expect(try !VaultArchive.exists(in: fixture.others.vault))
  }

  @Test func timesOfKeysFollowTheirSuite() throws {
    let fixture = try BackupFixture()
    try fixture.fill()
    let name = try #require(timesName(of: "one", fixture))
    try Files.write("times of one", to: "\(fixture.folders.state)/times/\(name)")
    try fixture.backUp()
    try fixture.restore(fixture.others)
    #expect(try Files.text("\(fixture.others.state)/times/\(name)") == "times of one")
    // A suite that is the same keeps the times that it has.
    try Files.write("other times", to: "\(fixture.others.state)/times/\(name)")
    try fixture.restore(fixture.others)
    #expect(try Files.text("\(fixture.others.state)/times/\(name)") == "other times")
    try Files.write("changed", to: fixture.others.settings + "/one.plist")
    try fixture.restore(fixture.others)
    #expect(try Files.text("\(fixture.others.state)/times/\(name)") == "times of one")
    let aside = Files.all(fixture.others.state).filter { $0.contains("set-aside") }
    #expect(try aside.map(Files.text) == ["other times"])
  }

  /// Otherwise the next change of a restored suite would keep its former value in plain text.
  @Test func suitesWhoseVersionsAreNotKeptStayWithoutThem() throws {
    let fixture = try BackupFixture()
    try fixture.fill()
    let suites = PropertyListFolder(folder: fixture.folders.settings, stateFolder: fixture.folders.state)
    try suites.setKeepsVersions(false, of: "two")
    try fixture.backUp()
    try fixture.restore(fixture.others)
    let restored = PropertyListFolder(
      folder: fixture.others.settings, stateFolder: fixture.others.state, retention: .standard)
    #expect(restored.keepsVersions(of: "one") && !restored.keepsVersions(of: "two"))
  }

  private func timesName(of suite: ExactString, _ fixture: BackupFixture) -> String? {
    let folder = PropertyListFolder(folder: fixture.folders.settings, stateFolder: fixture.folders.state)
    return folder.timesFile(of: suite).split(separator: "/").last.map(String.init)
  }
}
