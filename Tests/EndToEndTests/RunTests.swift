import Glibc
import Testing

/// `keyhole run` where standard streams are pipes and files.
@Suite(.timeLimit(.minutes(2))) struct RunTests {
  static let service = "keychain/generic/my.app"

  /// Without a mount: two accounts and a suite.
  private static func withValues(body: (World) throws -> Void) async throws {
    try await withWorld { world in
      try world.check(
        """
        printf hunter2-hunter2 | keyhole set \(service)/API_KEY
        printf tiny | keyhole set \(service)/PIN
        keyhole set defaults/app/volume 12
        """)
      try body(world)
    }
  }

  private static func refuses(
    _ world: World, _ words: String, status: Int32 = 125, _ reason: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let output = try world.sh("keyhole run \(words)")
    #expect(output.status == status, "\(words): \(output)", sourceLocation: sourceLocation)
    #expect(output.bytes.isEmpty, "\(words): \(output)", sourceLocation: sourceLocation)
    #expect(output.error.contains(reason), "\(words): \(output)", sourceLocation: sourceLocation)
    try world.check("[ ! -e \"$OUT/started\" ]", sourceLocation: sourceLocation)
  }

  @Test func variablesHaveTheNamesOfAccountsAndKeys() async throws {
    try await Self.withValues { world in
      let show = "-- sh -c 'echo \"$API_KEY,$PIN,$volume,$OTHER\"'"
      try world.check("keyhole run \(Self.service) \(show)", prints: "hunter2-hunter2,tiny,,\n")
      try world.check("keyhole run --env my.app/PIN \(show)", prints: ",tiny,,\n")
      try world.check(
        "OTHER=before volume=11 keyhole run defaults/app --env OTHER=my.app/PIN PIN=defaults/app/volume \(show)",
        prints: ",12,12,tiny\n")
      // All else is inherited; a line end is the file's, and not the value's.
      try world.check(
        "printf 'a\\nb\\n\\n' | keyhole set \(Self.service)/LINES; KEPT=1 keyhole run L=my.app/LINES -- sh -c 'printf \"%s.%s\" \"$KEPT\" \"$L\"'",
        prints: "1.a\nb\n")
    }
  }

  @Test func filesAreSealedAndPrivate() async throws {
    try await Self.withValues { world in
      try world.check(
        """
        keyhole run --file KEY=my.app/API_KEY --fd 7=my.app/PIN --file V=defaults/app/volume -- bash -c '
          cat "$KEY"; echo; cat "$KEY" <&7; echo; cat <&7; echo; cat "$V"
          stat -L -c "%a %s" "$KEY"
          for mode in "<>" ">"; do eval "exec 9$mode/proc/self/fd/7" 2> /dev/null && printf x 2> /dev/null >&9; done
          truncate -s 0 "$KEY" 2> /dev/null; chmod 600 "$KEY" && truncate -s 0 "$KEY" 2> /dev/null; printf x 2> /dev/null >> "$KEY"
          cat "$KEY"; echo
          sh -c "cat $KEY"; echo
          env | grep -c hunter2
        '; [ $? = 1 ]
        """,
        prints: "hunter2-hunter2\nhunter2-hunter2\ntiny\n12\n400 15\nhunter2-hunter2\nhunter2-hunter2\n0\n")
    }
  }

  @Test func viewOfVariablesGivesThem() async throws {
    try await Self.withValues { world in
      try world.check(
        """
        printf 'two words' | keyhole set \(Self.service)/WORDS; printf 'a\\nb\\n' | keyhole set \(Self.service)/LINES
        keyhole view app --format env --from \(Self.service) VOLUME=defaults/app/volume
        keyhole view login --format netrc --from host.example/me=\(Self.service)/API_KEY
        """)
      let show = "-- sh -c 'printf \"%s,\" \"$API_KEY\" \"$WORDS\" \"$LINES\" \"$VOLUME\" \"$OTHER\"'"
      for words in ["--view app", "--view views/app", "views/app", "--env views/app"] {
        try world.check(
          "keyhole run \(words) OTHER=my.app/PIN \(show)",
          prints: "hunter2-hunter2,two words,a\nb\n,12,tiny,")
      }
      try world.check(
        "keyhole run --mask --view app -- sh -c 'echo $API_KEY' 2> /dev/null", prints: "[masked]\n")
      // Any view is a file, or one variable.
      try world.check("keyhole get views/login > login; keyhole get views/app > app")
      try world.check(
        "keyhole run --file N=views/login TEXT=views/app -- sh -c 'cmp $N login; printf \"%s\\n\" \"$TEXT\" | cmp - app'"
      )
      let command = "-- touch \"$OUT/started\""
      try Self.refuses(
        world, "--view login \(command)", "its format is netrc, which has no variables; give it")
      try Self.refuses(world, "--view none \(command)", "views/none: there is no such file")
      try Self.refuses(
        world, "--view app PIN=my.app/PIN \(command)", "the variable PIN has a value already")
      // Its file can be written by programs that must not choose the code of another one.
      try world.check("keyhole view code --format env --from LD_PRELOAD=\(Self.service)/PIN")
      try Self.refuses(world, "--view code \(command)", "LD_PRELOAD: a variable of this name decides")
    }
  }

  @Test func changeOfAViewRestarts() async throws {
    try await Self.withValues { world in
      try world.check("keyhole view app --format env --from \(Self.service)/PIN")
      let program = try world.launch(
        "exec keyhole run --on-change=restart --view app -- bash -c 'echo $PIN; exec sleep 100' 2>&1")
      #expect(try program.line() == "tiny")
      try world.check("printf other | keyhole set \(Self.service)/PIN")
      #expect(try program.line() == "other")
      program.signal(SIGTERM)
      #expect(try program.waitForEnd(until: Deadline(in: .seconds(10))) == 128 + SIGTERM)
    }
  }

  @Test func statusIsTheCommandsOwn() async throws {
    try await Self.withValues { world in
      for (command, status) in [("true", 0), ("exit 3", 3), ("exit 255", 255), ("kill -TERM $$", 143)] {
        #expect(try world.sh("keyhole run my.app -- sh -c '\(command)'").status == Int32(status))
      }
      // By the signal itself, so that a script ends as without `keyhole run`.
      try world.check(
        "python3 -c 'import subprocess; print(subprocess.run([\"keyhole\", \"run\", \"--\", \"sh\", \"-c\", \"kill -INT $$\"]).returncode)'",
        prints: "-2\n")
      try Self.refuses(
        world, "my.app -- no-such-command", status: 127, "no-such-command: the command was not found")
      try Self.refuses(world, "my.app -- /etc/passwd", status: 126, "/etc/passwd: it can't be executed")
      // As execvp(3), a script without an interpreter's line is one of the shell.
      try world.check(
        "echo 'echo \"$PIN\"' > script; chmod +x script; keyhole run my.app -- ./script", prints: "tiny\n")
    }
  }

  @Test func nothingIsStartedWhereAValueIsMissing() async throws {
    try await Self.withValues { world in
      let command = "-- touch \"$OUT/started\""
      try world.check(
        """
        printf 'a\\0b' | keyhole set \(Self.service)/NUL; head -c 140000 /dev/zero | tr '\\0' x | keyhole set \(Self.service)/LONG
        printf x | keyhole set keychain/generic/mail/me@example.com; keyhole set defaults/app/LD_PRELOAD x
        """)
      for (words, reason) in [
        ("my.app/NONE", "my.app/NONE: there is no such file"),
        ("keychain/generic/none", "there is no such file"),
        ("A=my.app/PIN A=my.app/API_KEY", "the variable A has a value already"),
        ("A=my.app/NUL", "NUL byte"), ("A=my.app/LONG", "longer than a variable can be"),
        ("keychain/generic/mail", "me@example.com can't be the name of a variable"),
        ("keychain/generic", "name a suite, a service or one value"),
        ("defaults/app", "decides which code runs"),
        ("--file my.app/PIN", "--file takes NAME=PATH"), ("--fd x=my.app/PIN", "--fd takes N=PATH"),
        ("--fd 2=my.app/PIN", "3 or more"), ("--fd 3=my.app/PIN --fd 3=my.app/PIN", "it is given twice"),
        ("--fd 99999999=my.app/PIN", "descriptors end at"),
        ("--on-change=KILL my.app/PIN", "--on-change takes a signal"),
        ("--nonsense", "Unknown option"),
      ] {
        try Self.refuses(world, "\(words) \(command)", reason)
      }
      try Self.refuses(world, "--fd 5=my.app/PIN \(command) 5< /dev/null", "in use already")
      try Self.refuses(world, "my.app/PIN touch \"$OUT/started\"", "stands behind `--`")
      let limited = try world.sh("ulimit -Sl 64; ulimit -Hl 64; keyhole run --file A=my.app/LONG \(command)")
      #expect(limited.status == 125 && limited.error.contains("ulimit -l"), "\(limited)")
      try world.check("[ ! -e \"$OUT/started\" ]")
    }
  }

  /// A stream that is closed gets no number of another file: `run` would wait for the end of its own pipe.
  @Test(arguments: [("<&- 2>&-", 125), ("<&- >&-", 125), ("<&-", 0)] as [(String, Int32)])
  func aClosedStreamIsNoPipe(streams: String, status: Int32) async throws {
    try await withWorld { world in
      let output = try world.sh(
        "printf s3cretvalue | keyhole set keychain/generic/a/A; timeout 20 keyhole run --mask A=keychain/generic/a/A -- sh -c 'echo $A; echo err >&2' \(streams)",
        within: .seconds(40))
      #expect(output.status == status, "\(output)")
    }
  }

  @Test func commandHasTheUsersConditions() async throws {
    try await Self.withValues { world in
      try world.check(
        """
        umask 027; ulimit -Sl 60; trap '' HUP; cd "$OUT"
        keyhole run my.app -- bash -c 'umask; ulimit -Sl; pwd; kill -HUP $$; echo alive; ulimit -Sc; grep SigBlk /proc/self/status'
        """, prints: "0027\n60\n\(world.outside)\nalive\n0\nSigBlk:\t0000000000000000\n")
      try world.check(
        "ulimit -Hc > hard; keyhole run my.app -- bash -c 'ulimit -Hc' | cmp - hard && rm hard")
      // Descriptors that were there, and arguments that are no text.
      try world.check(
        "keyhole run my.app -- sh -c 'cat <&3; printf %s \"$1\" | xxd -p' x $'\\xff=' 3<<< three",
        prints: "three\nff3d\n")
      try world.check("echo in | keyhole run my.app -- cat", prints: "in\n")
    }
  }

  @Test func processIsClosedToOthers() async throws {
    try await Self.withValues { world in
      try world.check(
        """
        keyhole run my.app --file F=my.app/API_KEY -- sh -c '
          for file in environ maps mem; do head -c 1 /proc/$PPID/$file 2> /dev/null; done; ls /proc/$PPID/fd 2> /dev/null; [ "$PIN" = tiny ]'
        """)
    }
  }

  /// A key of several lines, whole, line by line, and in digits that are broken into lines.
  @Test func linesAndDigitsInLinesAreMasked() async throws {
    try await Self.withValues { world in
      try world.check(
        """
        head -c 597 /dev/urandom | base64 | keyhole set keychain/generic/keys/key
        keyhole run --mask --file KEY=keychain/generic/keys/key -- sh -c 'cat "$KEY"; sed -n 3p "$KEY"; base64 "$KEY"; base64 -w 64 "$KEY"; xxd -p "$KEY"' | sort -u
        """, prints: "[masked]\n")
    }
  }

  /// With the limit that the message names, the program is started.
  @Test func theNeededLockedMemoryIsNamed() async throws {
    try await Self.withValues { world in
      try world.check("head -c 200000 /dev/zero | tr '\\0' x | keyhole set keychain/generic/big/big")
      let command = "keyhole run --file BIG=keychain/generic/big/big -- sh -c 'wc -c < \"$BIG\"'"
      let output = try world.sh("ulimit -l 300; \(command)")
      #expect(output.status == 125, "\(output)")
      let needed = output.error.split(separator: " ").compactMap { Int($0) }.first
      let limit = try #require(needed, "\(output)")
      #expect(output.error.contains("the limit is 300 KiB"), "\(output)")
      guard try world.sh("ulimit -l \(limit)").status == 0 else { return }
      try world.check("ulimit -l \(limit); \(command)", prints: "200000\n")
      // Where not even the keychain can be opened, for a small value.
      let small = "keyhole run --file PIN=my.app/PIN -- sh -c 'cat \"$PIN\"'"
      let none = try world.sh("ulimit -l 0; \(small)")
      #expect(none.status == 125 && none.error.contains("the limit is 0 KiB"), "\(none)")
      let least = try #require(none.error.split(separator: " ").compactMap { Int($0) }.first, "\(none)")
      try world.check("ulimit -l \(least); \(small)", prints: "tiny")
    }
  }

  @Test func outputIsMasked() async throws {
    try await Self.withValues { world in
      let script =
        "echo a$API_KEY.; printf %s $API_KEY | base64; echo $API_KEY | xxd -p >&2; printf hunter2; sleep 0.1; echo -hunter; exit 5"
      let output = try world.sh("keyhole run --mask my.app -- bash -c '\(script)'")
      #expect(output.status == 5)
      #expect(output.text == "a[masked].\n[masked]\nhunter2-hunter\n")
      #expect(output.error == "keyhole: a value is not masked: shorter than 8 bytes\n[masked]0a\n")
      // In one file both keep their order, and nothing is lost of much.
      try world.check(
        "keyhole run --mask my.app/API_KEY -- sh -c 'echo 1; echo $API_KEY >&2; echo 3' > both 2>&1; cat both",
        prints: "1\n[masked]\n3\n")
      try world.check(
        "head -c 400000 /dev/urandom > big; keyhole run --mask my.app/API_KEY -- cat big | cmp - big; keyhole run --mask my.app/API_KEY -- cat < big | cmp - big"
      )
      // A reader that has gone ends the command as without a mask.
      try world.check("keyhole run --mask my.app/API_KEY -- yes | head -n 1", prints: "y\n")
    }
  }

  /// Output that can't be written is no success, also where the command has ended by then.
  @Test func outputThatIsLostIsNoSuccess() async throws {
    try await Self.withValues { world in
      let run = "keyhole run --mask my.app/API_KEY --"
      for stream in [">", "2>"] {
        let output = try world.sh("\(run) sh -c 'echo one; echo two >&2' \(stream) /dev/full")
        #expect(output.status == 125, "\(output)")
        if stream == ">" { #expect(output.error.contains("output of the command is lost"), "\(output)") }
      }
      // The command's own exit code says more.
      #expect(try world.sh("\(run) sh -c 'echo one; exit 3' > /dev/full").status == 3)
      // A reader that is gone: without a word, by SIGPIPE; where that is ignored, with one. The command gets it by its first write.
      let reader = "mkfifo pipe; exec 3<> pipe 4> pipe; exec 3>&-; rm pipe"
      let gone = try world.sh("\(reader); \(run) sh -c 'echo one' >&4")
      #expect(gone.status == 128 + SIGPIPE && gone.error.isEmpty, "\(gone)")
      let ignored = try world.sh("\(reader); trap '' PIPE; \(run) sh -c 'echo one' >&4")
      #expect(ignored.status == 125 || ignored.error.contains("I/O error"), "\(ignored)")
      #expect(ignored.status != 0, "\(ignored)")
    }
  }

  @Test func backgroundProcessOutlivesTheCommand() async throws {
    for mask in ["", "--mask"] {
      try await Self.withValues { world in
        let output = try world.sh(
          "mkfifo go; keyhole run \(mask) my.app/API_KEY -- sh -c '(read line < go; echo $line > late) > /dev/null 2>&1 & echo first'; echo go > go; until [ -s late ]; do :; done; cat late"
        )
        #expect(output.status == 0 && output.text == "first\ngo\n", "\(output)")
      }
    }
  }

  @Test func signalsArePassedOn() async throws {
    try await Self.withValues { world in
      for (number, name) in [
        (SIGTERM, "TERM"), (SIGUSR1, "USR1"), (SIGINT, "INT"), (SIGHUP, "HUP"), (SIGXCPU, "XCPU"), (37, "37"),
      ] {
        let program = try world.launch(
          "exec keyhole run my.app -- bash -c 'trap \"kill \\$!; echo got; exit 4\" \(name); sleep 100 & echo ready; wait'"
        )
        #expect(try program.line() == "ready")
        program.signal(number)
        #expect(try program.line() == "got")
        #expect(try program.waitForEnd(until: Deadline(in: .seconds(10))) == 4)
      }
    }
  }

  /// Without a terminal there is no shell that continues the group: only the program stops, and the script around it goes on.
  @Test func aProgramThatStopsItselfStopsNothingElse() async throws {
    try await Self.withValues { world in
      try world.check(
        """
        keyhole run my.app -- sh -c 'echo $$ > "$OUT/new"; mv "$OUT/new" "$OUT/pid"; kill -STOP $$; echo resumed' > "$OUT/log" &
        run=$!; until [ -e "$OUT/pid" ]; do :; done; program=$(cat "$OUT/pid")
        until grep -q 'State:.T' /proc/$program/status; do :; done; echo alive
        kill -CONT $program; wait $run; cat "$OUT/log"
        """, prints: "alive\nresumed\n", within: .seconds(30))
    }
  }

  @Test func changeSendsASignal() async throws {
    try await Self.withValues { world in
      let program = try world.launch(
        "exec keyhole run --on-change=USR1 my.app -- bash -c 'trap \"echo changed $PIN\" USR1; trap \"kill \\$!; exit 0\" TERM; sleep 100 & echo ready; wait; wait'"
      )
      #expect(try program.line() == "ready")
      try world.check("printf other | keyhole set \(Self.service)/PIN")
      // The command's own variable is as it was.
      #expect(try program.line() == "changed tiny")
      program.signal(SIGTERM)
      #expect(try program.waitForEnd(until: Deadline(in: .seconds(10))) == 0)
    }
  }

  @Test func changeRestartsWithAllNewValues() async throws {
    try await withKeyhole { keyhole in
      let world = keyhole.world
      try keyhole.check("printf tiny | keyhole set \(Self.service)/PIN; keyhole set defaults/app/volume 12")
      let program = try world.launch(
        "exec keyhole run --on-change=restart my.app --file V=defaults/app/volume -- bash -c 'echo $PIN,$MORE,$(cat $V); exec sleep 100' 2>&1"
      )
      #expect(try program.line() == "tiny,,12")
      // Through the mount, from outside, and an item more in the service.
      try keyhole.check("printf other > \(Self.service)/PIN/value")
      #expect(try program.line() == "other,,12")
      try keyhole.check("keyhole set defaults/app/volume 13")
      #expect(try program.line() == "other,,13")
      try keyhole.check("printf more | keyhole set \(Self.service)/MORE")
      #expect(try program.line() == "other,more,13")
      // Nothing is ended where the new values can't be had.
      try keyhole.check("keyhole rm -f defaults/app/volume")
      #expect(try program.line()?.contains("goes on with the old values: defaults/app/volume") == true)
      program.signal(SIGTERM)
      #expect(try program.waitForEnd(until: Deadline(in: .seconds(10))) == 128 + SIGTERM)
    }
  }

  /// `keyhole` opens the item, whatever it starts.
  @Test func rulesAndLogKnowWhoAsks() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        printf secret12 | keyhole set \(Self.service)/KEY; keyhole log --all
        keyhole attr \(Self.service)/KEY keyhole.programs "$(printf 'allow /usr/bin/cat\\ndeny *')" 2> /dev/null
        """)
      let output = try keyhole.sh("keyhole run my.app -- /usr/bin/cat /dev/null")
      #expect(output.status == 125 && output.error.contains("\(Self.service)/KEY"), "\(output)")
      try keyhole.check("cat \(Self.service)/KEY/value", prints: "secret12")
      let log = try keyhole.sh("keyhole log --json").lines.filter {
        $0.contains("\"starts\":\"/usr/bin/cat\"")
      }
      #expect(
        log.count == 1 && log[0].contains("\"decision\":\"denied\"") && log[0].contains("bash"), "\(log)")
      #expect(log.allSatisfy { $0.contains("\"program\":\"\(Products.keyhole)\"") })
      #expect(try keyhole.sh("keyhole log").text.contains("\(Products.keyhole) run /usr/bin/cat ("))
    }
  }

  /// An answer for one command is none for another, and none for `keyhole get`.
  @Test func sessionIsApprovedForOneCommand() async throws {
    let decide = "echo \"$KEYHOLE_STARTS\" >> \"${0%/*}/starts\"; exit 11"
    try await AccessTests.withAsked(decide) { keyhole in
      let run = "keyhole run V=\(AccessTests.value) --"
      // A session of its own: that of the tests may have its leader in another pid namespace.
      try keyhole.check(
        """
        setsid -w bash << 'END'
        \(run) sh -c 'echo $V'; \(run) sh -c 'echo $V'; \(run) printenv V
        keyhole get \(AccessTests.value); keyhole get \(AccessTests.value)
        END
        """, prints: "secret\nsecret\nsecret\nsecretsecret")
      try keyhole.check(
        "cat ../starts", prints: "/usr/bin/sh -c 'echo $V'\n/usr/bin/printenv V\n\n")
    }
    // The program that was shown: neither another one of that name, nor another file at its path, nor other words.
    try await AccessTests.withAsked(decide) { keyhole in
      let run = "keyhole run V=\(AccessTests.value) --"
      try keyhole.check(
        """
        mkdir ../a ../b; cp /usr/bin/printenv ../a/show; cp /usr/bin/env ../b/show; a=$(realpath ../a); b=$(realpath ../b); export a b
        cat > ../script << 'END'
        exec > /dev/null 2>&1; PATH=$a:$PATH; cd $a
        \(run) show V; \(run) show V; \(run) show; \(run) show ''; \(run) show V ''
        PATH=$b:$PATH \(run) show V
        \(run) ./show V; \(run) ./show V
        keyhole run W=\(AccessTests.value) V=\(AccessTests.value) -- show V
        cp $a/show $a/new; mv $a/new $a/show; \(run) show V
        printf '\\n' >> $a/show; \(run) show V
        exit 0
        END
        setsid -w bash ../script; sed "s|$a|A|; s|$b|B|" ../starts
        """,
        prints: "A/show V\nA/show\nA/show ''\nA/show V ''\nB/show V\nA/show V\nA/show V\nA/show V\nA/show V\n"
      )
    }
    // No rule is offered: it would be one for `keyhole`.
    try await AccessTests.withAsked("exit 12") { keyhole in
      let output = try keyhole.sh("keyhole run V=\(AccessTests.value) -- true")
      #expect(output.status == 125, "\(output)")
      try keyhole.check("! keyhole attr \(AccessTests.item) keyhole.programs 2> /dev/null")
    }
  }
}
