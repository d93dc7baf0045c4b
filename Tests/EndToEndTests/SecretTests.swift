import Glibc
import Testing

/// Section 4: a secret's bytes, and where the kernel may keep them.
@Suite(.timeLimit(.minutes(1))) struct SecretTests {
  @Test func optionOfTheMountKeepsEveryLineEnd() async throws {
    try await withKeyhole("eol=exact") { keyhole in
      try keyhole.check(
        """
        cd keychain/generic; mkdir -p s/line s/bare s/pem
        echo hunter2 > s/line/value; printf hunter2 > s/bare/value; printf 'a\\nb\\n' > s/pem/value
        cat s/line/value
        """, prints: "hunter2\n")
      #expect(try System.attributeNames(keyhole / "keychain/generic/s/line").contains("user.keyhole.eol"))
      #expect(try System.attribute(keyhole / "keychain/generic/s/line/value", "user.keyhole.eol") == "exact")
      for item in ["bare", "pem"] {
        #expect(
          try !System.attributeNames(keyhole / "keychain/generic/s/\(item)").contains("user.keyhole.eol"))
      }
    }
  }

  @Test func secretIsNotInThePageCache() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir -p keychain/generic/s/p; head -c 65536 /dev/urandom > keychain/generic/s/p/value; mkdir defaults/s; head -c 65536 /dev/zero > defaults/s/k"
      )
      let value = try OpenFile(keyhole / "keychain/generic/s/p/value", O_RDONLY)
      #expect(try value.readAll().count == 65536)
      #expect(try value.cachedPages(65536) == 0)
      try keyhole.check("cat keychain/generic/s/p/value | wc -c", prints: "65536\n")
      #expect(try value.cachedPages(65536) == 0)
      // The same question about a setting, to know that it can be answered otherwise.
      let key = try OpenFile(keyhole / "defaults/s/k", O_RDONLY)
      _ = try key.readAll()
      #expect(try key.cachedPages(65536) > 0)
    }
  }

  @Test func secretIsMappedPrivatelyAndNotShared() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir -p keychain/generic/s/p; printf 'a secret\\nof two lines' > keychain/generic/s/p/value")
      let path = keyhole / "keychain/generic/s/p/value"
      do {
        let value = try OpenFile(path, O_RDONLY)
        #expect(throws: Errno.noDevice) { _ = try value.mapped(21, MAP_SHARED) }
        let text = try value.mapped(21, MAP_PRIVATE)
        #expect(text == "a secret\nof two lines")
        let both = try OpenFile(path, O_RDWR)
        #expect(throws: Errno.noDevice) {
          _ = try both.mapped(21, MAP_SHARED, protection: PROT_READ | PROT_WRITE)
        }
      }
      // Pages of a private mapping are dropped when the last handle closes.
      let again = try OpenFile(path, O_RDONLY)
      #expect(try again.cachedPages(21) == 0)
      try System.write(path, "another secret\nof the same")
      #expect(try System.text(path) == "another secret\nof the same")
      let third = try OpenFile(path, O_RDONLY)
      let text = try third.mapped(26, MAP_PRIVATE)
      #expect(text == "another secret\nof the same")
    }
  }

  @Test func fileOfTheVaultShowsNothing() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        mkdir -p keychain/generic/marker-service/marker-account 'keychain/internet/marker-server/peter;path=marker-path'
        cd keychain/generic/marker-service/marker-account; echo marker-secret > value
        setfattr -n user.comment -v marker-comment .; setfattr -n user.own -v marker-own .; setfattr -n user.marker-name -v x .
        setfattr -n user.keyhole.label -v marker-label .
        echo x > "$MOUNT/keychain/internet/marker-server/peter;path=marker-path/value"; rm -r "$MOUNT/keychain/internet/marker-server"
        echo marker-second > value; mv ../marker-account ../marker-renamed
        """)
      let search =
        "grep -rlai -e marker -e bWFya2Vy -e 1hcmtlc -e tYXJrZX -e 6d61726b6572 \"$DATA\" \"$XDG_STATE_HOME\" \"$CONFIG\" \"$XDG_RUNTIME_DIR\" \"$HOME\" \"$OUT\" || true"
      try keyhole.world.check(search)
      try keyhole.unmount()
      try keyhole.world.check(search)
      // A setting is no secret, and the same search finds it.
      try keyhole.start()
      try keyhole.check("mkdir defaults/s; echo marker > defaults/s/k")
      #expect(try keyhole.world.sh(search).text.contains("s.plist"))
    }
  }
}
