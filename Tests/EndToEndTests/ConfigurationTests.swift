import Testing

/// The settings of Keyhole's own: the suite `keyhole`, the vault, and the mount options before both.
@Suite(
  .timeLimit(.minutes(3)), .enabled(if: System.exists("/usr/bin/pinentry-curses"), "needs pinentry-curses"))
struct ConfigurationTests {
  private static func terminal(_ keyhole: MountedKeyhole, _ command: String) throws -> Terminal {
    let world = keyhole.world
    return try Terminal(
      ["/bin/sh", "-c", command], environment: world.environment, directory: keyhole.mount,
      errors: world.outside + "/errors")
  }

  /// Types the passphrase that a change takes.
  private static func confirm(_ keyhole: MountedKeyhole, _ command: String, showing line: String) throws {
    let terminal = try terminal(keyhole, command)
    try terminal.wait(for: "It wants to change a setting of Keyhole")
    try terminal.wait(for: line)
    try terminal.wait(for: "Passphrase:")
    try terminal.type("cow\r")
    try terminal.wait(for: "2 tries are left")
    try terminal.wait(for: "Passphrase:")
    try terminal.type("horse\r")
    let output = try terminal.finish()
    #expect(output.status == 0, "\(output)")
  }

  @Test func suiteTakesWhatProtectsMoreOnEveryRoad() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        mkdir defaults/keyhole; echo 5 > defaults/keyhole/auth-reuse
        keyhole set defaults/keyhole/ask-unlock false; keyhole config auto-lock 600
        keyhole config browsers /usr/bin/one /usr/bin/two
        keyhole config | grep suite
        """,
        prints: """
          ask-unlock\tfalse\tsuite
          auth-reuse\t5\tsuite
          auto-lock\t600\tsuite
          browsers\t/usr/bin/one /usr/bin/two\tsuite

          """)
      try keyhole.check(
        "keyhole config auto-lock; keyhole config --json browsers; keyhole config --unset auto-lock; keyhole config auto-lock",
        prints: """
          600
          {"key": "browsers", "value": ["/usr/bin/one","/usr/bin/two"], "origin": "suite", "default": []}
          0

