import Testing

/// Text that a person types on a terminal between two tries, while a passphrase is tried, is not shown, and is neither the next answer nor
/// input of another program.
@Suite(
  .timeLimit(.minutes(3)), .enabled(if: System.exists("/usr/bin/pinentry-curses"), "needs pinentry-curses"))
struct TypingAheadTests {
  private static let item = "keychain/generic/s/p"
  private static let value = item + "/value"
  /// The modes of the terminal, and the next line: a line that was typed before the shell asks is lost to it.
  private static let nextCommand =
    "; echo modes:$(stty -a | grep -ow -- '-\\?echo'); read -r line; echo \"[$line]\""
  /// On a busy machine a program goes on a little before its dialog has left the terminal.
  private static let untilShown = "while stty -a | grep -qw -- -echo; do :; done; echo modes:echo"

  /// A mount whose item the passphrase `horse` opens: as the vault is locked, or by a flag.
  private static func withItem(locked: Bool, body: (MountedKeyhole) throws -> Void) async throws {
    try await withKeyhole("keychain=vault", "auth-requests=no") { keyhole in
      try keyhole.check("mkdir -p \(item); printf secret > \(value)")
      try keyhole.check(
        "echo horse | keyhole passphrase --weak --cost 16 2> /dev/null", within: LockTests.patience)
      try keyhole.check(locked ? "keyhole lock" : "setfattr -n user.keyhole.access -v devicePasscode \(item)")
      try body(keyhole)
    }
  }

  /// Runs a command on a terminal, below the mount.
  private static func start(_ keyhole: MountedKeyhole, _ command: String) throws -> Terminal {
    let world = keyhole.world
    return try Terminal(
      ["/bin/sh", "-c", "{ \(command); } 2> /dev/tty"], environment: world.environment,
      directory: keyhole.mount,
      errors: world.outside + "/errors")
  }

  @Test(arguments: [true, false]) func inADialog(locked: Bool) async throws {
    try await Self.withItem(locked: locked) { keyhole in
      let terminal = try Self.start(keyhole, "cat \(Self.value) > $OUT/read" + Self.nextCommand)
      try terminal.wait(for: "Passphrase:")
      #expect(try !terminal.echoes)
      // The second line is no answer: two tries are left.
      try terminal.type("wrong\rearly\r")
      let shown = try terminal.typeAhead("#", until: "2 tries are left", within: LockTests.patience)
      #expect(!shown.contains("#") && !shown.contains("early"), "\(shown)")
      // Ctrl-U: without what was typed after the question was shown.
      try terminal.type("\u{15}horse\rearly\r")
      let rest = try terminal.typeAhead("#", until: "modes:echo", within: LockTests.patience)
      #expect(!rest.contains("early"), "\(rest)")
      try terminal.typeAhead("\u{15}next\r")
      #expect(try terminal.finish().text.contains("[next]"))
      #expect(try System.text(keyhole.world.outside + "/read") == "secret")
    }
  }

  @Test(arguments: [
    ("keyhole get \(value) > $OUT/read", "Passphrase of the vault: ", "2 tries are left"),
    ("keyhole passphrase --weak --cost 14 > $OUT/read", "Present passphrase: ", "That is not the passphrase"),
  ])
  func atAPromptOfTheCommand(command: String, prompt: String, wrong: String) async throws {
    try await Self.withItem(locked: true) { keyhole in
      try keyhole.unmount()
      let terminal = try Self.start(keyhole, command + Self.nextCommand)
      try terminal.wait(for: prompt)
      try terminal.type("wrong\rearly\r")
      let shown = try terminal.typeAhead("#", until: wrong, within: LockTests.patience)
      #expect(!shown.contains("#") && !shown.contains("early"), "\(shown)")
      try terminal.wait(for: prompt)
      try terminal.type("\u{15}horse\r")
      if wrong.hasPrefix("That") {
        for prompt in ["New passphrase (empty: none): ", "Once more: "] {
          try terminal.wait(for: prompt, within: LockTests.patience)
          try terminal.type("\u{15}cow\r")
        }
      }
      try terminal.wait(for: "modes:echo", within: LockTests.patience)
      try terminal.typeAhead("\u{15}next\r")
      #expect(try terminal.finish(within: LockTests.patience).text.contains("[next]"))
    }
  }

