import Testing

/// Rules for programs where their user can't agree to a change of them: without a passphrase, a window and a terminal of a session.
@Suite(.timeLimit(.minutes(2))) struct RuleChangeTests {
  private static let item = "keychain/generic/s/p"

  @Test func aRuleThatCannotBeChangedIsNamedSo() async throws {
    try await withKeyhole("keychain=vault", "auth-requests=no") { keyhole in
      try keyhole.check("for name in p q r; do printf secret | keyhole set keychain/generic/s/$name; done")
      for command in ["allow /usr/bin/head s/p", "attr s/r keyhole.programs 'allow /usr/bin/head'"] {
        let output = try keyhole.sh("keyhole \(command)")
        #expect(output.error.contains("can't agree here to a later change"), "\(command): \(output)")
        #expect(output.error.contains("`keyhole passphrase` sets a passphrase"), "\(output)")
      }
      let sealing = try keyhole.sh("keyhole config --sealed auto-lock 600")
      #expect(sealing.error.contains("can't agree here to a later change of this setting"), "\(sealing)")
      #expect(try keyhole.sh("keyhole doctor").text.contains("can't agree here to a change of its rules"))
      #expect(
        try keyhole.sh("keyhole status").text.contains(
          "the keychain has none, so an item that needs approval"))
      // The command that it names mends it.
      try keyhole.world.check(
        "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null", within: LockTests.patience)
      let output = try keyhole.sh("keyhole allow /usr/bin/head keychain/generic/s/q")
      #expect(output.status == 0 && output.error.isEmpty, "\(output)")
      #expect(try !keyhole.sh("keyhole doctor").text.contains("can't agree here"))
      #expect(try !keyhole.sh("keyhole status").text.contains("the keychain has none"))
    }
  }

  /// `auth-command` decides in the place of a person.
  @Test func whereAProgramDecidesNothingIsSaid() async throws {
    try await withKeyhole("keychain=vault", "auth-command=/usr/bin/true") { keyhole in
      try keyhole.check("printf secret | keyhole set \(Self.item)")
      let output = try keyhole.sh("keyhole allow /usr/bin/head \(Self.item)")
      #expect(output.status == 0 && output.error.isEmpty, "\(output)")
    }
  }

  @Test func messagesNameWhatToType() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir -p keychain/generic/s/new; printf one | keyhole set \(Self.item)")
      // The mount alone has what waits for its content.
      let waiting = try keyhole.sh("keyhole attr keychain/generic/s/new comment text")
      #expect(
        waiting.status == 3 && waiting.error.contains("waits in the mount for the secret"), "\(waiting)")
      #expect(waiting.error.contains("setfattr -n NAME -v VALUE \(keyhole.mount)/keychain/generic/s/new"))
      for path in ["\(Self.item)/otp", "s/p/otp"] {
        let code = try keyhole.sh("keyhole get \(path)")
        #expect(
          code.status == 3 && code.error.contains("`keyhole otp --set \(Self.item)` stores one"), "\(code)")
      }
    }
  }

  @Test func aFolderHasNoVersions() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        for value in 1 2; do keyhole set defaults/app/n $value; echo $value | keyhole set \(Self.item); done
        keyhole set defaults/empty/n 1
        """)
      for (folder, kept) in [("defaults/app", "defaults/app/n"), ("keychain/generic/s", Self.item)] {
        let output = try keyhole.sh("keyhole undo \(folder)")
        #expect(
          output.status == 1 && output.error.contains("versions are kept of keys and items"), "\(output)")
        #expect(output.error.contains("`keyhole history \(folder)`"), "\(output)")
        #expect(output.error.contains("`keyhole undo \(kept)` brings that back"), "\(output)")
        try keyhole.check("keyhole undo \(kept) > /dev/null")
      }
      #expect(try keyhole.sh("keyhole undo defaults/empty").error.contains("nothing is kept below it"))
    }
  }

  /// Also where the folder itself has gone with what was in it.
  @Test func aRemovedFolderComesBackAndCanBePurged() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        for n in 1 2; do keyhole set defaults/app/n$n $n; echo $n | keyhole set keychain/generic/gone/$n; done
        keyhole rm -r --yes defaults/app keychain/generic/gone
        """)
      #expect(try keyhole.sh("keyhole undo keychain/generic/gone").error.contains("2 keys and items"))
      try keyhole.check(
        """
        keyhole undo --yes keychain/generic/gone; keyhole undo -q --yes defaults/app
        keyhole ls defaults/app; keyhole ls keychain/generic/gone
        keyhole rm -r --yes keychain/generic/gone; keyhole history keychain/generic/gone
        keyhole history --purge keychain/generic/gone; keyhole history keychain
        """,
        prints: """
          restored 2 keys and items
          n1
          n2
          1
          2
          keychain/generic/gone/1
          keychain/generic/gone/2
          deleted 2 versions

          """)
    }
  }
}
