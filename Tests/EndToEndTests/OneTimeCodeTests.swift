import Testing

/// Section 4: one-time codes, as programs and commands get them.
@Suite(.timeLimit(.minutes(10))) struct OneTimeCodeTests {
  private static let item = "keychain/generic/s/p"
  private static let file = item + "/otp"
  private static let key = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
  /// One step from 1970 to 2038: the code of RFC 4226 for the counter 0.
  private static let long = "otpauth://totp/s:p?secret=\(key)&period=2147483647"
  private static let counted = "otpauth://hotp/s:p?secret=\(key)&counter=0"

  private static func make(_ keyhole: MountedKeyhole, _ uri: String) throws {
    try keyhole.check("printf secret | keyhole set \(item)/value; echo '\(uri)' | keyhole otp --set \(item)")
  }

  @Test func fileIsComputed() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir -p \(Self.item); echo secret > \(Self.item)/value")
      try keyhole.refuses("cat \(Self.file)", .missing)
      try keyhole.check("echo '\(Self.long)&digits=8' > \(Self.item)/otpauth")
      try keyhole.check(
        "cat \(Self.file); echo; stat -c '%s %a %Y' \(Self.file); ls \(Self.item)",
        prints: "84755224\n8 400 0\notpauth\nvalue\n")
      try keyhole.refuses("echo 1 > \(Self.file)", .denied)
      try keyhole.refuses("rm -f \(Self.file)", .notPermitted)
      try keyhole.check(
        "cp -a \(Self.item) keychain/generic/s/copy; cat keychain/generic/s/copy/otp; rm -r \(Self.item)",
        prints: "84755224")
    }
  }

  @Test func counterIsUsedByReadersOnly() async throws {
    try await withKeyhole { keyhole in
      try Self.make(keyhole, Self.counted)
      try keyhole.check(
        """
        ls -lR keychain > "$OUT/list"; grep -r secret keychain > "$OUT/found"; tar -cf "$OUT/t" keychain/generic
        cat \(Self.file); echo; keyhole otp \(Self.item); cat \(Self.file); echo; keyhole get \(Self.item)/otpauth
        """, prints: "755224\n287082\n359152\n\(Self.counted.dropLast())3")
      _ = try keyhole.unmount()
      try keyhole.world.check(
        "keyhole otp \(Self.item); keyhole otp --json \(Self.file)",
        prints: "969429\n{\"code\":\"338314\",\"type\":\"hotp\",\"counter\":4}\n")
      try keyhole.start()
      try keyhole.check("cat \(Self.file)", prints: "254676")
    }
  }

  @Test func readOnlyMountGivesNoCodeOfACounter() async throws {
    try await withKeyhole("ro") { keyhole in
      _ = try keyhole.unmount()
      try Self.make(keyhole, Self.counted)
      try keyhole.start()
      #expect(try keyhole.sh("cat \(Self.file) 2>&1").text.contains("Read-only"))
      try keyhole.check("keyhole get \(Self.item)/otpauth", prints: Self.counted)
    }
  }

  @Test(arguments: [true, false]) func commandStoresAndPrints(isMounted: Bool) async throws {
    try await withKeyhole { keyhole in
      if !isMounted { _ = try keyhole.unmount() }
      let world = keyhole.world
      try world.check("printf secret | keyhole set \(Self.item)/value")
      let none = try world.sh("keyhole otp \(Self.item)")
      #expect(none.status != 0 && none.error.contains("keyhole otp --set"), "\(none)")
      try world.check(
        "echo 'gezd gnbv gy3t qojq gezd gnbv gy3t qojq' | keyhole otp --set \(Self.item); keyhole get \(Self.item)/otpauth",
        prints: "otpauth://totp/s:p?secret=\(Self.key)&issuer=s")
      for (text, reason) in [
        ("hello", "base32"), ("steam:\(Self.key)", "base32"), ("otpauth://totp/a?issuer=x", "secret"),
      ] {
        let refused = try world.sh("echo '\(text)' | keyhole otp --set \(Self.item)")
        #expect(
          refused.status != 0 && refused.error.contains(reason) && !refused.error.contains(Self.key),
          "\(refused)")
      }
      try world.check(
        "echo '\(Self.long)' | keyhole otp --set \(Self.item); keyhole otp \(Self.item); keyhole otp \(Self.item)/otpauth",
        prints: "755224\n755224\n")
      try world.check(
        "keyhole otp --json \(Self.item) | jq -r '.code, .type, .period, .validUntil, .secondsLeft > 0'",
        prints: "755224\ntotp\n2147483647\n2038-01-19T03:14:07Z\ntrue\n")
      try world.check("keyhole otp s/p", prints: "755224\n")
      try world.check("keyhole otp defaults/a/b 2> /dev/null; echo $?", prints: "2\n")
      if !isMounted { try keyhole.start() }
    }
  }

  @Test func rulesHoldForTheCode() async throws {
    try await withKeyhole { keyhole in
      try Self.make(keyhole, Self.long)
      try keyhole.check("setfattr -n user.keyhole.programs -v 'deny *' \(Self.item)")
      try keyhole.refuses("cat \(Self.file)", .denied)
      #expect(try keyhole.sh("keyhole otp \(Self.item)").status != 0)
      try keyhole.check("stat -c %s \(Self.file)", prints: "6\n")
    }
  }
}
