import Glibc
import KeyringHarness
import Testing

/// Section 8, with a Secret Service: an item that the vault seals before the service gets it.
@Suite(.serialized, .timeLimit(.minutes(3))) struct SealedItemTests {
  private static let item = "keychain/generic/S/A"
  private static let value = item + "/value"

  let bus: PrivateBus

  init() throws {
    bus = try PrivateBus()
    try bus.startKeyring()
  }

  private func withSealed(_ options: String..., body: (MountedKeyhole) throws -> Void) async throws {
    try await withWorld(environment: ["DBUS_SESSION_BUS_ADDRESS=\(bus.address)"]) { world in
      let keyhole = MountedKeyhole(world, options: ["keychain=secret-service"] + options)
      defer { keyhole.cleanUp() }
      try keyhole.start()
      try keyhole.check(
        "mkdir -p \(Self.item); setfattr -n user.keyhole.sealed -v true \(Self.item); echo s3cret > \(Self.value)"
      )
      try body(keyhole)
    }
  }

  private func lookup(_ attributes: String) throws -> String {
    try bus.run("secret-tool lookup \(attributes) || true")
  }

  @Test func everybodyElseGetsWhatOnlyTheVaultOpens() async throws {
    try await withSealed { keyhole in
      try keyhole.check("cat \(Self.value); stat -c %s \(Self.value)", prints: "s3cret6\n")
      try keyhole.check("keyhole get \(Self.value)", prints: "s3cret")
      #expect(try lookup("service S account A keyhole.sealed true").hasPrefix("keyhole-sealed:1:"))
      try keyhole.check(
        "getfattr -d --absolute-names \(Self.item) | grep sealed", prints: "user.keyhole.sealed=\"true\"\n")
      // A save keeps the seal, whichever way it is made.
      try keyhole.check("sed -i s/3/e/ \(Self.value); cat \(Self.value)", prints: "secret")
      try keyhole.check(
        "echo t > \(Self.item)/.new && mv \(Self.item)/.new \(Self.value); cat \(Self.value)", prints: "t")
      #expect(try lookup("service S account A").hasPrefix("keyhole-sealed:1:"))
      try keyhole.remount()
      try keyhole.check("cat \(Self.value); stat -c %s \(Self.value)", prints: "t1\n")
      try keyhole.check(
        "mv keychain/generic/S keychain/generic/T; cat keychain/generic/T/A/value", prints: "t")
      #expect(try lookup("service T account A").hasPrefix("keyhole-sealed:1:"))
      try keyhole.check("rm -r keychain/generic/T; ls keychain/generic", prints: "")
      try keyhole.check("keyhole doctor > /dev/null")
    }
  }

  @Test func attributeSealsAndUnsealsWhatIsThere() async throws {
    try await withSealed { keyhole in
      try keyhole.check(
        "setfattr -n user.keyhole.sealed -v false \(Self.item); cat \(Self.value)", prints: "s3cret")
      #expect(try lookup("service S account A") == "s3cret")
      try keyhole.check(
        "getfattr -n user.keyhole.sealed \(Self.item) 2>&1 | grep -c 'No such attribute'", prints: "1\n")
      try keyhole.refuses("setfattr -n user.keyhole.sealed -v maybe \(Self.item)", .invalid)
      try keyhole.world.check("keyhole attr \(Self.item) keyhole.sealed true")
      #expect(try lookup("service S account A").hasPrefix("keyhole-sealed:1:"))
      #expect(
        holds {
          (try? keyhole.sh("getfattr -n user.keyhole.sealed \(Self.item)").status) == 0
        })
      try keyhole.check("cat \(Self.value); stat -c %s \(Self.value)", prints: "s3cret6\n")
      try keyhole.check("setfattr -x user.keyhole.sealed \(Self.item)")
      #expect(try lookup("service S account A") == "s3cret")
      try keyhole.world.check("echo hush | keyhole set --sealed keychain/generic/S/B/value")
      #expect(try lookup("service S account B").hasPrefix("keyhole-sealed:1:"))
      try keyhole.world.check("keyhole get keychain/generic/S/B/value", prints: "hush")
    }
  }

  @Test func copiesKeepTheSeal() async throws {
    try await withSealed { keyhole in
      try keyhole.check(
        "cp -a keychain/generic/S keychain/generic/T; cat keychain/generic/T/A/value", prints: "s3cret")
      #expect(try lookup("service T account A").hasPrefix("keyhole-sealed:1:"))
      try keyhole.check(
        "tar --xattrs --xattrs-include='*' -cf $OUT/t.tar keychain/generic/S; rm -r keychain/generic/[ST]")
      try keyhole.check(
        "tar --xattrs --xattrs-include='*' -xf $OUT/t.tar; cat \(Self.value)", prints: "s3cret")
      #expect(try lookup("service S account A").hasPrefix("keyhole-sealed:1:"))
      try keyhole.world.check(
        "keyhole export --plain -o $OUT/e keychain; keyhole rm -r --yes keychain/generic/S; keyhole import $OUT/e"
      )
      #expect(try lookup("service S account A").hasPrefix("keyhole-sealed:1:"))
      try keyhole.world.check("keyhole get \(Self.value)", prints: "s3cret")
    }
  }

  @Test func nothingIsWeakenedByEditingTheItemThere() async throws {
    try await withSealed("auth-command=/bin/false") { keyhole in
      try keyhole.check("setfattr -n user.keyhole.access -v devicePasscode \(Self.item)")
      try keyhole.refuses("cat \(Self.value)", .denied)
      let path = try bus.run(
        "secret-tool search service S account A 2>&1 | sed -n 's/^\\[.*\\/\\(.*\\)\\]$/\\1/p'"
      ).split(separator: "\n")[0]
      func edit(_ attributes: String) throws {
        try bus.run(
          "gdbus call --session -d org.freedesktop.secrets -o /org/freedesktop/secrets/collection/login/\(path) "
            + "-m org.freedesktop.DBus.Properties.Set org.freedesktop.Secret.Item Attributes \"<\(attributes)>\""
        )
      }
      try edit("{'service': 'S', 'account': 'A'}")
      try keyhole.check(
        "getfattr --only-values -n user.keyhole.access \(Self.item)", prints: "devicePasscode")
      try keyhole.refuses("cat \(Self.value)", .denied)
      try keyhole.remount()
      try keyhole.refuses("cat \(Self.value)", .denied)
      try keyhole.refuses("setfattr -n user.keyhole.sealed -v false \(Self.item)", .denied)
      // Under another name it opens nothing.
      try edit("{'service': 'S', 'account': 'B', 'keyhole.sealed': 'true'}")
      #expect(holds { System.exists(keyhole / "keychain/generic/S/B") })
      try keyhole.refuses("cat keychain/generic/S/B/value", .io)
      try keyhole.refuses("echo x > keychain/generic/S/B/value", .io)
      try keyhole.check("keyhole status | grep -c 'another program has changed or moved it'", prints: "1\n")
    }
  }

  /// The passphrase holds what the keyring has open.
  @Test func lockedVaultIsENOKEYAndAttributesShow() async throws {
    try await withSealed { keyhole in
      try keyhole.check("mkdir -p keychain/generic/P/p; echo plain > keychain/generic/P/p/value")
      try keyhole.world.check("printf 'pw\\n' | keyhole passphrase --weak --cost 14 2> /dev/null")
      try keyhole.remount()
      try keyhole.refuses("cat \(Self.value)", .noKey)
      try keyhole.refuses("echo x > \(Self.value)", .noKey)
      try keyhole.check(
        "stat -c %s \(Self.value); getfattr --only-values -n user.service \(Self.item); cat keychain/generic/P/p/value",
        prints: "6\nSplain")
      #expect(try keyhole.world.sh("keyhole unlock", sending: Array("wrong\n".utf8)).status == 5)
      try keyhole.world.check("keyhole unlock", sending: Array("pw\n".utf8))
      try keyhole.check("cat \(Self.value)", prints: "s3cret")
      // Only the mount has unlocked it.
      try keyhole.world.check("keyhole get \(Self.value)", prints: "s3cret")
      try keyhole.refuses(
        "mkdir -p keychain/generic/P/q; setfattr -n user.keyhole.accessible -v whenPasscodeSetThisDeviceOnly keychain/generic/P/q; echo x > keychain/generic/P/q/value",
        .invalid)
      try keyhole.check(
        "setfattr -n user.keyhole.accessible -v whenPasscodeSetThisDeviceOnly \(Self.item); cat \(Self.value)",
        prints: "s3cret")
      // Without a passphrase there is nothing that such an item opens with.
      try keyhole.world.check("printf 'pw\\n\\n' | keyhole passphrase --weak --cost 14 2> /dev/null")
      #expect(
        holds {
          (try? keyhole.sh("cat \(Self.value)").error.contains("Input/output error")) == true
        })
      try keyhole.check("cat keychain/generic/P/p/value; rm -r keychain/generic/S", prints: "plain")
    }
  }

  @Test func passwordOfItsOwnIsHeldByTheSeal() async throws {
    try await withWorld(environment: ["DBUS_SESSION_BUS_ADDRESS=\(bus.address)"]) { world in
      try world.check(
        "cat > \(world.root)/decide; chmod +x \(world.root)/decide",
        sending: Array("#!/bin/sh\ncat \(world.root)/password\n".utf8))
      let keyhole = MountedKeyhole(
        world, options: ["keychain=secret-service", "auth-reuse=0", "auth-command=\(world.root)/decide"])
      defer { keyhole.cleanUp() }
      try keyhole.start()
      try world.check("echo staple > \(world.root)/password")
      try bus.run("secret-tool store --label=S service S account A", input: Array("s3cret".utf8))
      #expect(holds { System.exists(keyhole / Self.value) })
      try keyhole.check("setfattr -n user.keyhole.access -v applicationPassword \(Self.item)")
      #expect(try lookup("service S account A").hasPrefix("keyhole-sealed:1:"))
      try keyhole.check("cat \(Self.value); stat -c %s \(Self.value)", prints: "s3cret6\n")
      try keyhole.world.check("keyhole get \(Self.value)", prints: "s3cret")
      try keyhole.refuses("setfattr -n user.keyhole.sealed -v false \(Self.item)", .invalid)
      // The mount hands out no such password: the command asks for it where it runs.
      let terminal = try Terminal(
        ["/bin/sh", "-c", "keyhole migrate --from secret-service --to vault > $OUT/moved"],
        environment: world.environment, directory: keyhole.mount, errors: world.outside + "/errors")
      try terminal.wait(for: "assword:")
      try terminal.type("staple\r")
      let output = try terminal.finish()
      #expect(output.status == 0, "\(output)")
      #expect(try System.text(world.outside + "/moved") == "moved 1 item from secret-service to vault\n")
      #expect(try lookup("service S account A").isEmpty)
    }
  }

  @Test func migrationSealsWhereItIsToldTo() async throws {
    try await withWorld(environment: ["DBUS_SESSION_BUS_ADDRESS=\(bus.address)"]) { world in
      try world.check("printf v | env -u DBUS_SESSION_BUS_ADDRESS keyhole set keychain/generic/V/a/value")
      try world.check(
        "keyhole migrate --from vault --to secret-service --sealed",
        prints: "moved 1 item from vault to secret-service\n")
      #expect(try lookup("service V account a").hasPrefix("keyhole-sealed:1:"))
      try world.check("keyhole get keychain/generic/V/a/value", prints: "v")
      try world.check(
        "keyhole migrate --from secret-service --to vault",
        prints: "moved 1 item from secret-service to vault\n")
      try world.check("env -u DBUS_SESSION_BUS_ADDRESS keyhole get keychain/generic/V/a/value", prints: "v")
      #expect(try world.sh("keyhole migrate --from secret-service --to vault --sealed").status == 2)
    }
  }

  /// Killed at any moment, the item is there with its secret and its length.
  @Test func killWhileItIsSealedOrMovedLosesNothing() async throws {
    try await withSealed { keyhole in
      for round in 0..<12 {
        let storm = try Program(
          [
            "/bin/sh", "-c",
            "cd \(keyhole.mount) && while setfattr -n user.keyhole.sealed -v false \(Self.item) && mv keychain/generic/S keychain/generic/T && mv keychain/generic/T keychain/generic/S && setfattr -n user.keyhole.sealed -v true \(Self.item); do :; done",
          ], environment: keyhole.world.environment, directory: keyhole.world.outside, log: keyhole.world.log)
        _ = try? storm.waitForEnd(until: Deadline(in: .milliseconds(20 + 17 * round)))
        try keyhole.kill()
        storm.kill()
        _ = try? storm.waitForEnd(until: Deadline(in: .seconds(10)))
        try keyhole.start()
        let names = try keyhole.sh("ls keychain/generic").text
        #expect(["S\n", "T\n"].contains(names), "round \(round)")
        try keyhole.check(
          "cat keychain/generic/*/A/value; stat -c %s keychain/generic/*/A/value", prints: "s3cret6\n")
        if names == "T\n" { try keyhole.check("mv keychain/generic/T keychain/generic/S") }
      }
      try keyhole.check(
        "setfattr -n user.keyhole.sealed -v true \(Self.item); cat \(Self.value)", prints: "s3cret")
    }
  }
}