  /// Whatever ends the dialog, and the process that shows it: the modes are those from before.
  @Test(arguments: [
    "kill -KILL $helper", "kill -TERM $helper", "kill -KILL $(pgrep -P $helper)", "kill $(cat $OUT/pid)",
  ])
  func anEndGivesTheModesBack(end: String) async throws {
    try await Self.withItem(locked: true) { keyhole in
      let terminal = try Self.start(
        keyhole,
        "cat \(Self.value) > $OUT/read & echo $! > $OUT/pid; wait; \(Self.untilShown)"
      )
      try terminal.wait(for: "Passphrase:")
      #expect(try !terminal.echoes)
      try keyhole.check("helper=$(pgrep -P \(keyhole.process)); \(end)")
      let text = try terminal.finish(within: LockTests.patience).text
      #expect(text.contains("modes:echo"), "\(text)")
    }
  }

  /// Ctrl-Z is no signal while a question stands: the shell would read the passphrase beside the dialog.
  @Test func theStopKeyStopsNothing() async throws {
    try await Self.withItem(locked: true) { keyhole in
      let keys = "stty -a | grep -o 'susp = [^;]*'"
      let terminal = try Self.start(
        keyhole, "exec bash -c \"set -m; cat \(Self.value) > $OUT/read; echo status:\\$?; \(keys)\"")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("\u{1A}")
      try terminal.type("\u{15}horse\r")
      let text = try terminal.finish(within: LockTests.patience).text
      #expect(text.contains("status:0") && text.contains("susp = ^Z"), "\(text)")
      #expect(try System.text(keyhole.world.outside + "/read") == "secret")
    }
  }

  /// The terminal is the shell's while the command is stopped; the question comes again with `fg`.
  @Test func aStopTakesTheDialogAway() async throws {
    try await Self.withItem(locked: true) { keyhole in
      let terminal = try Self.start(
        keyhole,
        """
        exec bash -c 'set -m; keyhole get \(Self.item) < /dev/null > $OUT/read; echo stopped:$?
          \(Self.untilShown); read -r line; echo "[$line]"; fg > /dev/null; echo status:$?; stty -a'
        """)
      try terminal.wait(for: "Passphrase:")
      try keyhole.check("kill -STOP $(pgrep -u $(id -u) -f '^keyhole get \(Self.item)')")
      try terminal.wait(for: "modes:echo", within: LockTests.patience)
      try terminal.type("typed\r")
      try terminal.wait(for: "[typed]")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("\u{15}horse\r")
      let text = try terminal.finish(within: LockTests.patience).text
      #expect(text.contains("status:0") && text.contains("susp = ^Z") && text.contains(" echo "), "\(text)")
      #expect(try System.text(keyhole.world.outside + "/read") == "secret")
    }
  }

  /// The keys are for the program in the foreground.
  @Test func aBackgroundJobGetsNoDialogOnTheTerminal() async throws {
    try await Self.withItem(locked: true) { keyhole in
      let terminal = try Self.start(
        keyhole,
        "exec bash -c 'set -m; cat \(Self.value) > $OUT/read 2> $OUT/why & wait $!; echo status:$?'")
      let text = try terminal.finish(within: LockTests.patience).text
      #expect(text.contains("status:1") && !text.contains("Passphrase"), "\(text)")
      let status = try keyhole.sh("keyhole status").text
      #expect(status.contains("the program is in the background of its terminal"), "\(status)")
    }
  }

  /// The key makes its signal also between two tries. Until the first one has its answer, pinentry may drop what is typed.
  @Test func anInterruptBetweenTwoTriesGivesTheModesBack() async throws {
    try await Self.withItem(locked: true) { keyhole in
      let terminal = try Self.start(
        keyhole, "trap : INT; cat \(Self.value); echo the end; trap '' INT; \(Self.untilShown)")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("wrong\r")
      _ = try terminal.typeAhead("\u{3}", until: "the end", within: .seconds(50))
      #expect(try terminal.finish(within: LockTests.patience).text.contains("modes:echo"))
      #expect(try terminal.echoes)
    }
  }

  /// Also while the process that asks is just starting.
  @Test func aWithdrawalAtAnyMomentGivesTheModesBack() async throws {
    try await Self.withItem(locked: true) { keyhole in
      let terminal = try Self.start(
        keyhole,
        """
        for turn in $(seq 40); do
          cat \(Self.value) > $OUT/read & reader=$!
          for step in $(seq $((turn * 100))); do :; done
          kill $reader; wait $reader
        done
        \(Self.untilShown)
        """)
      let text = try terminal.finish(within: LockTests.patience).text
      #expect(text.contains("modes:echo"), "\(text)")
      #expect(try terminal.echoes)
    }
  }
}
