import Glibc
import KeyringHarness
import Testing

/// Section 10: "the keychain is the running mount's", also where only the mount has unlocked it.
@Suite(.timeLimit(.minutes(10))) struct MountedVaultTests {
  static let item = "keychain/generic/svc/acc"

  /// With a passphrase, which no command and no program gets.
  private static func withVault(
    body: (MountedKeyhole) throws -> Void
  ) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir -p \(item); printf one > \(item)/value")
      try keyhole.world.check(
        "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null", within: LockTests.patience)
      try body(keyhole)
    }
  }

  @Test func everyCommandUsesWhatTheMountHasUnlocked() async throws {
    try await Self.withVault { keyhole in
      let world = keyhole.world
      let watcher = Watcher(try world.launch("exec keyhole watch keychain 2>&1"))
      try world.check("keyhole ls keychain/generic; keyhole get \(Self.item)/value", prints: "svc\none")
      var number = 0
      repeat {
        number += 1
        try keyhole.check("setfattr -n user.probe -v \(number) \(Self.item)")
      } while (try? watcher.program.line(within: .milliseconds(100))) == nil

      try world.check("printf two | keyhole set \(Self.item)/value")
      try keyhole.check("cat \(Self.item)/value", prints: "two")
      _ = try watcher.until("modified", Self.item)
      try world.check(
        "keyhole attr \(Self.item) comment hello; keyhole attr \(Self.item) comment", prints: "hello\n")
      try keyhole.check("getfattr --only-values -n user.comment \(Self.item)", prints: "hello")
      try world.check("EDITOR='sed -i s/two/three/' keyhole edit \(Self.item)/value")
      try world.check("keyhole export --plain -o \"$OUT/all.json\" keychain; keyhole rm \(Self.item)/value")
      try keyhole.check("ls keychain/generic", prints: "svc\n")
      try keyhole.refuses("cat \(Self.item)/value", .missing)
      _ = try watcher.until("deleted", Self.item)
      try world.check("keyhole import \"$OUT/all.json\"")
      try keyhole.check("cat \(Self.item)/value; rmdir keychain/generic/* 2>/dev/null; :", prints: "three")
      try world.check("keyhole rm -r --yes keychain/generic/svc; keyhole ls keychain/generic")
      try keyhole.check("ls keychain/generic/svc", prints: "")
    }
  }

  @Test func flagsAndRulesHoldForWhoeverAsks() async throws {
    try await Self.withVault { keyhole in
      let world = keyhole.world
      try world.check(
        "keyhole attr \(Self.item) keyhole.programs \"deny $(readlink -f \"$(command -v keyhole)\")\"")
      let get = try world.sh("keyhole get \(Self.item)/value")
      #expect(get.status == 5 && get.text.isEmpty && get.error.contains("denied"))
      #expect(try world.sh("keyhole attr --remove \(Self.item) keyhole.programs").status == 5)
      // Another program is not kept out.
      try keyhole.check("cat \(Self.item)/value", prints: "one")
      try world.check("keyhole rm \(Self.item)/value")
    }
  }

  @Test func lockOfTheMountIsEverybodys() async throws {
    try await Self.withVault { keyhole in
      let world = keyhole.world
      let watcher = Watcher(try world.launch("exec WrapperProgram reveal svc two"))
      _ = try watcher.until("one")
      try world.check("keyhole lock")
      for command in ["get \(Self.item)/value", "attr \(Self.item) comment x"] {
        let refused = try world.sh("keyhole \(command)")
        #expect(refused.status == 4 && refused.text.isEmpty && refused.error.contains("locked"))
      }
      try world.check("keyhole ls \(Self.item)", prints: "value\n")
      try world.check(
        "echo horse | keyhole unlock; keyhole get \(Self.item)/value", prints: "one",
        within: LockTests.patience)
      // The program has got both changes, and gets later ones.
      try world.check("WrapperProgram secret svc two")
      _ = try watcher.until("two")
      try keyhole.check("cat \(Self.item)/value", prints: "two")
      // Without the mount the item can't be read.
      try keyhole.unmount()
      #expect(try world.sh("keyhole get \(Self.item)/value").error.contains("locked"))
    }
  }

  @Test func wrappersReadWriteDeleteAndHear() async throws {
    try await Self.withVault { keyhole in
      let world = keyhole.world
      try world.check("WrapperProgram secret app one; WrapperProgram get app", prints: "one\n")
      let watcher = Watcher(try world.launch("exec WrapperProgram reveal app last"))
      _ = try watcher.until("one")
      try keyhole.check("printf two > keychain/generic/app/%/value")
      _ = try watcher.until("two")
      try world.check("printf three | keyhole set keychain/generic/app/%/value")
      _ = try watcher.until("three")
      try world.check("WrapperProgram secret app ''")
      _ = try watcher.until("nil")
      try keyhole.refuses("cat keychain/generic/app/%/value", .missing)
      try world.check("WrapperProgram secret app last")
      _ = try watcher.until("last")
    }
  }

  @Test func programIsTheOneWhoAsks() async throws {
    try await withWorld { world in
      try world.check(
        """
        printf '#!/bin/sh\\nprintf "%%s\\\\n" "$2" >> "$OUT/asked"; [ ! -e "$OUT/no" ]' > "$OUT/ask"; chmod +x "$OUT/ask"
        """)
      let keyhole = MountedKeyhole(
        world, options: ["keychain=vault", "auth-reuse=0", "auth-command=\(world.outside)/ask"])
      defer { keyhole.cleanUp() }
      try keyhole.start()
      try keyhole.check("mkdir -p keychain/generic/app/%; printf one > keychain/generic/app/%/value")
      try world.check(
        "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null", within: LockTests.patience)
      try world.check("keyhole attr keychain/generic/app/% keyhole.access userPresence")
      try world.check("WrapperProgram get app", prints: "one\n")
      try world.check("basename \"$(tail -1 \"$OUT/asked\")\"; touch \"$OUT/no\"", prints: "WrapperProgram\n")
      #expect(try !world.sh("WrapperProgram get app").text.contains("one"))
      #expect(try world.sh("keyhole get keychain/generic/app/%/value").status == 5)
    }
  }

  @Test func itemsMoveFromWhatTheMountHasUnlocked() async throws {
    let bus = try PrivateBus()
    try bus.startKeyring()
    try await withKeyhole(environment: ["DBUS_SESSION_BUS_ADDRESS=\(bus.address)"]) { keyhole in
      try keyhole.check("mkdir -p \(Self.item); printf one > \(Self.item)/value")
      try keyhole.world.check(
        "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null", within: LockTests.patience)
      try keyhole.world.check(
        "keyhole migrate --from vault --to secret-service",
        prints: "moved 1 item from vault to secret-service\n")
      #expect(try bus.run("secret-tool lookup service svc account acc") == "one")
      try keyhole.check("ls \(Self.item) 2> \"$OUT/none\"; :", prints: "")
      try keyhole.world.check(
        "keyhole migrate --from secret-service --to vault",
        prints: "moved 1 item from secret-service to vault\n")
      try keyhole.check("cat \(Self.item)/value", prints: "one")
    }
    withExtendedLifetime(bus) {}
  }

  @Test func anotherVaultOfTheMountIsEverybodys() async throws {
    try await withWorld { world in
      let keyhole = MountedKeyhole(world, options: ["keychain=vault", "vault=\(world.outside)/vault"])
      defer { keyhole.cleanUp() }
      try keyhole.start()
      try keyhole.check("mkdir -p keychain/generic/svc/%; printf one > keychain/generic/svc/%/value")
      let look = "keyhole get keychain/generic/svc/%/value; WrapperProgram get svc"
      try world.check(look, prints: "oneone\n")
      try world.check(
        "WrapperProgram secret svc two; keyhole get keychain/generic/svc/%/value", prints: "two")
      try keyhole.check("cat keychain/generic/svc/%/value", prints: "two")
      let watcher = Watcher(try world.launch("exec WrapperProgram reveal svc three"))
      _ = try watcher.until("two")
      try keyhole.check("printf three > keychain/generic/svc/%/value")
      _ = try watcher.until("three")
      // The passphrase is that vault's, and the mount the only one that has it.
      try world.check(
        "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null", within: LockTests.patience)
      try world.check(look, prints: "threethree\n")
      try world.check("test ! -e \"$DATA/keyhole/vault.db\"")
      try keyhole.unmount()
      // Without the mount it is the user's own.
      #expect(try world.sh("keyhole get keychain/generic/svc/%/value").error.contains("no such file"))
    }
  }
}
