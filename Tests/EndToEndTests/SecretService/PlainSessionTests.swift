import KeyringHarness
import Testing

/// A mount whose keyring offers sessions without encryption only.
@Suite(.serialized, .timeLimit(.minutes(3))) struct PlainSessionTests: KeyringMountTesting {
  let bus: PrivateBus

  init() throws { bus = try Self.keyring() }

  @Test func plainSessionIsTakenOnlyWhereTheMountAllowsIt() async throws {
    try bus.stopKeyring()
    try bus.startStandIn(.plain)
    let value = "$MOUNT/keychain/generic/S/A/value"
    try await withWorld(environment: [address]) { world in
      let refused = try world.sh("keyhole mount -o keychain=secret-service \"$MOUNT\"")
      #expect(refused.status == 1)
      #expect(refused.error.hasSuffix("`keyhole config plain-session true` from now on\n"), "\(refused)")
    }
    try await withKeyhole("keychain=auto", environment: [address]) { keyhole in
      try keyhole.check("jq -r .keychain $MOUNT/.keyhole/status", prints: "vault\n")
      try keyhole.check("keyhole status | grep -c 'offers no encrypted session'", prints: "1\n")
    }
    try await withKeyhole("keychain=secret-service", "plain-session", environment: [address]) { keyhole in
      try keyhole.check("cat \(value); echo new > \(value); cat \(value)", prints: "s3cretnew")
    }
  }

  /// The setting lies in the vault, also where that is not the keychain.
  @Test func plainSessionIsTakenWhereTheVaultAllowsIt() async throws {
    try bus.stopKeyring()
    try bus.startStandIn(.plain)
    try await withWorld(environment: [address]) { world in
      let mount = "keyhole mount -q -o keychain=secret-service '\(world.mount)'"
      let none = try world.sh("keyhole config plain-session true")
      #expect(none.status == 1 && none.error.contains("there is no vault to keep it"), "\(none)")
      try world.check(
        """
        keyhole mount -q -o keychain=vault "$MOUNT"; echo horse | keyhole passphrase --weak --cost 14 2> /dev/null
        keyhole unmount
        """)
      let terminal = { (command: String) in
        try Terminal(
          ["/bin/sh", "-c", command + " 2> /dev/tty"], environment: world.environment,
          directory: world.outside, errors: world.outside + "/errors")
      }
      let config = try terminal("keyhole config plain-session true")
      try config.wait(for: "Passphrase of the vault:")
      try config.type("horse\r")
      try config.wait(for: "plain-session: false → true", within: LockTests.patience)
      try config.type("horse\r")
      #expect(try config.finish(within: LockTests.patience).status == 0)
      // The vault is locked, and no person is there.
      #expect(try world.sh(mount).status == 1)
      let mounting = try terminal(mount)
      try mounting.wait(for: "may allow that")
      try mounting.type("horse\r")
      #expect(try mounting.finish(within: LockTests.patience).status == 0)
      try world.check("cat $MOUNT/keychain/generic/S/A/value; keyhole unmount", prints: "s3cret")
    }
  }

  @Test func plainServiceInThePlaceOfAnotherGetsNothing() async throws {
    try store("s3cret", "service S account A")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      let value = "$MOUNT/keychain/generic/S/A/value"
      try keyhole.check("cat \(value)", prints: "s3cret")
      try bus.stopKeyring()
      try bus.startStandIn(.plain)
      let calls = try bus.traffic {
        for command in ["cat \(value)", "echo new | dd of=\(value) conv=fsync"] {
          try keyhole.check(
            "{ \(command); } 2>&1 | grep -q 'not permitted' && echo refused", prints: "refused\n")
        }
      }
      #expect(!calls.contains { $0.path.contains("collection") })
    }
  }
}
