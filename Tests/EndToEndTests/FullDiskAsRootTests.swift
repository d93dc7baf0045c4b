import Glibc
import Testing

/// Section 5: no room, and a folder that can't be written.
@Suite(
  .timeLimit(.minutes(1)), .enabled(if: Privileges.isRoot, "needs root: mounts a small disk for the stores"))
struct FullDiskAsRootTests {
  /// A mount whose stores are on disks of their own of this many MiB.
  static func withSmallDisk(_ size: Int, body: (MountedKeyhole) throws -> Void) async throws {
    try await withWorld { world in
      let disks = [world.config, world.data, world.state]
      for disk in disks {
        _ = try System.check { unsafe mount("tmpfs", disk, "tmpfs", 0, "size=\(size)m,mode=700") }
      }
      defer { for disk in disks { unsafe umount2(disk, Int32(MNT_DETACH)) } }
      let keyhole = MountedKeyhole(world, options: ["keychain=vault"])
      defer { keyhole.cleanUp() }
      try await withTaskCancellationHandler {
        try keyhole.start()
        try body(keyhole)
      } onCancel: {
        keyhole.abort()
      }
    }
  }

  /// Takes all the room that is left, to the last byte.
  static func fill(_ folder: String) throws {
    let filler = try OpenFile(folder + "/filler", O_WRONLY | O_CREAT | O_APPEND)
    for count in [1 << 20, 4096, 1] {
      while failure({ try filler.write([UInt8](repeating: 0, count: count)) }) == nil {}
    }
  }

  @Test func settingThatHasNoRoomLeavesTheOldOne() async throws {
    try await Self.withSmallDisk(24) { keyhole in
      try keyhole.check("mkdir defaults/s; echo old > defaults/s/k; sync defaults/s/k")
      let before = System.files(below: keyhole.world.config)
      try Self.fill(keyhole.world.config)
      let file = try OpenFile(keyhole / "defaults/s/k", O_WRONLY | O_TRUNC)
      let bytes = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
      let errors = [
        failure { try file.write(bytes) }, failure { try file.sync() }, failure { try file.close() },
      ]
      #expect(errors.contains(.noSpace))
      #expect(try keyhole.cat("defaults/s/k") == "old\n")
      #expect(failure { try System.write(keyhole / "defaults/s/new", bytes) } == .noSpace)
      try keyhole.check("df --output=avail . | tail -1 | tr -d ' '", prints: "0\n")
      #expect(System.files(below: keyhole.world.config).subtracting(before) == ["filler"])
      try keyhole.crash()
      #expect(try keyhole.cat("defaults/s/k") == "old\n")
      try System.unlink(keyhole.world.config + "/filler")
      try keyhole.check("echo new > defaults/s/k; cat defaults/s/k", prints: "new\n")
    }
  }

  @Test func secretThatHasNoRoomLeavesTheOldOne() async throws {
    try await Self.withSmallDisk(48) { keyhole in
      try keyhole.check(
        "mkdir -p keychain/generic/s/{p,q,r}; for i in p q; do echo old$i > keychain/generic/s/$i/value; done"
      )
      try Self.fill(keyhole.world.data)
      // Additions must not use up the reserve that removals need.
      let bytes = [UInt8](repeating: 0xFE, count: 1 << 20)
      var refused = false
      for number in 0..<40 where !refused {
        let item = keyhole / "keychain/generic/s/n\(number)"
        refused =
          failure { try System.mkdir(item) } == .noSpace
          || failure { try System.write(item + "/value", bytes) } == .noSpace
      }
      #expect(refused)
      #expect(failure { try System.write(keyhole / "keychain/generic/s/p/value", bytes) } == .noSpace)
      #expect(try keyhole.cat("keychain/generic/s/p/value") == "oldp")
      // Removing works, and makes the way free.
      try keyhole.check(
        "rm -r keychain/generic/s/q; ls keychain/generic/s | grep -c q || true", prints: "0\n")
      try keyhole.crash()
      #expect(try keyhole.cat("keychain/generic/s/p/value") == "oldp")
      #expect(!System.exists(keyhole / "keychain/generic/s/q"))
      try System.unlink(keyhole.world.data + "/filler")
      try keyhole.check(
        "echo new > keychain/generic/s/p/value; cat keychain/generic/s/p/value", prints: "new")
    }
  }

  /// A full disk keeps nothing from being removed, and what is removed is kept, or stays and says so.
  @Test func whatIsRemovedIsKeptOrStays() async throws {
    try await Self.withSmallDisk(4) { keyhole in
      let world = keyhole.world
      try world.check(
        "for i in 1 2 3 4 5 6 7 8 9; do head -c 3000 /dev/urandom | base64 | keyhole set keychain/generic/s/i$i; done"
      )
      for folder in [world.data, world.state] { try Self.fill(folder) }
      try keyhole.check("rm -r keychain/generic/s/i*; ls keychain/generic/s | wc -l", prints: "0\n")
      try world.check("keyhole history keychain/generic/s | wc -l", prints: "9\n")
      // A part of the reserve is left for removing for good.
      try world.check("keyhole history --purge --all | cut -d ' ' -f 1", prints: "deleted\n")
      try world.check("keyhole history keychain/generic/s 2> /dev/null | wc -l", prints: "0\n")
    }
  }

