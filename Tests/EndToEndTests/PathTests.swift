import Glibc
import Testing

/// The paths that commands take, and what they say of wrong ones.
@Suite(.timeLimit(.minutes(1))) struct PathTests {
  private static let secrets = """
    echo one | keyhole set keychain/generic/my.service/peter; keyhole set defaults/com.example.app/volume 11
    echo two | keyhole set 'keychain/internet/mail.example/me;port=993'
    echo a | keyhole set keychain/generic/both/a; echo b | keyhole set keychain/internet/both/a

    """

  @Test func pathsOfTheMountAreTaken() async throws {
    try await withKeyhole { keyhole in
      try keyhole.world.check(Self.secrets)
      try keyhole.world.check(
        """
        keyhole get "$MOUNT/defaults/com.example.app/volume"; ln -s "$MOUNT/keychain/generic/my.service/peter/value" ~/link
        keyhole get ~/link; echo; cd "$MOUNT/defaults"; keyhole get com.example.app/volume; keyhole ls; keyhole ls ..
        cd com.example.app; keyhole set other 12; keyhole get ../com.example.app/other; keyhole rm other; keyhole ls .
        cd "$MOUNT/keychain/generic/my.service"; keyhole get peter; echo; echo three | keyhole set paul; keyhole ls
        """,
        prints:
          "11\none\n11\ncom.example.app\ndefaults\nkeychain\ntemplates\nviews\n12\nvolume\none\npaul\npeter\n"
      )
      try keyhole.world.check("cd \"$MOUNT/keychain\"; keyhole get my.service/paul", prints: "three")
    }
  }

  @Test func aSettingComesFromTheMountThatShowsIt() async throws {
    try await withKeyhole { keyhole in
      try keyhole.world.check("keyhole set defaults/s/k one; keyhole get defaults/s/k", prints: "one\n")
      try keyhole.world.check(
        """
        keyhole set defaults/s/k two; keyhole get defaults/s/k
        mkdir "$OUT/other"; XDG_CONFIG_HOME="$OUT/other" keyhole set defaults/s/k three
        XDG_CONFIG_HOME="$OUT/other" keyhole get defaults/s/k; keyhole get defaults/s/k
        """, prints: "two\nthree\ntwo\n")
      let missing = try keyhole.world.sh("keyhole get defaults/s/kk")
      #expect(missing.status == 3 && missing.error.contains("did you mean"), "\(missing)")
      let process = try keyhole.process
      kill(process, SIGSTOP)
      defer { kill(process, SIGCONT) }
      try keyhole.world.check("keyhole get defaults/s/k", prints: "two\n")
    }
  }

  @Test func shortNamesReadAndEdit() async throws {
    try await withWorld { world in
      try world.check(Self.secrets)
      try world.check(
        """
        keyhole get my.service/peter; keyhole get my.service; keyhole get mail.example/me; echo new | keyhole set my.service
        keyhole get my.service; echo; keyhole ls my.service; keyhole attr mail.example port
        keyhole export --plain --format env my.service
        """, prints: "oneonetwonew\npeter\n993\npeter='new'\n")
      let several = try world.sh("keyhole get both/a")
      #expect(
        several.status == 1 && several.error.contains("keychain/generic/both/a, keychain/internet/both/a"),
        "\(several)")
    }
  }

  @Test func shortNamesLeadToFilesCopiesAndChanges() async throws {
    try await withWorld { world in
      try world.check(Self.secrets)
      try world.check(
        """
        uri='otpauth://totp/A:b?secret=JBSWY3DPEHPK3PXP&issuer=A'
        echo "$uri" | keyhole set keychain/generic/my.service/peter/otpauth
        keyhole get my.service/peter/value; keyhole get my.service/peter/otpauth | grep -c JBSWY3DPEHPK3PXP
        keyhole get my.service/peter/otp | grep -cE '^[0-9]{6}$'
        keyhole cp my.service/peter keychain/generic/copy/peter; keyhole get copy/peter
        keyhole cp -r copy keychain/generic/copies; keyhole ls keychain/generic/copies
        """, prints: "one1\n1\nonepeter\n")
      try world.fails("keyhole get mail.example/me/otpauth", status: 3)
      try world.fails("echo x | keyhole set mail.example/me/otpauth", status: 3)
    }
  }

  @Test func shortNamesCreateAndRemoveNothing() async throws {
    try await withWorld { world in
      try world.check(Self.secrets)
      for command in [
        "keyhole rm my.service/peter", "keyhole rm -r my.service",
        "keyhole mv my.service/peter keychain/generic/x/y",
        "echo x | keyhole set new/item", "keyhole generate new/item",
        "keyhole cp keychain/generic/my.service/peter x/y",
      ] {
        try world.fails(command, status: 3)
      }
      try world.check("keyhole get my.service; keyhole ls keychain/generic", prints: "oneboth\nmy.service\n")
    }
  }

  @Test(arguments: [
    ("keyhole get my.servic/peter", "keychain/generic/my.service/peter"),
    ("keyhole get com.example.app/volume", "defaults/com.example.app/volume"),
    ("keyhole get defaults/com.exampel.app/volume", "defaults/com.example.app/volume"),
    ("keyhole ls defalts", "defaults"),
    ("keyhole get keychian/generic/my.service/peter", "keychain/generic/my.service/peter"),
    ("keyhole ls keychain/generc", "keychain/generic"), ("keyhole gett x", "`get`"), ("keyhole list", "`ls`"),
    ("keyhole lsit", "`ls`"), ("keyhole help gett", "`get`"),
    ("keyhole cluster memebrs", "`cluster members`"), ("keyhole help cluster memebrs", "`cluster members`"),
    ("keyhole credential instal git", "`install`"), ("keyhole mount -o ask-unlok=no", "`ask-unlock`"),
  ])
  func wrongNamesHaveALikelyOne(script: String, meant: String) async throws {
    try await withWorld { world in
      try world.check(Self.secrets)
      let output = try world.sh(script)
      #expect(output.error.contains("did you mean \(meant)?") && output.status > 1, "\(output)")
    }
  }

  @Test func missingMountIsThree() async throws {
    try await withWorld { world in
      for command in ["status", "lock", "unlock", "unmount", "unmount /mnt"] {
        try world.fails("keyhole \(command)", status: 3)
      }
    }
  }

  /// The keychain is locked, but the settings need none.
  @Test func lockedIsFour() async throws {
    try await withKeyhole { keyhole in
      try keyhole.world.check(Self.secrets)
      try keyhole.check(
        "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null; keyhole lock", within: .seconds(30))
      for command in [
        "keyhole get keychain/generic/my.service/peter", "keyhole export --plain keychain/generic",
      ] {
        try keyhole.world.fails(command, status: 4)
      }
      try keyhole.world.check("keyhole get defaults/com.example.app/volume", prints: "11\n")
    }
  }

  @Test func usageErrorsHaveTheUsage() async throws {
    try await withWorld { world in
      let output = try world.sh("keyhole get a b")
      let lines = output.error.split(separator: "\n")
      #expect(
        output.status == 2 && lines.count == 2 && lines[1] == "Usage: keyhole get [--quiet] <path>",
        "\(output)")
    }
  }
}

