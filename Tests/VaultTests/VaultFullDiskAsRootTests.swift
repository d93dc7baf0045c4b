import Glibc
import Model
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
    let hasBallast = names(in: disk.fixture.directory).contains("vault.ballast")
    #expect(hasBallast == (megabytes > 8))
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
    if hasBallast { try engine.remove(items.dropFirst().map(\.id)) }
    #expect(try engine.items().count == (hasBallast ? 1 : 8))
  }

  @Test func aVaultOnAFullDiskOpensAndDeletes() throws {
    let disk = try SmallDisk(megabytes: 12)
    let ids = try disk.fixture.makeVault()
    #expect(names(in: disk.fixture.directory).contains("vault.ballast"))
    try disk.fill()
    let engine = try disk.fixture.open()
    #expect(try engine.bytes(of: ids[1]) == Array("secret of b".utf8))
    try engine.remove(ids)
    #expect(try engine.items().isEmpty)
    #expect(engine.problems().isEmpty)
  }

  @Test func onADiskWithoutRoomNoHalfVaultIsMade() throws {
    let disk = try SmallDisk(megabytes: 1)
    try disk.fill()
    #expect(failure { _ = try disk.fixture.open() } == .noSpace)
    unsafe unlink(disk.fixture.directory + "/filler")
    #expect(try disk.fixture.open().items().isEmpty)
  }

  @Test func theBallastComesBackWhenThereIsRoom() throws {
    let disk = try SmallDisk(megabytes: 12)
    let ids = try disk.fixture.makeVault()
    unsafe unlink(disk.fixture.directory + "/vault.ballast")
    try disk.fixture.open().remove([ids[0]])
    #expect(contents(of: disk.fixture.directory + "/vault.ballast").count == 2 << 20)
  }
}
