import KeyringHarness
import Testing

/// A Secret Service holds one secret of an item: what becomes of an item's `otpauth:` URI there, and on the way back.
@Suite(.serialized, .timeLimit(.minutes(2))) struct OtpauthKeyringTests {
  let bus: PrivateBus

  init() throws {
    bus = try PrivateBus()
    try bus.startKeyring()
  }

  private var withBus: String { "export DBUS_SESSION_BUS_ADDRESS='\(bus.address)';" }

  @Test func migrationMakesACompanionAndJoinsItAgain() async throws {
    try await withWorld { world in
      let (item, uri) = (OtpauthTests.item, OtpauthTests.uri)
      try world.check(
        "printf secret | keyhole set \(item)/value; echo '\(uri)' | keyhole set \(item)/otpauth")
      let there = try world.sh("\(withBus) keyhole migrate --from vault --to secret-service")
      #expect(there.status == 0 && there.text.contains("\(item)%2Fotp: an item of its own"), "\(there)")
      try world.check(
        "\(withBus) keyhole get \(item)%2Fotp/value; echo; keyhole attr \(item)%2Fotp belongsTo; keyhole get \(item)/value",
        prints: "\(uri)\n\(item)\nsecret")
      let refused = try world.sh("\(withBus) echo '\(uri)' | keyhole set \(item)/otpauth")
      #expect(refused.status == 1 && refused.error.contains("one secret of an item"), "\(refused)")
      let back = try world.sh("\(withBus) keyhole migrate --from secret-service --to vault")
      #expect(back.status == 0 && back.text.contains("\(item)/otpauth: the item's second secret"), "\(back)")
      try world.check(
        "\(withBus) keyhole ls keychain/generic/s; keyhole get \(item)/otpauth; keyhole get \(item)/value",
        prints: "p\n\(uri)secret")
    }
  }

  @Test func importMakesACompanion() async throws {
    try await withWorld { world in
      let (item, uri) = (OtpauthTests.item, OtpauthTests.uri)
      try world.check(
        "printf secret | keyhole set \(item)/value; echo '\(uri)' | keyhole set \(item)/otpauth; keyhole export --plain -o $OUT/e"
      )
      let said = try world.sh(
        "\(withBus) keyhole mount -o keychain=secret-service \"$MOUNT\" > /dev/null 2>&1; keyhole import $OUT/e"
      )
      defer { _ = try? world.sh("fusermount3 -u -z \"$MOUNT\"") }
      #expect(said.status == 0 && said.error.contains("\(item)%2Fotp: a one-time code"), "\(said)")
      try world.check("\(withBus) keyhole get \(item)%2Fotp/value", prints: uri)
    }
  }
}
