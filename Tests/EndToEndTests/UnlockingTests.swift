import Glibc
import Testing

/// A locked secret that is wanted has its user asked for the passphrase.
@Suite(.timeLimit(.minutes(5))) struct UnlockingTests {
  private static let item = "keychain/generic/s/p"
  private static let value = item + "/value"
  /// A command before the pipe that fails removes no passphrase; an empty line does, and says so.
  @Test func anEndOfInputRemovesNoPassphrase() async throws {
    try await withWorld { world in
      try world.check(
        "printf s | keyhole set \(Self.value); \(Self.setPassphrase)", within: LockTests.patience)
      let ended = try world.sh("{ echo horse; false; } | keyhole passphrase --cost 14")
      #expect(
        ended.status == 1 && ended.error.contains("the input ended before the new passphrase"), "\(ended)")
      #expect(try world.sh("keyhole get \(Self.value)").status == 4)
      let removed = try world.sh("printf 'horse\\n\\n' | keyhole passphrase --cost 14")
      #expect(
        removed.status == 0 && removed.error.contains("The vault has no passphrase any more"), "\(removed)")
      try world.check("keyhole get \(Self.value)", prints: "s")
    }
  }

  /// On a terminal two empty lines don't do.
  @Test func theRemovalIsConfirmed() async throws {
    try await withWorld { world in
      try world.check(
        "printf s | keyhole set \(Self.value); \(Self.setPassphrase)", within: LockTests.patience)
      for (answer, status) in [("", Int32(5)), ("yes", 0)] {
        let terminal = try Terminal(
          ["/bin/sh", "-c", "exec keyhole passphrase --cost 14 2>&1"], environment: world.environment,
          directory: world.outside, errors: world.outside + "/errors")
        try terminal.wait(for: "Present passphrase:")
        try terminal.type("horse\r")
        try terminal.wait(for: "New passphrase")
        try terminal.type("\r")
        try terminal.wait(for: "Once more:")
        try terminal.type("\r")
        try terminal.wait(for: "`yes` does it")
        try terminal.type(answer + "\r")
        let run = try terminal.finish()
        #expect(run.status == status, "\(run)")
      }
      try world.check("keyhole get \(Self.value)", prints: "s")
    }
  }

  /// Import and export ask as the other commands do.
  @Test func importAndExportAskOnATerminal() async throws {
    try await withWorld { world in
      try world.check(
        "printf s | keyhole set \(Self.value); \(Self.setPassphrase)", within: LockTests.patience)
      try world.check("echo A=b > $OUT/new.env")
      for command in [
        "keyhole export --plain -o $OUT/all.json", "keyhole import --to keychain/generic/new $OUT/new.env",
      ] {
        let terminal = try Terminal(
          ["/bin/sh", "-c", command + " 2>&1"], environment: world.environment, directory: world.outside,
          errors: world.outside + "/errors")
        try terminal.wait(for: "assphrase")
        try terminal.type("horse\r")
        let run = try terminal.finish()
        #expect(run.status == 0, "\(run)")
      }
      try world.check(
        "grep -c '\"s\"' $OUT/all.json; echo horse | keyhole unlock 2> /dev/null; true", prints: "1\n")
    }
  }

  private static let setPassphrase = "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null"

  /// A locked vault with one item, and a program in the place of the person: it notes each question, and then runs `answer`.
  private static func withLocked(
    _ answer: String, _ options: String..., body: (MountedKeyhole) throws -> Void
  ) async throws {
    try await withWorld { world in
      try world.check(
        """
        printf '%s\\n' '#!/bin/sh' 'echo "$KEYHOLE_OPERATION $1 ${2##*/}" >> "$OUT/asked"' '\(answer)' > "$OUT/person"
        chmod +x "$OUT/person"; touch "$OUT/asked"; mkfifo "$OUT/opened" "$OUT/go"
        """)
      let keyhole = MountedKeyhole(
        world, options: ["keychain=vault", "auth-command=\(world.outside)/person"] + options)
      defer { keyhole.cleanUp() }
      try keyhole.start()
      try keyhole.check("mkdir -p \(item); printf secret > \(value)")
      try world.check(setPassphrase, within: LockTests.patience)
      try world.check("keyhole lock")
      try body(keyhole)
    }
  }

  private static func asked(_ keyhole: MountedKeyhole) throws -> [String] {
    try System.text(keyhole.world.outside + "/asked").split(separator: "\n").map(String.init)
  }

  @Test func anOpenAsksOnce() async throws {
    try await Self.withLocked("echo horse") { keyhole in
      try keyhole.check("cat \(Self.value)", prints: "secret", within: LockTests.patience)
      try keyhole.check("cat \(Self.value)", prints: "secret")
      #expect(try Self.asked(keyhole) == ["unlock \(Self.value) cat"])
      try keyhole.check(
        "keyhole lock; printf new > \(Self.value); cat \(Self.value)", prints: "new",
        within: LockTests.patience)
      try keyhole.check(
        "keyhole lock; setfattr -n user.keyhole.access -v devicePasscode \(Self.item)",
        within: LockTests.patience)
    }
  }

  @Test func oneQuestionForAllThatWait() async throws {
    try await Self.withLocked("echo > \"$OUT/opened\"; read -r go < \"$OUT/go\"; echo horse") { keyhole in
      try keyhole.check(
        """
        for i in 1 2 3 4 5 6 7 8; do cat \(Self.value) & done
        read -r opened < "$OUT/opened"; echo > "$OUT/go"; wait
        """, prints: String(repeating: "secret", count: 8), within: LockTests.patience)
      #expect(try Self.asked(keyhole).count == 1)
    }
  }

  @Test func commandsAndWrappersHaveTheMountAsk() async throws {
    try await Self.withLocked("echo horse") { keyhole in
      let world = keyhole.world
      try world.check("keyhole get \(Self.value)", prints: "secret", within: LockTests.patience)
      try world.check("keyhole lock; printf new | keyhole set \(Self.value)", within: LockTests.patience)
      try world.check("keyhole lock; keyhole attr \(Self.item) comment x", within: LockTests.patience)
      try world.check(
        "WrapperProgram secret app one; keyhole lock; WrapperProgram get app", prints: "one\n",
        within: LockTests.patience)
      #expect(
        try Self.asked(keyhole) == [
          "unlock \(Self.value) keyhole", "unlock \(Self.value) keyhole", "unlock \(Self.item) keyhole",
          "unlock keychain/generic/app/ WrapperProgram",
        ])
      // Before the first unlocking, not even names are known.
      try keyhole.remount()
      try world.check("WrapperProgram get app", prints: "one\n", within: LockTests.patience)
      try keyhole.remount()
      try world.check("keyhole get \(Self.value)", prints: "new", within: LockTests.patience)
      // The variable switches it off.
      try world.check("keyhole lock; ! KEYHOLE_ASK_UNLOCK=no keyhole get \(Self.value) 2> /dev/null")
      try world.check("KEYHOLE_ASK_UNLOCK=no WrapperProgram get app 2> /dev/null", prints: "nil\n")
      #expect(try Self.asked(keyhole).count == 6)
    }
  }

  @Test func unlockOfAnOpenVaultAsksAndReadsNothing() async throws {
    try await Self.withLocked("exit 1") { keyhole in
      let world = keyhole.world
      let locked = try world.sh("keyhole unlock < /dev/null")
      #expect(locked.status == 4 && locked.error.contains("no passphrase was given"), "\(locked)")
      try world.check("echo horse | keyhole unlock 2>&1", prints: "", within: LockTests.patience)
      let open = try world.sh("(keyhole unlock; cat) <<< next")
      #expect(open.status == 0 && open.text == "next\n", "\(open)")
      #expect(open.error.isEmpty, "\(open)")
    }
  }

  /// The mount knows the names from before, and has no key of the vault as it is now.
  @Test func aCommandAsksAfterThePassphraseWasChanged() async throws {
    try await Self.withLocked("echo cow") { keyhole in
      let world = keyhole.world
      try world.check(
        "printf 'horse\\ncow\\n' | keyhole passphrase --weak --cost 14 2> /dev/null",
        within: LockTests.patience)
      try world.check("keyhole get \(Self.value)", prints: "secret", within: LockTests.patience)
      #expect(try Self.asked(keyhole).count == 1)
    }
  }

  @Test func aRefusalIsENOKEYAndNotRepeated() async throws {
    try await Self.withLocked("exit 1") { keyhole in
      let output = try keyhole.sh("for turn in 1 2 3; do cat \(Self.value); done; keyhole get \(Self.value)")
      #expect(output.status == 4 && output.error.contains("Required key not available"), "\(output)")
      #expect(try Self.asked(keyhole).count == 1)
      try keyhole.world.check("keyhole status | grep -q 'is locked.*(a person refused)'")
    }
  }

  /// A person types two commands in a shell: what the first one starts is not asked again, wherever it runs.
  @Test func aRefusalIsValidForAProcessTree() async throws {
    try await Self.withLocked("exit 1") { keyhole in
      let first =
        "cat \(Self.value); cat \(Self.value); setsid -w cat \(Self.value); (cat \(Self.value) &) | cat"
      let count = "wc -l < $OUT/asked"
      try keyhole.check(
        "setsid -w /bin/sh -c 'sh -c \"\(first); \(count)\"; sh -c \"cat \(Self.value); \(count)\"' 2> /dev/null",
        prints: "1\n2\n")
    }
  }

  @Test func threeWrongPassphrasesAreENOKEY() async throws {
    try await Self.withLocked("echo cow") { keyhole in
      try keyhole.refuses("cat \(Self.value)", .noKey)
      #expect(try Self.asked(keyhole).count == 3)
      try keyhole.world.check("keyhole status | grep -q 'wrong three times'")
    }
  }

  @Test func whatNeverAsks() async throws {
    try await Self.withLocked("echo horse") { keyhole in
      try keyhole.refuses("dd if=\(Self.value) iflag=nonblock status=none", .noKey)
      try keyhole.check(
        "stat \(Self.value) > /dev/null; ls -lR keychain > /dev/null; getfattr -d \(Self.item) > /dev/null")
      #expect(try Self.asked(keyhole).isEmpty)
    }
    try await Self.withLocked("echo horse", "ask-unlock=no") { keyhole in
      try keyhole.refuses("cat \(Self.value)", .noKey)
      #expect(try keyhole.world.sh("keyhole get \(Self.value)").error.contains("locked"))
      try keyhole.remount()
      try keyhole.refuses("cat \(Self.value)", .noKey)
      #expect(try Self.asked(keyhole).isEmpty)
    }
  }

  @Test func inAVaultThatWasNeverUnlockedANameAsks() async throws {
    try await Self.withLocked("echo horse") { keyhole in
      try keyhole.remount()
      try keyhole.refuses("ls keychain/generic", .noKey)
      try keyhole.check(
        "ls -l keychain > /dev/null; [ ! -e keychain/generic/.git ]; stat keychain/generic > /dev/null")
      try keyhole.check("[ ! -e keychain/generic/HEAD ]")
      // A shell whose command line is being typed looks whether paths are there.
      let terminal = try Terminal(
        ["/bin/sh", "-c", "stty -icanon; [ -e \(Self.value) ]"],
        environment: keyhole.world.environment, directory: keyhole.mount,
        errors: keyhole.world.outside + "/errors")
      #expect(try terminal.finish().status == 1)
      #expect(try Self.asked(keyhole).isEmpty)
      try keyhole.check("cat \(Self.value)", prints: "secret", within: LockTests.patience)
      #expect(try Self.asked(keyhole) == ["unlock keychain/generic/s cat"])
    }
  }

  @Test func anInterruptEndsTheQuestion() async throws {
    try await Self.withLocked("echo > \"$OUT/opened\"; exec sleep 60") { keyhole in
      try keyhole.check(
        """
        cat \(Self.value) 2> /dev/null & reader=$!
        read -r opened < "$OUT/opened"; kill $reader; ! wait $reader
        """)
      // It is no refusal.
      try keyhole.check(
        """
        printf '%s\\n' '#!/bin/sh' 'echo horse' > "$OUT/person.new"; chmod +x "$OUT/person.new"
        mv "$OUT/person.new" "$OUT/person"; cat \(Self.value)
        """, prints: "secret", within: LockTests.patience)
    }
  }

  /// The vault is this command's alone, and locked for the next one.
  @Test func withoutAMountACommandUnlocksForItself() async throws {
    try await Self.withLocked("exit 1") { keyhole in
      let world = keyhole.world
      try keyhole.unmount()
      let terminal = try Terminal(
        ["/bin/sh", "-c", "keyhole get \(Self.value) > \"$OUT/read\" 2> /dev/tty"],
        environment: world.environment,
        directory: world.outside, errors: world.outside + "/errors")
      for (typed, answer) in [("cow\r", "Passphrase of the vault:"), ("horse\r", "2 tries are left")] {
        try terminal.wait(for: answer)
        if typed == "horse\r" { try terminal.wait(for: "Passphrase of the vault:") }
        try terminal.type(typed)
      }
      #expect(try terminal.finish(within: LockTests.patience).status == 0)
      #expect(try System.text(world.outside + "/read") == "secret")
      let output = try world.sh("setsid -w keyhole get \(Self.value) < /dev/null")
      #expect(output.status == 4 && output.error.contains("locked"))
    }
  }

  /// Short names are looked up in the vault that the values come from.
  @Test(arguments: ["X=s/p", "--file F=s/p", "X=s/p --file F=s"])
  func runAsksOnceForShortNames(values: String) async throws {
    try await Self.withLocked("exit 1") { keyhole in
      let world = keyhole.world
      try keyhole.unmount()
      let terminal = try Terminal(
        ["/bin/sh", "-c", "keyhole run \(values) -- sh -c 'echo \"<${X-$(cat \"$F\")}>\"' 2> /dev/tty"],
        environment: world.environment, directory: world.outside, errors: world.outside + "/errors")
      try terminal.wait(for: "Passphrase of the vault:")
      try terminal.type("horse\r")
      let output = try terminal.finish(within: LockTests.patience)
      #expect(output.status == 0 && output.text.contains("<secret>"), "\(output)")
    }
  }

  @Test func setAsksForThePassphraseBeforeTheValue() async throws {
    try await Self.withLocked("exit 1") { keyhole in
      let world = keyhole.world
      try keyhole.unmount()
      let terminal = try Terminal(
        ["/bin/sh", "-c", "keyhole set \(Self.value) 2> /dev/tty"], environment: world.environment,
        directory: world.outside, errors: world.outside + "/errors")
      try terminal.wait(for: "Passphrase of the vault:")
      try terminal.type("horse\r")
      try terminal.wait(for: "Value of", within: LockTests.patience)
      try terminal.wait(for: ": ")
      try terminal.type("new\r")
      try terminal.wait(for: "again: ")
      try terminal.type("new\r")
      #expect(try terminal.finish(within: LockTests.patience).status == 0)
      try keyhole.start()
      try world.check(
        "echo horse | keyhole unlock; keyhole get \(Self.value)", prints: "new", within: LockTests.patience)
    }
  }

  @Test func mountOnATerminalOffersToUnlock() async throws {
    try await Self.withLocked("exit 1") { keyhole in
      let world = keyhole.world
      try keyhole.unmount()
      for (typed, isLocked) in [("\r", "yes"), ("horse\r", "no")] {
        let terminal = try Terminal(
          ["/bin/sh", "-c", "keyhole mount -o keychain=vault \"$1\" 2> /dev/tty", "sh", keyhole.mount],
          environment: world.environment,
          directory: world.outside, errors: world.outside + "/errors")
        try terminal.wait(for: "Passphrase of the vault (Return: leave it locked):")
        try terminal.type(typed)
        #expect(try terminal.finish(within: LockTests.patience).status == 0)
        try world.check(
          "keyhole status | grep -o '^locked  *[a-z]*' | grep -q ' \(isLocked)$'; keyhole unmount")
      }
      // Without a terminal it says so.
      let output = try world.sh(
        "keyhole mount -o keychain=vault '\(keyhole.mount)' < /dev/null; keyhole unmount")
      #expect(
        output.status == 0 && output.error.contains("the keychain is locked; `keyhole unlock` opens it"))
    }
  }
}

