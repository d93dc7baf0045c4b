import Glibc
import Model
import Platform
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import Vault

/// A small disk of its own, for the vault's folder.
private final class SmallDisk {
  let fixture: VaultFixture

  init(megabytes: Int) throws {
    fixture = try VaultFixture()
    try #require(unsafe mkdir(fixture.directory, 0o700) == 0)
    let options = "mode=0700,size=\(megabytes)m"
    try #require(unsafe mount("tmpfs", fixture.directory, "tmpfs", 0, options) == 0)
  }

  /// One of ext4, in a file.
  init(megabytes: Int, blockSize: Int) throws {
    fixture = try VaultFixture()
    try #require(unsafe mkdir(fixture.directory, 0o700) == 0)
    let script = """
      truncate -s \(megabytes)M "$0.image" && mkfs.ext4 -q -b \(blockSize) "$0.image" &&
      mount -o loop "$0.image" "$0" && rmdir "$0/lost+found" && chmod 700 "$0"
      """
    try #require(run(["/bin/sh", "-c", script, fixture.directory]) == 0)
  }

  deinit {
    // Lazily: the engine may close its files later.
    unsafe umount2(fixture.directory, Int32(MNT_DETACH))
  }

  /// Leaves no room, but for what is inside files.
  func fill() throws {
    let number = unsafe open(fixture.directory + "/filler", O_WRONLY | O_CREAT, 0o600)
    try #require(number >= 0)
    defer { close(number) }
    let bytes = [UInt8](repeating: 1, count: 4096)
    while unsafe Glibc.write(number, bytes, bytes.count) > 0 {}
  }
}

@Suite(.enabled(if: geteuid() == 0, "mounts need root")) struct VaultFullDiskAsRootTests {
  @Test(arguments: [1, 4, 12]) func aFullDiskKeepsTheOldValueAndDeletes(_ megabytes: Int) throws {
    let disk = try SmallDisk(megabytes: megabytes)
    let engine = try disk.fixture.open()
    let items = try (0..<8).map { index in
      try engine.add(KeychainSamples.generic(ExactString("\(index)")), String(repeating: "x", count: 9000))
    }
    #expect(names(in: disk.fixture.directory).contains("vault.reserve"))
    try disk.fill()
    var refused = false
    for round in 0..<200 where !refused {
      let error = failure { try engine.set(items[0].id, [UInt8](repeating: UInt8(round), count: 200_000)) }
      refused = error == .noSpace
      #expect(error == nil || refused)
    }
    #expect(refused)
    #expect(try engine.bytes(of: items[1].id) == [UInt8](repeating: 0x78, count: 9000))
    #expect(try engine.items().count == 8)
    try engine.remove(items.dropFirst().map(\.id))
    #expect(try engine.items().count == 1)
  }

  @Test func aVaultOnAFullDiskOpensAndDeletes() throws {
    let disk = try SmallDisk(megabytes: 12)
    let ids = try disk.fixture.makeVault()
    #expect(names(in: disk.fixture.directory).contains("vault.reserve"))
    try disk.fill()
    let engine = try disk.fixture.open()
    #expect(try engine.bytes(of: ids[1]) == Array("secret of b".utf8))
    try engine.remove(ids)
    #expect(try engine.items().isEmpty)
    #expect(engine.problems().isEmpty)
  }

  /// SQLite's shared memory has holes there, and a store into one ends the process.
  @Test func aFullDiskWithSmallBlocksIsNoBusError() throws {
    let disk = try SmallDisk(megabytes: 12, blockSize: 1024)
    let ids = try disk.fixture.makeVault()
    try disk.fill()
    let engine = try disk.fixture.open()
    #expect(try engine.bytes(of: ids[1]) == Array("secret of b".utf8))
    try engine.remove(ids)
    #expect(try engine.items().isEmpty)
  }

  @Test func aDiskThatBecameReadOnlyRefusesBeforeAWrite() throws {
    let disk = try SmallDisk(megabytes: 12, blockSize: 4096)
    let engine = try disk.fixture.open()
    let item = try engine.add(KeychainSamples.generic("a"), "old")
    try engine.requireWritable()
    // The state of ext4 after an error of the disk.
    try #require(unsafe mount(nil, disk.fixture.directory, nil, UInt(MS_REMOUNT), "abort") == 0)
    #expect(failure { try engine.requireWritable() }?.errno.rawValue == EROFS)
    #expect(failure { try engine.set(item.id, [1]) }?.errno.rawValue == EROFS)
    #expect(try engine.bytes(of: item.id) == Array("old".utf8))
    #expect(engine.problems().contains { $0.subject == disk.fixture.directory })
  }

  @Test func onADiskWithoutRoomNoHalfVaultIsMade() throws {
    let disk = try SmallDisk(megabytes: 1)
    try disk.fill()
    #expect(failure { _ = try disk.fixture.open() } == .noSpace)
    unsafe unlink(disk.fixture.directory + "/filler")
    #expect(try disk.fixture.open().items().isEmpty)
  }

  @Test func theReserveComesBackWhenThereIsRoom() throws {
    let disk = try SmallDisk(megabytes: 12)
    let ids = try disk.fixture.makeVault()
    unsafe unlink(disk.fixture.directory + "/vault.reserve")
    try disk.fixture.open().remove([ids[0]])
    #expect(contents(of: disk.fixture.directory + "/vault.reserve").count == 2 << 20)
  }
}

/// Runs a program to its end: its exit code.
private func run(_ words: [String]) -> Int32 {
  var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
  defer { unsafe arguments.forEach { unsafe free($0) } }
  var (process, status) = (pid_t(), Int32(-1))
  guard unsafe posix_spawn(&process, words[0], nil, nil, &arguments, environ) == 0 else { return -1 }
  while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
  return status
}
