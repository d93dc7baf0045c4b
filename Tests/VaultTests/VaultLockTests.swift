import Crypto
import Glibc
import Model
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultDatabase
@testable import VaultRecords

/// Slots, passphrases, and what a lock takes away.
@Suite(.timeLimit(.minutes(2))) struct VaultLockTests {
  private let fixture: VaultFixture

  init() throws {
    fixture = try VaultFixture()
  }

  private func change(
    _ engine: VaultEngine, to key: VaultKey, _ new: String, present: String = ""
  ) throws {
    try engine.change(
      to: key, KeychainSamples.secret(new), present: KeychainSamples.secret(present), cost: .least)
  }

  private func unlock(_ engine: VaultEngine, _ passphrase: String) throws {
    try engine.unlock(KeychainSamples.secret(passphrase))
  }

  @Test(arguments: [VaultKey.passphrase, .passphraseAndKeyFile])
  func passphraseOpensTheVault(key: VaultKey) throws {
    try fixture.makeVault(["a"])
    try change(try fixture.open(), to: key, "correct horse")
    let engine = try fixture.open()
    #expect(engine.needsPassphrase && engine.lockState == .sealed)
    #expect(throws: StoreError.locked) { _ = try engine.items() }
    #expect(throws: StoreError.locked) { try unlock(engine, "") }
    #expect(throws: StoreError.rejected) { try unlock(engine, "correct hors") }
    #expect(engine.lockState == .sealed)
    try unlock(engine, "correct horse")
    let item = try #require(try engine.items().first)
    #expect(try engine.bytes(of: item.id) == Array("secret of a".utf8))
  }

  @Test func passphraseAndKeyFileNeedBoth() throws {
    try fixture.makeVault(["a"])
    try change(try fixture.open(), to: .passphraseAndKeyFile, "p")
    let key = contents(of: fixture.key)
    try write(key.map { ~$0 }, to: fixture.key)
    #expect(throws: StoreError.rejected) { try unlock(try fixture.open(), "p") }
    unsafe unlink(fixture.key)
    #expect(failure { try unlock(try fixture.open(), "p") }?.kind == "accessDenied")
    try write(key, to: fixture.key)
    try unlock(try fixture.open(), "p")
  }

  @Test func passphraseAloneNeedsNoKeyFile() throws {
    try fixture.makeVault(["a"])
    try change(try fixture.open(), to: .passphrase, "p")
    unsafe unlink(fixture.key)
    let engine = try fixture.open()
    try unlock(engine, "p")
    #expect(try engine.items().count == 1)
    try change(engine, to: .keyFile, "", present: "p")
    #expect(try fixture.open().items().count == 1)
  }

  @Test func changedPassphraseReplacesTheOldOne() throws {
    try fixture.makeVault(["a"])
    let engine = try fixture.open()
    try change(engine, to: .passphraseAndKeyFile, "old")
    #expect(throws: StoreError.rejected) { try change(engine, to: .passphrase, "new", present: "x") }
    #expect(throws: StoreError.locked) { try change(engine, to: .passphrase, "new") }
    let sealed = try fixture.number("SELECT sum(length(sealed)) FROM secret")
    try change(engine, to: .passphraseAndKeyFile, "new", present: "old")
    #expect(try fixture.number("SELECT sum(length(sealed)) FROM secret") == sealed)
    #expect(try fixture.number("SELECT count(*) FROM slot") == 1)
    #expect(throws: StoreError.rejected) { try unlock(try fixture.open(), "old") }
    try unlock(try fixture.open(), "new")
    try change(engine, to: .keyFile, "", present: "new")
    #expect(try fixture.open().lockState == .open)
  }

  @Test func emptyPassphraseIsNone() throws {
    let engine = try fixture.open()
    #expect(failure { try change(engine, to: .passphrase, "") }?.kind == "invalidValue")
    #expect(!engine.needsPassphrase)
  }

  @Test func lockKeepsNamesAndWhatOutlastsIt() throws {
    let engine = try fixture.open()
    try change(engine, to: .passphrase, "p")
    var ids: [Accessibility: ItemID] = [:]
    for accessibility in Accessibility.allCases {
      var item = KeychainSamples.generic(ExactString(accessibility.rawValue))
      item.accessibility = accessibility
      ids[accessibility] = try engine.add(item, "secret").id
    }
    try engine.lock()
    #expect(engine.lockState == .locked)
    #expect(try engine.items().count == 5)
    for (accessibility, id) in ids {
      let isReadable = (try? engine.bytes(of: id)) == Array("secret".utf8)
      #expect(isReadable == accessibility.survivesLock, "\(accessibility)")
      let isWritable = (try? engine.set(id, Array("secret".utf8))) != nil
      #expect(isWritable == accessibility.survivesLock, "\(accessibility)")
      #expect(isReadable || failure { _ = try engine.bytes(of: id) } == .locked)
    }
    #expect(throws: StoreError.locked) { try engine.add(KeychainSamples.generic("new"), "x") }
    // A failed call leaves nothing open.
    let lasting = try #require(ids[.afterFirstUnlock])
    #expect(try engine.bytes(of: lasting) == Array("secret".utf8))
    try engine.remove([try #require(ids[.whenUnlocked])])
    #expect(throws: StoreError.rejected) { try unlock(engine, "q") }
    #expect(engine.lockState == .locked)
    try unlock(engine, "p")
    #expect(try engine.bytes(of: try #require(ids[.whenUnlockedThisDeviceOnly])) == Array("secret".utf8))
  }

  @Test func withoutPassphraseNothingIsKeptThatNeedsOne() throws {
    let engine = try fixture.open()
    try change(engine, to: .passphrase, "p")
    var item = KeychainSamples.generic("a")
    item.accessibility = .whenPasscodeSetThisDeviceOnly
    let id = try engine.add(item, "secret").id
    try engine.add(KeychainSamples.generic("b"), "secret")
    try change(engine, to: .passphrase, "q", present: "p")
    #expect(try engine.bytes(of: id) == Array("secret".utf8))
    try change(engine, to: .keyFile, "", present: "q")
    #expect(try engine.items().map(\.identity.folder) == ["b"])
  }

  @Test func otherProcessSeesTheNewPassphraseAtItsNextUnlock() throws {
    let (first, second) = (try fixture.open(), try fixture.open())
    let id = try first.add(KeychainSamples.generic("a"), "secret").id
    #expect(try second.items().count == 1)
    try change(first, to: .passphrase, "p")
    #expect(second.needsPassphrase)
    // Its keys open nothing of the vault any more.
    #expect(throws: StoreError.locked) { _ = try second.secret(of: id) }
    #expect(throws: StoreError.locked) { try second.add(KeychainSamples.generic("b"), "secret") }
    #expect(second.lockState == .sealed)
    #expect(throws: StoreError.locked) { try unlock(second, "") }
    try unlock(second, "p")
    #expect(try second.changes().items()?.count == 1)
    #expect(try second.bytes(of: id) == Array("secret".utf8))
    try change(first, to: .keyFile, "", present: "p")
    #expect(try second.bytes(of: id) == Array("secret".utf8))
    #expect(second.lockState == .open)
  }

  /// A memory image of the process once it is locked; memfd_secret(2)'s pages are in none.
  @Test func memoryOfALockedVaultHasNoKey() throws {
    let engine = try fixture.open()
    try change(engine, to: .passphrase, "correct horse battery staple")
    try engine.add(KeychainSamples.generic("a"), "secret")
    try engine.lock()
    try unlock(engine, "correct horse battery staple")
    try engine.lock()
    let image = fixture.root + "/image"
    try dumpMemory(to: image)
    let keys = try keysOfVault("correct horse battery staple")
    for (name, key) in keys { #expect(occurrences(of: key, in: image) == 0, "\(name)") }
    // The search finds what is there: now the test itself holds them.
    try dumpMemory(to: image)
    for (name, key) in keys { #expect(occurrences(of: key, in: image) > 0, "\(name)") }
  }

  /// The master key and the class key, by the document.
  private func keysOfVault(_ passphrase: String) throws -> [(String, [UInt8])] {
    let file = try VaultFile(opening: VaultDirectory(fixture.directory, state: fixture.state))
    let opened = try SlotOpener(file, KeychainSamples.secret(passphrase)).open(file.slots())[0].keys
    let ring = ClassKeyring(try VaultKeys(opened, file.header), file.directory)
    var classKey: [UInt8] = []
    try file.connection.run { database in
      classKey = unsafe try ring.key(1, .whenUnlocked, database).withUnsafeBytes { unsafe Array($0) }
    }
    let passcode = try #require(opened.passcode)
    return [
      ("master", unsafe opened.master.withUnsafeBytes { unsafe Array($0) }), ("class", classKey),
      ("passcode", unsafe passcode.withUnsafeBytes { unsafe Array($0) }),
    ]
  }

  private func dumpMemory(to path: String) throws {
    unsafe unlink(path)
    let memory = unsafe open("/proc/self/mem", O_RDONLY)
    let image = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
    try #require(memory >= 0 && image >= 0)
    defer {
      close(memory)
      close(image)
    }
    let maps = String(decoding: contents(of: "/proc/self/maps"), as: UTF8.self)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    defer { unsafe buffer.deallocate() }
    for line in maps.split(separator: "\n") {
      let fields = line.split(separator: " ")
      let ends = fields[0].split(separator: "-").compactMap { Int($0, radix: 16) }
      // Only what can hold data; the buffer would find itself.
      guard ends.count == 2, fields[1].hasPrefix("rw") else { continue }
      for at in stride(from: ends[0], to: ends[1], by: buffer.count) {
        let count = unsafe pread(memory, buffer.baseAddress, min(buffer.count, ends[1] - at), at)
        if count > 0 { _ = unsafe Glibc.write(image, buffer.baseAddress, count) }
      }
    }
    unsafe wipe(buffer)
  }

  /// Of the key's second half: the first bytes of freed memory are soon used again.
  private func occurrences(of key: [UInt8], in path: String) -> Int {
    let needle = Array(key.suffix(16))
    let image = contents(of: path)
    return unsafe image.withUnsafeBytes { bytes in
      var (count, at) = (0, 0)
      while let base = bytes.baseAddress, at + needle.count <= bytes.count,
        let found = unsafe memchr(base + at, Int32(needle[0]), bytes.count - needle.count + 1 - at)
      {
        if unsafe memcmp(found, needle, needle.count) == 0 { count += 1 }
        at = unsafe UnsafeRawPointer(found) - base + 1
      }
      return count
    }
  }
}
