import KeyringHarness
import Testing

/// CreateItem with `replace`, which libsecret and most libraries for passwords use, where there is an item.
@Suite(.serialized, .timeLimit(.minutes(3)), .enabled(if: canServeItems, "needs dbus-daemon and secret-tool"))
struct ServiceReplacementTests: ServiceTesting {
  let bus: PrivateBus

  init() throws { bus = try PrivateBus() }

  private func withOpenService(_ body: (World) async throws -> Void) async throws {
    try await withService { world in
      try world.check("echo horse | keyhole unlock")
      try await body(world)
    }
  }

  /// As Python's keyring stores a password, and finds it.
  private static let python = "secret-tool store --label=Password service s username a application Python"
  private static let pythonFinds = "secret-tool lookup service s username a"

  @Test func whatACommandHasStoredIsReplaced() async throws {
    try await withOpenService { world in
      try world.check("printf one | keyhole set keychain/generic/s/a; keyhole attr s/a comment kept")
      try world.check("printf two | \(Self.python); \(Self.pythonFinds)", prints: "two")
      try world.check("keyhole get s/a; keyhole ls -R keychain | grep -c value", prints: "two1\n")
      try world.check("keyhole attr s/a comment; keyhole attr s/a application", prints: "kept\nPython\n")
      // Programs that look for Keyhole's own attributes find it as before, and the second time it is the same item.
      try world.check("secret-tool lookup service s account a", prints: "two")
      try world.check("printf three | \(Self.python); keyhole get s/a", prints: "three")
      try world.check("keyhole ls -R keychain | grep -c value", prints: "1\n")
      // The former secret is a version.
      try world.check("keyhole history s/a | grep -c .", prints: "3\n")
    }
  }

  @Test func whatACredentialHelperHasStoredIsReplaced() async throws {
    try await withOpenService { world in
      let password = "printf 'protocol=https\\nhost=example.org\\nusername=me\\npassword=one\\n'"
      try world.check("\(password) | keyhole credential git store")
      try world.check(
        """
        printf two | secret-tool store --label=Git xdg:schema org.git.Password server example.org user me protocol https
        printf 'protocol=https\\nhost=example.org\\n' | keyhole credential git get | grep password
        keyhole ls -R keychain | grep -c value
        """, prints: "password=two\n1\n")
    }
  }

  @Test func anotherItemStays() async throws {
    try await withOpenService { world in
      try world.check("printf one | keyhole set keychain/generic/s/a; keyhole attr s/a application other")
      try world.check("printf two | \(Self.python); keyhole get s/a", prints: "one")
      try world.check("keyhole get keychain/other/Password", prints: "two")
      // Nor one that a client has stored with other attributes.
      try world.check(
        """
        printf one | secret-tool store --label=One service t username a
        printf two | secret-tool store --label=Two service t username a application Python
        keyhole get t/a; keyhole get keychain/other/Two
        """, prints: "onetwo")
      // Nor one with more attributes, also where the client gave all that Keyhole gives an item.
      try world.check(
        """
        printf one | secret-tool store --label=One service u account a username a application Python
        printf two | secret-tool store --label=Second service u username a
        keyhole get u/a; keyhole get keychain/other/Second; keyhole attr u/a keyhole.omitted
        printf three | secret-tool store --label=One service u account a username a application Python
        keyhole get u/a; keyhole ls keychain/generic/u
        """, prints: "onetwo-\nthreea\n")
    }
  }

  /// A replacement is a write: rules and flags hold, and no second item takes their place.
  @Test func withoutTheRightToWriteNothingIsReplaced() async throws {
    try await withOpenService { world in
      try world.check(
        "printf one | keyhole set keychain/generic/s/a; keyhole attr s/a keyhole.programs 'deny *'")
      let refused = try world.sh("printf two | \(Self.python)")
      #expect(refused.status == 1 && refused.error.contains("denied"), "\(refused)")
      try world.check(
        "printf one | keyhole set keychain/generic/t/a; keyhole attr t/a keyhole.programs 'ask *'")
      let asked = "printf two | setsid -w \(Self.python)".replacing("service s", with: "service t")
      #expect(try world.sh(asked, within: .seconds(60)).status == 1)
      try world.check("keyhole requests | cut -f 2,3 | sort -u", prints: "write\tkeychain/generic/t/a\n")
      try world.check("keyhole ls -R keychain | grep -c value", prints: "2\n")
    }
  }

  /// The service has the vault open for itself, and hears later what the process of a mount has stored.
  @Test func whatAMountHasJustStoredIsReplaced() async throws {
    try await withOpenService { world in
      try world.check("mkdir $OUT/m; keyhole mount -q $OUT/m; echo horse | keyhole unlock")
      defer { _ = try? world.sh("keyhole unmount $OUT/m") }
      let script = """
        for name in 1 2 3 4 5 6 7 8 9 10; do
          mkdir -p $OUT/m/keychain/generic/s/$name
          printf one > $OUT/m/keychain/generic/s/$name/value
          printf two | secret-tool store --label=l service s username $name application Python
        done
        keyhole ls keychain/generic/s | wc -l; keyhole ls keychain/other | wc -l
        for name in 1 2 3 4 5 6 7 8 9 10; do keyhole get keychain/generic/s/$name; done
        """
      try world.check(script, prints: "10\n0\n" + String(repeating: "two", count: 10))
      // The two at the same time make one item as well.
      try world.check(
        """
        for name in 1 2 3 4 5 6 7 8 9 10; do
          mkdir -p $OUT/m/keychain/generic/t/$name
          printf two | secret-tool store --label=l service t username $name application Python & client=$!
          printf one > $OUT/m/keychain/generic/t/$name/value
          wait $client || echo refused
        done
        keyhole ls keychain/generic/t | wc -l; keyhole ls keychain/other | wc -l
        """, prints: "10\n0\n")
    }
  }
}