/// `mv`, `cp`, `generate`, `clip`, and lists for programs.
@Suite(.timeLimit(.minutes(1))) struct ItemCommandTests {
  @Test func itemsAndKeysAreMovedAndCopied() async throws {
    try await withKeyhole { keyhole in
      try keyhole.world.check(
        """
        echo one | keyhole set keychain/generic/s/a; keyhole attr keychain/generic/s/a comment note
        keyhole cp keychain/generic/s/a keychain/generic/t/b; keyhole mv keychain/generic/s/a keychain/generic/u/a
        keyhole attr t/b comment; keyhole get t/b; keyhole get u/a; keyhole ls keychain/generic
        keyhole set defaults/s/k 007; keyhole cp defaults/s/k defaults/t/l; keyhole mv defaults/s/k defaults/t
        keyhole ls defaults/t; keyhole attr defaults/t/l keyhole.type
        """, prints: "note\noneonet\nu\nk\nl\nstring\n")
      try keyhole.check("cat keychain/generic/t/b/value keychain/generic/u/a/value", prints: "oneone")
      try keyhole.world.fails("keyhole cp keychain/generic/t/b defaults/s/k", status: 1)
      try keyhole.world.fails("keyhole mv defaults/t/l keychain/generic/t/c", status: 1)
      try keyhole.world.fails("keyhole cp keychain/generic/t/b keychain/generic/u/a", status: 1)
    }
  }

  @Test func generatedSecretsAreStoredOrPrinted() async throws {
    try await withWorld { world in
      try world.check(
        """
        keyhole generate | wc -c; keyhole generate -l 40 -s | wc -c; keyhole generate -w 5 --separator ' ' | wc -w
        keyhole generate keychain/generic/s/a; keyhole get s/a | wc -c; before=$(keyhole get s/a)
        keyhole generate keychain/generic/s/a 2> /dev/null || echo "$?"; [ "$(keyhole get s/a)" = "$before" ]
        keyhole generate --replace --show s/a > "$OUT/shown"; [ "$(keyhole get s/a)" = "$(cat "$OUT/shown")" ]
        [ "$(keyhole get s/a)" != "$before" ]
        """, prints: "25\n41\n5\n24\n1\n")
    }
  }

  /// A stand-in for xclip, which shows what it gets, and how it is called.
  @Test func clipboardIsEmptiedIfItStillHoldsTheSecret() async throws {
    try await withWorld { world in
      try world.check(
        """
        mkdir "$OUT/bin"; printf '%s\\n' '#!/bin/sh' 'echo "$@" >> "$OUT/calls"; case $* in *-out) cat "$OUT/board";;
        *) cat > "$OUT/new"; mv "$OUT/new" "$OUT/board"; echo changed > "$OUT/fifo";; esac' > "$OUT/bin/xclip"
        chmod +x "$OUT/bin/xclip"; mkfifo "$OUT/fifo"; exec 3<> "$OUT/fifo"
        export OUT DISPLAY=:99 PATH="$OUT/bin:$PATH"; unset WAYLAND_DISPLAY
        echo hunter2 | keyhole set keychain/generic/s/a; keyhole clip -s 1 s/a; read line <&3; cat "$OUT/board"; echo
        read line <&3; wc -c < "$OUT/board"; grep -c hunter2 "$OUT/calls" || :
        keyhole clip -s 1 s/a; read line <&3; echo other > "$OUT/board"; until [ $(grep -c out "$OUT/calls") = 2 ]; do :; done
        cat "$OUT/board"
        """, prints: "hunter2\n0\n0\nother\n")
    }
  }

  @Test func listsForProgramsAreJSON() async throws {
    try await withWorld { world in
      try world.check(
        """
        echo one | keyhole set keychain/generic/s/a; keyhole set defaults/s/k '"quoted"'
        keyhole ls --json defaults/s | jq -r '.[] | "\\(.name) \\(.path) \\(.type) \\(.size)"'
        keyhole attr --json keychain/generic/s/a | jq -r '.[] | select(.name == "user.account").value'
        keyhole find --json a | jq -r '.[].path'; keyhole search --json service=s | jq -r '.[].path'; keyhole view --json
        keyhole view v --format env --from A=keychain/generic/s/a; keyhole view --json | jq -c '.[]'; keyhole ls --json keychain/other
        keyhole doctor --json | jq -r 'type' || :; keyhole history --json keychain/generic/s; keyhole config --json | jq -r '.[0].key'
        keyhole rules --json keychain/generic/s/a | jq -c '.[]'; keyhole config --json history | jq .value
        """,
        prints: """
          k defaults/s/k string 9
          a
          keychain/generic/s/a
          keychain/generic/s/a
          []
          {"name":"v","path":"views/v","format":"env","dialect":"portable","references":1,"links":[]}
          []
          array
          []
          ask-unlock
          {"place":"","rule":"allow"}
          10

          """)
    }
  }

  /// Colours and columns are for a terminal that wants them.
  @Test func listOnATerminalHasColumnsAndColours() async throws {
    try await withWorld { world in
      try world.check("keyhole set defaults/s/k 1; keyhole set defaults/s/long text")
      let coloured = try world.sh("TERM=xterm script -qec 'keyhole ls -l defaults/s' /dev/null")
      #expect(coloured.text.contains("\u{1B}[2minteger\u{1B}[0m  2  "), "\(coloured)")
      let plain = try world.sh("NO_COLOR=1 TERM=xterm script -qec 'keyhole ls -l defaults/s' /dev/null")
      #expect(plain.text.contains("integer  2  20") && plain.text.contains("string   5  20"), "\(plain)")
      #expect(!plain.text.contains("\u{1B}"))
    }
  }

  /// The bar comes when a second is over, here because another process has the suite's lock, and goes at the end.
  @Test func progressIsShownAfterASecond() async throws {
    try await withWorld { world in
      try world.check(
        "keyhole set defaults/s/k 1; keyhole export defaults > \"$OUT/e\"; keyhole set defaults/s/k 2; mkfifo \"$OUT/go\" \"$OUT/held\""
      )
      let quick = try Terminal(
        ["/bin/sh", "-c", "TERM=xterm keyhole import -n \"$OUT/e\" 2>&1"], environment: world.environment,
        directory: world.outside, errors: world.outside + "/errors")
      #expect(try !quick.finish().text.contains("importing"))
      let terminal = try Terminal(
        [
          "/bin/sh", "-c",
          "flock -o \"$CONFIG/s.plist\" sh -c 'echo held > \"$OUT/held\"; read x < \"$OUT/go\"' & read line < \"$OUT/held\"; "
            + "TERM=xterm keyhole import --replace \"$OUT/e\" 2>&1; wait",
        ], environment: world.environment, directory: world.outside, errors: world.outside + "/errors")
      try terminal.wait(for: "importing [")
      try world.check("echo go > \"$OUT/go\"")
      let output = try terminal.finish()
      #expect(output.status == 0, "\(output)")
      try world.check("keyhole get defaults/s/k", prints: "1\n")
    }
  }

  @Test func whatRemovesOrMakesNamesTheFullPath() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("echo x | keyhole set keychain/generic/github.com/tok")
      for command in [
        "keyhole rm github.com/tok", "keyhole mv github.com/tok keychain/generic/github.com/other",
      ] {
        let output = try keyhole.sh(command)
        #expect(output.status == 3, "\(output)")
        #expect(
          output.error.contains(
            "a short name only reads and edits; give the full path, keychain/generic/github.com/tok"),
          "\(output)")
      }
      let output = try keyhole.sh("echo y | keyhole set github.com/me")
      #expect(output.status == 3 && !output.error.contains("tok"), "\(output)")
      #expect(output.error.contains("made by its full path: keychain/generic/github.com/me"), "\(output)")
    }
  }
}
