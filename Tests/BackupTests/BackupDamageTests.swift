import Backup
import Formats
import Glibc
import Model
import Testing

/// Files that are cut off, altered, forged, or something else.
@Suite(.timeLimit(.minutes(2))) struct BackupDamageTests {
  /// A backup of a few kilobytes, and folders with something in them that has to stay.
  private func fixture(of items: Int = 1) throws -> BackupFixture {
    let fixture = try BackupFixture()
    try Files.write("<plist>one</plist>", to: fixture.folders.settings + "/one.plist")
    if items > 0 {
      try fixture.add("account", .whenUnlocked, "hunter2", to: fixture.engine(fixture.folders))
    }
    try fixture.backUp()
    try Files.write("mine", to: fixture.others.settings + "/one.plist")
    return fixture
  }

  private func expectUnchanged(_ fixture: BackupFixture, _ what: String) {
    #expect((try? Files.text(fixture.others.settings + "/one.plist")) == "mine", "\(what)")
    #expect(Files.names(fixture.others.settings) == ["one.plist"], "\(what)")
    #expect(Files.names(fixture.root + "/b/data").isEmpty, "\(what)")
    #expect(Files.names(fixture.others.state) == ["restore.lock"], "\(what)")
  }

  @Test func cutOffAnywhereItChangesNothing() throws {
    let fixture = try fixture(of: 0)
    let whole = try Files.bytes(fixture.file)
    for count in 0..<whole.count {
      try Files.write(Array(whole[..<count]), to: fixture.root + "/cut")
      #expect(throws: BackupError.self, "\(count)") {
        try fixture.opened(fixture.root + "/cut").check()
      }
    }
    for count in [0, 7, 50, 106, 107, whole.count / 2, whole.count - 1] {
      try Files.write(Array(whole[..<count]), to: fixture.root + "/cut")
      #expect(throws: BackupError.self) { try fixture.restore(fixture.others, from: fixture.root + "/cut") }
    }
    #expect(throws: BackupError.self) {
      try Files.write(whole + [0], to: fixture.root + "/cut")
      try fixture.restore(fixture.others, from: fixture.root + "/cut")
    }
    expectUnchanged(fixture, "cut off")
  }

  @Test func alteredAnywhereItChangesNothing() throws {
    let fixture = try fixture(of: 0)
    let whole = try Files.bytes(fixture.file)
    for index in whole.indices {
      var bad = whole
      bad[index] ^= UInt8(1 << (index % 8))
      try Files.write(bad, to: fixture.root + "/bad")
      #expect(throws: BackupError.self, "\(index)") { try fixture.opened(fixture.root + "/bad").check() }
    }
  }

  @Test func anotherKeyOrAForeignFileChangesNothing() throws {
    let fixture = try fixture()
    let other = try BackupFixture()
    #expect(throws: BackupError.self) { try other.opened(fixture.file) }
    let horse = try BackupFixture.secret(Array("horse".utf8))
    #expect(throws: BackupError.self) { try BackupInput(fixture.file).opened(passphrase: horse) }
    for content in ["", "KHBACKUP", "SQLite format 3\0", String(repeating: "x", count: 10_000)] {
      try Files.write(content, to: fixture.root + "/foreign")
      #expect(throws: BackupError.self) { try BackupInput(fixture.root + "/foreign") }
    }
    #expect(throws: BackupError.self) { try BackupInput(fixture.root + "/missing") }
    #expect(throws: BackupError.self) { try BackupInput(fixture.root).lock }
  }

  @Test func anExportIsNoBackup() throws {
    let fixture = try fixture()
    var sealed: [UInt8] = []
    let writer = try SealedFileWriter(.export, publicKey: fixture.key) { sealed += $0 }
    try writer.finish()
    try Files.write(sealed, to: fixture.root + "/export")
    let error = #expect(throws: BackupError.self) { try BackupInput(fixture.root + "/export") }
    #expect(error?.reason.contains("keyhole import") == true)
  }

  @Test func thePassphraseOpensIt() throws {
    let fixture = try fixture()
    let horse = try BackupFixture.secret(Array("horse".utf8))
    _ = try BackupFile(fixture.root + "/p", of: fixture.folders, existing: .isKept).write(
      sealedTo: horse, cost: 14)
    let donkey = try BackupFixture.secret(Array("donkey".utf8))
    let error = #expect(throws: BackupError.self) {
      try BackupInput(fixture.root + "/p").opened(passphrase: donkey)
    }
    #expect(error?.reason.contains("passphrase is wrong") == true)
    #expect(try BackupInput(fixture.root + "/p").opened(passphrase: horse).check().suites == 1)
  }

  // MARK: Files that any holder of the public key can make

  @Test func contentThatIsCutOffChangesNothing() throws {
    let fixture = try fixture()
    let content = try fixture.content()
    // Every byte of the first records, and of the last one.
    for count in content.indices where count < 300 || count % 23 == 0 || count > content.count - 40 {
      let path = try fixture.forge(Array(content[..<count]))
      #expect(throws: BackupError.self, "\(count)") { try fixture.opened(path).check() }
    }
    for count in stride(from: 0, to: content.count, by: content.count / 10) {
      let path = try fixture.forge(Array(content[..<count]))
      #expect(throws: BackupError.self, "\(count)") { try fixture.restore(fixture.others, from: path) }
    }
    let longer = try fixture.forge(content + [0])
    #expect(throws: BackupError.self) { try fixture.restore(fixture.others, from: longer) }
    expectUnchanged(fixture, "cut off")
  }

  /// Any content ends with an error or a restore into the folders, never elsewhere or in a trap.
  @Test func forgedContentStaysInItsFolders() throws {
    let fixture = try fixture()
    let content = try fixture.content()
    let before = Files.all(fixture.folders.settings) + Files.all(fixture.folders.vault)
    for index in content.indices where index < 300 || index % 7 == 0 {
      var bad = content
      bad[index] ^= index % 2 == 0 ? 1 : 0x80
      let path = try fixture.forge(bad)
      _ = try? fixture.opened(path).check()
      if index < 64 || index % 133 == 0 { _ = try? fixture.restore(fixture.others, from: path) }
    }
    #expect(Files.all(fixture.folders.settings) + Files.all(fixture.folders.vault) == before)
    #expect(Files.names(fixture.root).sorted() == ["a", "b", "backup", "forged"])
  }

  @Test(arguments: ["../../escape.plist", "a/b.plist", "a\0b.plist", "noending", "/abs.plist"])
  func aNameThatLeadsElsewhereIsRefused(name: String) throws {
    let fixture = try fixture()
    func record(_ kind: UInt8, _ content: [UInt8]) -> [UInt8] {
      [kind] + (0..<4).map { UInt8(truncatingIfNeeded: content.count >> (24 - 8 * $0)) } + content
    }
    let time = [UInt8](repeating: 0, count: 12)
    let content =
      record(1, [1] + time) + record(2, time + Array(name.utf8)) + record(4, [1])
      + record(9, [0] + [0, 0, 0, 0, 0, 0, 0, 1] + [UInt8](repeating: 0, count: 16))
    let path = try fixture.forge(content)
    #expect(throws: BackupError.self) { try fixture.restore(fixture.others, from: path) }
    expectUnchanged(fixture, name)
  }

  @Test func aRecordThatSaysItIsHugeTakesNoMemory() throws {
    let fixture = try fixture()
    for size in [[0xFF, 0xFF, 0xFF, 0xFF], [0x7F, 0xFF, 0xFF, 0xFF], [0, 0x40, 0, 1]] as [[UInt8]] {
      let path = try fixture.forge([1] + size + [1])
      #expect(throws: BackupError.self) { try fixture.opened(path).check() }
    }
  }
}