          """)
      // An error of close(2), which a shell does not report.
      let copy = { (text: String, key: String) in
        try keyhole.sh("echo \(text) > $OUT/value; cp $OUT/value defaults/keyhole/\(key)").error
      }
      #expect(try copy("60", "auth-reuse").contains("Operation not permitted"))
      #expect(try copy("yes", "auth-timeout").contains("Invalid argument"))
      // The write fails where no further byte could mend the value, and a shell reports that.
      for write in ["echo 900 > auth-timeout", "printf 900 > auth-timeout", "echo true > presence-button"] {
        try keyhole.refuses("cd defaults/keyhole; \(write)", .notPermitted)
      }
      for write in ["echo x > nonsense", "echo 5 > auth-timeout", "echo maybe > ask-unlock"] {
        try keyhole.refuses("cd defaults/keyhole; \(write)", .invalid)
      }
      try keyhole.check(
        """
        cd defaults/keyhole; (printf 3; echo 0) > auth-timeout; cat auth-timeout; ls
        (echo '['; echo '"/usr/bin/three"'; echo ']') > browsers; keyhole config browsers
        """, prints: "30\nask-unlock\nauth-reuse\nauth-timeout\nbrowsers\n/usr/bin/three\n")
      let unknown = try keyhole.sh("keyhole set defaults/keyhole/colour red")
      #expect(unknown.status == 1 && unknown.error.contains("`keyhole config` lists them"), "\(unknown)")
      let weaker = try keyhole.sh("keyhole set defaults/keyhole/auth-command /bin/true")
      #expect(
        weaker.error.contains("`keyhole config auth-command /bin/true` keeps it in the vault"), "\(weaker)")
      #expect(weaker.status == 5)
      try keyhole.check("cat defaults/keyhole/auth-reuse", prints: "5\n")
      #expect(try keyhole.sh("keyhole config nonsense").status == 2)
    }
  }

  @Test func fileThatAnotherProgramHasWrittenIsNotFollowed() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        cat > "$XDG_CONFIG_HOME/keyhole.plist" <<'END'
        <?xml version="1.0" encoding="UTF-8"?>
        <plist version="1.0"><dict><key>auth-command</key><string>/bin/true</string><key>auth-reuse</key><integer>3</integer>
        <key>colour</key><string>red</string></dict></plist>
        END
        """)
      try keyhole.check(
        "keyhole config 2> /dev/null | grep -vE 'default|auth-requests'", prints: "auth-reuse\t3\tsuite\n")
      let (status, doctor) = (try keyhole.sh("keyhole status"), try keyhole.sh("keyhole doctor"))
      for text in [status.text, doctor.text] {
        #expect(
          text.contains("`auth-command` is not followed") && text.contains("`colour` is not followed"),
          "\(text)")
      }
      #expect(doctor.status == 1)
      #expect(status.text.contains("auth-reuse is 3 (suite)"), "\(status)")
      // It is the other program's to keep.
      try keyhole.check(
        "cat defaults/keyhole/colour; rm defaults/keyhole/colour defaults/keyhole/auth-command",
        prints: "red\n")
      try keyhole.check("keyhole doctor | grep -c 'not followed' || true", prints: "0\n")
    }
  }

  @Test func whatProtectsLessTakesThePassphraseAndHoldsAtOnce() async throws {
    try await withKeyhole("ask-unlock=no") { keyhole in
      try keyhole.check("echo horse | keyhole passphrase --weak --cost 14 2> /dev/null")
      try keyhole.check("mkdir -p keychain/generic/s/p; echo secret > keychain/generic/s/p/value")
      try keyhole.check("setfattr -n user.keyhole.programs -v 'ask *' keychain/generic/s/p")
      // A program has neither a terminal nor the passphrase.
      let program = try keyhole.sh("setsid -w timeout 5 keyhole config auth-command /bin/true")
      #expect(program.status != 0)
      try keyhole.check("keyhole config auth-command")
      try Self.confirm(
        keyhole, "keyhole config auth-command /bin/true", showing: "auth-command: none → /bin/true")
      try keyhole.check("setsid -w cat keychain/generic/s/p/value", prints: "secret")
      try keyhole.check("keyhole config | grep vault", prints: "auth-command\t/bin/true\tvault\n")
      #expect(
        try keyhole.sh("keyhole status").text.contains("auth-command is /bin/true (vault, protects less"))
      // It is not shown, also not to a program that looks for it.
      try keyhole.check("ls keychain/generic", prints: "s\n")
      // A change that protects more takes nothing.
      try keyhole.check("keyhole config --unset auth-command; keyhole config auth-command")
      #expect(try keyhole.sh("keyhole config auth-command /nowhere").error.contains("can't be run"))
    }
  }

  /// No lock is the default; in the vault it comes before the time that the suite sets.
  @Test func autoLockIsTurnedOffWithThePassphrase() async throws {
    try await withKeyhole("ask-unlock=no") { keyhole in
      try keyhole.check("echo horse | keyhole passphrase --weak --cost 14 2> /dev/null")
      try keyhole.check("keyhole config auto-lock 600")
      for command in ["keyhole set defaults/keyhole/auto-lock 0", "keyhole config auto-lock 0"] {
        #expect(try keyhole.sh("setsid -w timeout 5 \(command)").status != 0)
      }
      try keyhole.refuses("echo 0 > defaults/keyhole/auto-lock", .notPermitted)
      try Self.confirm(keyhole, "keyhole config auto-lock 0", showing: "auto-lock: as the suite says → 0")
      try keyhole.check("keyhole config | grep auto-lock", prints: "auto-lock\t0\tvault\n")
    }
  }

  /// An earlier Keyhole took these into the suite.
  @Test func offInTheSuiteIsNamedWithTheCommand() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        cat > "$XDG_CONFIG_HOME/keyhole.plist" <<'END'
        <?xml version="1.0" encoding="UTF-8"?>
        <plist version="1.0"><dict><key>auto-lock</key><integer>0</integer><key>history</key><integer>0</integer></dict></plist>
        END
        """)
      let texts = [
        try keyhole.sh("keyhole status").text, try keyhole.sh("keyhole doctor").text,
        try keyhole.sh("keyhole config").error,
      ]
      for text in texts {
        for command in ["`keyhole config auto-lock 0`", "`keyhole config history 0`"] {
          #expect(text.contains(command), "\(text)")
        }
      }
      try keyhole.check(
        "(keyhole config history; keyhole config history-age) 2> /dev/null", prints: "10\n30\n")
    }
  }

  /// No proof could be given here, so there is nothing to wait for.
  @Test func withoutAPassphraseAProgramIsRefusedAtOnce() async throws {
    try await withKeyhole("auth-timeout=300") { keyhole in
      let program = try keyhole.sh("setsid -w keyhole config auth-reuse 60")
      #expect(program.status == 5 && program.error.contains("the vault has no passphrase"), "\(program)")
      try keyhole.check("keyhole requests; keyhole config auth-reuse", prints: "10\n")
    }
  }

  @Test func aButtonForPresenceTakesThePassphrase() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("echo horse | keyhole passphrase --weak --cost 14 2> /dev/null")
      let refused = try keyhole.sh("keyhole set defaults/keyhole/presence-button true")
      #expect(
        refused.error.contains("`keyhole config presence-button true` keeps it in the vault"), "\(refused)")
      #expect(try keyhole.sh("setsid -w timeout 5 keyhole config presence-button true").status != 0)
      try Self.confirm(
        keyhole, "keyhole config presence-button true", showing: "presence-button: false → true")
      try keyhole.check("keyhole config | grep vault", prints: "presence-button\ttrue\tvault\n")
      // No window and no terminal of a login: the proof as before.
      try keyhole.check(
        "mkdir -p keychain/generic/s/p; echo secret > keychain/generic/s/p/value; setfattr -n user.keyhole.access -v userPresence keychain/generic/s/p"
      )
      let terminal = try Self.terminal(keyhole, "cat keychain/generic/s/p/value")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("horse\r")
      let output = try terminal.finish()
      #expect(output.status == 0, "\(output)")
    }
  }

  @Test func sealedValueHoldsAfterAnUnlockAndNoProgramTakesItBack() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("echo horse | keyhole passphrase --weak --cost 14 2> /dev/null")
      try keyhole.check("keyhole config --sealed auth-reuse 2; keyhole config auth-reuse", prints: "2\n")
      // Nothing in the suite comes before it.
      try keyhole.check(
        "mkdir defaults/keyhole; echo 9 > defaults/keyhole/auth-reuse; keyhole config auth-reuse",
        prints: "2\n")
      #expect(try keyhole.sh("setsid -w timeout 5 keyhole config --unset auth-reuse").status != 0)
      try keyhole.check(
        "keyhole config auth-reuse 1; keyhole config | grep vault", prints: "auth-reuse\t1\tvault\n")
      try Self.confirm(keyhole, "keyhole config auth-reuse 200", showing: "auth-reuse: 1 → 200")
      try keyhole.remount()
      // Never unlocked since: the suite alone.
      try keyhole.check("keyhole config auth-reuse", prints: "9\n")
      try keyhole.check(
        "echo horse | keyhole unlock; keyhole config auth-reuse; keyhole lock; keyhole config auth-reuse",
        prints: "200\n200\n")
    }
  }

  @Test func mountOptionsComeFirst() async throws {
    try await withKeyhole("auth-reuse=7") { keyhole in
      try keyhole.check(
        "keyhole config auth-reuse 3; keyhole config | grep -vE 'default|auth-requests'",
        prints: "auth-reuse\t7\tmount option\n")
    }
  }

  @Test func lockByTimeBeginsWithTheSetting() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("echo horse | keyhole passphrase --weak --cost 14 2> /dev/null")
      try keyhole.check("keyhole status --json | jq .locked", prints: "false\n")
      try keyhole.check("keyhole config auto-lock 1")
      #expect(try holds { try keyhole.sh("keyhole status --json | jq .locked").text == "true\n" })
    }
  }

  @Test func secretServiceKeepsNothingThatProtectsLess() async throws {
    try await withKeyhole("keychain=none") { keyhole in
      let output = try keyhole.sh("keyhole config auth-reuse 60")
      #expect(output.status == 1 && output.error.contains("only a vault"), "\(output)")
      try keyhole.check("keyhole config auth-reuse 3; keyhole config auth-reuse", prints: "3\n")
    }
  }
}