  @Test func withoutAReserveNothingIsRemovedUnseen() async throws {
    try await Self.withSmallDisk(4) { keyhole in
      let world = keyhole.world
      try world.check("for i in 1 2 3; do echo $i | keyhole set keychain/generic/s/i$i; done")
      try world.check("for i in 1 2 3; do echo $i | keyhole set defaults/s/k$i; done")
      try System.unlink(world.data + "/keyhole/vault.reserve")
      for folder in [world.data, world.state] { try Self.fill(folder) }
      for path in ["keychain/generic/s/i1/value", "defaults/s/k1"] {
        #expect(failure { try System.unlink(keyhole / path) } == .noSpace)
        #expect(System.exists(keyhole / path))
        try world.check("keyhole status | grep -c '\(path) .*keyhole rm --purge'", prints: "1\n")
      }
      try world.check("keyhole rm --purge defaults/s/k1; keyhole ls defaults/s", prints: "k2\nk3\n")
      try world.check("keyhole history defaults/s", prints: "")
    }
  }

  /// The disk of the settings has room, that of their versions has none.
  @Test func aSettingIsNotReplacedWhereItsValueCanNotBeKept() async throws {
    try await Self.withSmallDisk(4) { keyhole in
      let world = keyhole.world
      try world.check("for i in 1 2; do echo $i | keyhole set defaults/s/k$i; done")
      try Self.fill(world.state)
      #expect(failure { try System.write(keyhole / "defaults/s/k1", "3") } == .noSpace)
      let command = try world.sh("keyhole set defaults/s/k1 3")
      #expect(
        command.status == 1 && command.error.contains("nothing was stored") && command.error.contains("undo"),
        "\(command)")
      try world.check("keyhole get defaults/s/k1", prints: "1\n")
      // Nothing is lost with what is new.
      try world.check("keyhole set defaults/s/new 5; keyhole get defaults/s/new", prints: "5\n")
      try System.unlink(world.state + "/filler")
      try world.check(
        "keyhole set defaults/s/k1 3; keyhole undo defaults/s/k1 > /dev/null; keyhole get defaults/s/k1",
        prints: "1\n")
    }
  }

  @Test func readOnlyFolderRefusesAtOpen() async throws {
    try await Self.withSmallDisk(16) { keyhole in
      try keyhole.check("mkdir defaults/s; echo old > defaults/s/k")
      _ = try System.check {
        unsafe mount("tmpfs", keyhole.world.config, "tmpfs", UInt(MS_REMOUNT | MS_RDONLY), "")
      }
      for _ in 0..<2 {
        try keyhole.check("cat defaults/s/k", prints: "old\n")
        #expect(failure { _ = try OpenFile(keyhole / "defaults/s/k", O_WRONLY) } == .readOnly)
        #expect(failure { try System.write(keyhole / "defaults/s/new", "x") } == .readOnly)
        #expect(failure { try System.mkdir(keyhole / "defaults/t") } == .readOnly)
        try keyhole.refuses("echo new > defaults/s/k", .readOnly)
        try keyhole.remount()
      }
      _ = try System.check { unsafe mount("tmpfs", keyhole.world.config, "tmpfs", UInt(MS_REMOUNT), "") }
      try keyhole.check("echo new > defaults/s/k; cat defaults/s/k", prints: "new\n")
    }
  }

  @Test func readOnlyVaultRefusesAtOpen() async throws {
    try await Self.withSmallDisk(48) { keyhole in
      try keyhole.check(
        "mkdir -p keychain/generic/s/p; echo old > keychain/generic/s/p/value")
      // While the vault is open for writing, its disk can't be made read-only.
      try keyhole.unmount()
      _ = try System.check {
        unsafe mount("tmpfs", keyhole.world.data, "tmpfs", UInt(MS_REMOUNT | MS_RDONLY), "")
      }
      try keyhole.start()
      #expect(failure { _ = try OpenFile(keyhole / "keychain/generic/s/p/value", O_WRONLY) } == .readOnly)
      try keyhole.refuses("echo new > keychain/generic/s/p/value", .readOnly)
      try keyhole.refuses("mkdir keychain/generic/s/q; echo new > keychain/generic/s/q/value", .readOnly)
      try keyhole.check("cat keychain/generic/s/p/value", prints: "old")
      _ = try System.check { unsafe mount("tmpfs", keyhole.world.data, "tmpfs", UInt(MS_REMOUNT), "") }
      try keyhole.remount()
      try keyhole.check(
        "echo new > keychain/generic/s/p/value; cat keychain/generic/s/p/value", prints: "new")
    }
  }
}