/// `keyhole passphrase`: weak ones, the recovery code, the credential.
@Suite(.timeLimit(.minutes(5))) struct PassphraseCommandTests {
  private static let value = "keychain/generic/s/p/value"
  private static let strong = "violet cargo anthem puddle wrench"

  @Test func aWeakPassphraseIsNamedSo() async throws {
    try await withWorld { world in
      try world.check("printf s | keyhole set \(Self.value)")
      let refused = try world.sh("echo hunter2 | keyhole passphrase --cost 14")
      #expect(refused.status == 1 && refused.error.contains("weak") && refused.error.contains("--weak"))
      try world.check("keyhole get \(Self.value)", prints: "s")
      let terminal = try Terminal(
        ["/bin/sh", "-c", "keyhole passphrase --cost 14 > \"$OUT/code\" 2> /dev/tty"],
        environment: world.environment,
        directory: world.outside, errors: world.outside + "/errors")
      try terminal.wait(for: "New passphrase")
      try terminal.type("hunter2\r")
      try terminal.wait(for: "This passphrase is weak")
      try terminal.wait(for: "`yes` does")
      try terminal.type("\r")
      try terminal.wait(for: "New passphrase")
      try terminal.type(Self.strong + "\r")
      try terminal.wait(for: "Once more")
      try terminal.type(Self.strong + "\r")
      try terminal.wait(for: "recovery code", within: LockTests.patience)
      #expect(try terminal.finish(within: LockTests.patience).status == 0)
      // On a terminal there is a code, and it opens the vault.
      try world.check(
        """
        (cat "$OUT/code"; echo '\(Self.strong) other') | keyhole passphrase --recover --cost 14 > "$OUT/next" 2> /dev/null
        keyhole mount -o keychain=vault '\(world.mount)' < /dev/null 2> /dev/null; echo '\(Self.strong) other' | keyhole unlock
        keyhole get \(Self.value); keyhole unmount
        ! cmp -s "$OUT/code" "$OUT/next"
        """, prints: "s", within: LockTests.patience)
    }
  }

  @Test func aCodeStaysTheSameUntilItIsReplaced() async throws {
    try await withWorld { world in
      try world.check("printf s | keyhole set \(Self.value)")
      try world.check(
        """
        echo '\(Self.strong)' | keyhole passphrase --cost 14 --recovery-code new > "$OUT/code" 2> "$OUT/said"
        grep -q 'shown this once' "$OUT/said"
        printf '%s\\n' '\(Self.strong)' '\(Self.strong) b' | keyhole passphrase --cost 14 2> "$OUT/said"
        grep -q 'the same as before' "$OUT/said"
        (cat "$OUT/code"; echo '\(Self.strong) c') | keyhole passphrase --recover --cost 14 > /dev/null 2> "$OUT/said"
        grep -q 'the place of the code that was typed' "$OUT/said"
        """, within: LockTests.patience)
      let used = try world.sh(
        "(cat \"$OUT/code\"; echo '\(Self.strong) d') | keyhole passphrase --recover --cost 14")
      #expect(used.status == 5 && used.error.contains("not the vault's recovery code"))
      // It is refused before a new passphrase is asked for.
      let terminal = try Terminal(
        ["/bin/sh", "-c", "keyhole passphrase --recover --cost 14 2> /dev/tty"],
        environment: world.environment, directory: world.outside, errors: world.outside + "/errors")
      try terminal.wait(for: "Recovery code:")
      try terminal.type(try System.text(world.outside + "/code").filter { $0 != "\n" } + "\r")
      try terminal.wait(for: "not the vault's recovery code")
      try terminal.wait(for: "Recovery code:")
      try terminal.type("\u{3}")
      #expect(try terminal.finish().status != 0)
      let mistyped = try world.sh("(echo 0000-1111; echo '\(Self.strong) d') | keyhole passphrase --recover")
      #expect(mistyped.status == 5 && mistyped.error.contains("28 digits and letters"), "\(mistyped)")
    }
  }

  /// As pam_exec(8) calls it, for the user of the test. The mount comes after the login.
  @Test func aLoginUnlocksTheMount() async throws {
    try await withWorld { world in
      try world.check(
        """
        printf s | keyhole set \(Self.value); echo '\(Self.strong)' | keyhole passphrase --cost 14 2> /dev/null
        printf '\(Self.strong)\\0' | PAM_USER=$(id -un) keyhole unlock --pam
        keyhole mount -o keychain=vault '\(world.mount)' < /dev/null 2> /dev/null
        until keyhole status | grep -q '^locked  *no$'; do :; done; KEYHOLE_ASK_UNLOCK=no keyhole get \(Self.value)
        keyhole unmount
        """, prints: "s", within: LockTests.patience)
      #expect(try world.sh("echo x | PAM_USER=root keyhole unlock --pam").status == 1)
      #expect(try world.sh("echo x | keyhole unlock --pam").error.contains("PAM_USER"))
    }
  }

  @Test func aCredentialOpensTheMount() async throws {
    try await withWorld { world in
      try world.check(
        """
        printf s | keyhole set \(Self.value); mkdir "$OUT/credentials"
        echo '\(Self.strong)' | keyhole passphrase --cost 14 2> /dev/null
        echo '\(Self.strong)' | keyhole passphrase --cost 14 --add-credential "$OUT/credentials/keyhole.unlock" 2> /dev/null
        export CREDENTIALS_DIRECTORY="$OUT/credentials"
        keyhole mount -o keychain=vault '\(world.mount)' < /dev/null
        keyhole get \(Self.value); keyhole status | grep -o 'a systemd credential, with which any program'
        keyhole unmount
        echo '\(Self.strong)' | keyhole passphrase --cost 14 --remove-credential 2> /dev/null
        keyhole mount -o keychain=vault '\(world.mount)' < /dev/null 2> "$OUT/said"; grep -q 'is locked' "$OUT/said"
        keyhole status | grep -q 'does not open it'; keyhole unmount
        """, prints: "sa systemd credential, with which any program\n", within: LockTests.patience)
    }
  }
}
