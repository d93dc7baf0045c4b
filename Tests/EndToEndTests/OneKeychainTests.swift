import KeyringHarness
import Testing

/// `keychain=auto` keeps what it has chosen first, and names what it does not show.
@Suite(.serialized, .timeLimit(.minutes(2))) struct OneKeychainTests {
  let bus: PrivateBus

  init() throws {
    bus = try PrivateBus()
    try bus.startKeyring()
  }

  private static let item = "keychain/generic/s/a/value"
  private var withBus: String { "DBUS_SESSION_BUS_ADDRESS='\(bus.address)'" }

  @Test func vaultStaysWhenABusAppears() async throws {
    try await withWorld { world in
      try world.check(
        "printf secret | keyhole set \(Self.item); cat $XDG_STATE_HOME/keyhole/keychain", prints: "vault\n")
      try world.check("\(withBus) keyhole get \(Self.item)", prints: "secret")
      try world.check(
        """
        \(withBus) keyhole mount "$MOUNT"; cat "$MOUNT/\(Self.item)"; jq -r .keychain "$MOUNT/.keyhole/status"
        keyhole unmount "$MOUNT"
        """, prints: "secretvault\n")
    }
  }

  @Test func serviceStaysWhenTheBusIsGone() async throws {
    try await withWorld { world in
      try world.check(
        "printf secret | \(withBus) keyhole set \(Self.item); cat $XDG_STATE_HOME/keyhole/keychain",
        prints: "secret-service\n")
      let output = try world.sh("keyhole get \(Self.item)")
      #expect(output.status == 1 && output.error.contains("has chosen it first"), "\(output)")
      #expect(!System.exists(world.data + "/keyhole"))
      try world.check("\(withBus) keyhole get \(Self.item)", prints: "secret")
    }
  }

  /// The choice is changed by one command, which doctor names, and by nothing that fails.
  @Test func autoIsSwitchedForGood() async throws {
    try await withWorld { world in
      try world.check("printf secret | \(withBus) keyhole set \(Self.item)")
      let refused = try world.sh("keyhole mount --keep \"$MOUNT\"")
      #expect(refused.status == 2 && refused.error.contains("-o keychain=vault"), "\(refused)")
      let unreachable = try world.sh(
        "echo vault > $XDG_STATE_HOME/keyhole/keychain; keyhole mount --keep -o keychain=secret-service \"$MOUNT\""
      )
      #expect(unreachable.status == 1, "\(unreachable)")
      #expect(try System.text(world.state + "/keyhole/keychain") == "vault\n")
      try world.check("echo secret-service > $XDG_STATE_HOME/keyhole/keychain")
      // The advice, with this test's mount point.
      let doctor = try world.sh("keyhole doctor")
      #expect(doctor.text.contains("`keyhole mount --keep -o keychain=vault`"), "\(doctor)")
      try world.check(
        """
        keyhole mount --keep -o keychain=vault "$MOUNT"; keyhole unmount "$MOUNT"; cat $XDG_STATE_HOME/keyhole/keychain
        printf own | keyhole set \(Self.item); \(withBus) keyhole get \(Self.item)
        """, prints: "vault\nown")
      // And back.
      try world.check(
        "\(withBus) keyhole mount --keep -o keychain=secret-service \"$MOUNT\" 2> $OUT/note; \(withBus) keyhole unmount \"$MOUNT\"; \(withBus) keyhole get \(Self.item)",
        prints: "secret")
    }
  }

  /// Paths outside the keychain don't need the service.
  @Test func topIsListedWithoutTheService() async throws {
    try await withWorld { world in
      try world.check("printf secret | \(withBus) keyhole set \(Self.item); keyhole set defaults/s/k 1")
      for (path, text) in [("", "defaults\nkeychain\n"), ("defaults", "s\n"), ("defaults/s", "k\n")] {
        let output = try world.sh("keyhole ls \(path)")
        #expect(output.status == 0 && output.text == text, "\(path): \(output)")
        #expect(output.error.contains("has chosen it first") == path.isEmpty, "\(path): \(output)")
      }
      #expect(try world.sh("keyhole ls keychain").status == 1)
      // A mount whose service ends.
      try world.check("\(withBus) keyhole mount \"$MOUNT\"")
      defer { _ = try? world.sh("fusermount3 -u -z \"$MOUNT\"") }
      bus.stop()
      try world.check(
        "ls \"$MOUNT\"; ls -l \"$MOUNT\" \"$MOUNT/defaults\" | grep -c ^d", prints: "defaults\nkeychain\n3\n")
    }
  }

  @Test func readingDecidesNothing() async throws {
    try await withWorld { world in
      _ = try world.sh(
        "keyhole ls keychain; keyhole ls keychain/generic; keyhole get \(Self.item); keyhole doctor")
      _ = try world.sh("\(withBus) keyhole ls keychain/generic")
      #expect(!System.exists(world.state + "/keyhole/keychain"))
      try world.check("printf secret | \(withBus) keyhole set \(Self.item)")
      #expect(try System.text(world.state + "/keyhole/keychain") == "secret-service\n")
    }
  }

  @Test func busIsFoundInTheRuntimeFolder() async throws {
    try await withWorld { world in
      let path = try #require(bus.address.split(separator: "path=").last?.split(separator: ",").first)
      try System.symlink(String(path), world.runtime + "/bus")
      try world.check(
        "printf secret | keyhole set \(Self.item); cat $XDG_STATE_HOME/keyhole/keychain",
        prints: "secret-service\n")
    }
  }

  @Test func whatIsNotShownIsNamed() async throws {
    try await withWorld { world in
      try world.check("printf secret | keyhole set \(Self.item)")
      let named = "the vault has 1 item that this keychain does not show"
      let mounted = try world.sh("\(withBus) keyhole mount -o keychain=secret-service \"$MOUNT\"")
      defer { _ = try? world.sh("fusermount3 -u -z \"$MOUNT\"") }
      #expect(mounted.status == 0 && mounted.error.contains(named), "\(mounted)")
      #expect(mounted.error.contains("keyhole migrate --from vault --to secret-service"))
      #expect(try world.sh("\(withBus) keyhole ls keychain").error.contains(named))
      #expect(try world.sh("\(withBus) keyhole doctor").text.contains(named))
      // The command does what it says, and from then on nothing is hidden.
      try world.check(
        "\(withBus) keyhole migrate --from vault --to secret-service >/dev/null; \(withBus) keyhole ls keychain/generic",
        prints: "s\n")
      #expect(try System.text(world.state + "/keyhole/keychain") == "secret-service\n")
    }
  }

  @Test func itemsOfTheServiceAreNamedToo() async throws {
    try await withWorld { world in
      try bus.run("secret-tool store --label=label service S account A", input: Array("s3cret".utf8))
      try world.check("printf secret | keyhole set \(Self.item)")
      let listing = try world.sh("\(withBus) keyhole ls keychain/generic")
      #expect(listing.text == "s\n")
      #expect(
        listing.error.contains("the Secret Service has 1 item that this keychain does not show"), "\(listing)"
      )
    }
  }
}
