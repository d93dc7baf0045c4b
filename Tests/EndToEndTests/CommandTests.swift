import Foundation
import Glibc
import Testing

/// Section 10: the command, its output and its exit codes.
@Suite(.timeLimit(.minutes(1))) struct CommandTests {
  static let subcommands = ["mount", "unmount", "status", "ls", "get", "set", "rm", "attr", "edit", "doctor"]

  @Test func settingsWorkWithoutAMount() async throws {
    try await withWorld { world in
      try world.check(
        """
        keyhole set defaults/com.example.app/volume 50; keyhole get defaults/com.example.app/volume
        echo text | keyhole set defaults/com.example.app/theme; keyhole get defaults/com.example.app/theme
        keyhole ls defaults; keyhole ls defaults/com.example.app; keyhole ls; keyhole ls /defaults/com.example.app/
        keyhole attr defaults/com.example.app/volume keyhole.type
        keyhole rm defaults/com.example.app/volume; keyhole ls defaults/com.example.app
        """,
        prints:
          "50\ntext\ncom.example.app\ntheme\nvolume\ndefaults\nkeychain\ntemplates\nviews\ntheme\nvolume\ninteger\ntheme\n"
      )
    }
  }

  @Test func secretsWorkWithoutAMount() async throws {
    try await withWorld { world in
      try world.check(
        """
        echo hunter2 | keyhole set keychain/generic/my.service/peter/value; keyhole get keychain/generic/my.service/peter/value; echo
        keyhole ls keychain; keyhole ls keychain/generic; keyhole ls keychain/generic/my.service/peter
        keyhole attr keychain/generic/my.service/peter comment 'a note'; keyhole attr keychain/generic/my.service/peter comment
        keyhole rm -r keychain/generic/my.service; keyhole ls keychain/generic
        """, prints: "hunter2\ngeneric\ninternet\nother\nmy.service\nvalue\na note\n")
    }
  }

  @Test func commandAndMountShowTheSame() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        mkdir defaults/s; echo 1 > defaults/s/k; keyhole get defaults/s/k
        keyhole set defaults/s/k 2; for i in 1 2 3 4 5 6 7 8 9; do [ "$(cat defaults/s/k)" = 2 ] && break; done; cat defaults/s/k
        mkdir -p keychain/generic/s/p; printf 'a\\0b' > keychain/generic/s/p/value; keyhole get keychain/generic/s/p/value | od -An -c
        printf 'c\\0d' | keyhole set keychain/generic/s/p/value; od -An -c keychain/generic/s/p/value
        keyhole ls keychain/generic/s; keyhole rm keychain/generic/s/p/value
        """, prints: "1\n2\n   a  \\0   b\n   c  \\0   d\np\n")
      #expect(holds { !System.exists(keyhole / "keychain/generic/s/p/value") })
    }
  }

  /// A program before the pipe that has failed replaces no value by nothing.
  @Test func anEmptyValueIsStoredOnlyWhereItIsWanted() async throws {
    try await withWorld { world in
      try world.check("echo old | keyhole set keychain/generic/s/p; keyhole set defaults/s/k old")
      for path in ["keychain/generic/s/p", "keychain/generic/s/new", "defaults/s/k", "defaults/s/new"] {
        let refused = try world.sh("false | keyhole set \(path)")
        #expect(
          refused.status == 1 && refused.error.contains("`--empty` stores an empty value"), "\(refused)")
      }
      let flagged = try world.sh("false | keyhole set --sealed keychain/generic/s/p")
      #expect(flagged.status == 1)
      try world.check(
        """
        keyhole get s/p; echo; keyhole get defaults/s/k; keyhole ls keychain/generic/s; keyhole ls defaults/s
        keyhole set --empty keychain/generic/s/p; keyhole set --empty defaults/s/k; keyhole get s/p | wc -c; keyhole get defaults/s/k | wc -c
        """, prints: "old\nold\np\nk\n0\n1\n")
      #expect(try world.sh("keyhole set --empty defaults/s/k x").status == 2)
    }
  }

  @Test func setTakesTheValueAsTheFileWould() async throws {
    try await withWorld { world in
      // `set PATH VALUE`, and from standard input, newline and all.
      try world.check(
        """
        keyhole set defaults/s/a hello; printf hello | keyhole set defaults/s/b; printf 'hello\\n\\n' | keyhole set defaults/s/c
        keyhole set defaults/s/d '[1,2]'; keyhole set defaults/s/e ''; keyhole set defaults/s/f -5
        for k in a b c d e f; do keyhole get defaults/s/$k | od -An -c; keyhole attr defaults/s/$k keyhole.type; done
        """,
        prints: """
             h   e   l   l   o  \\n
          string
             h   e   l   l   o  \\n
          string
             h   e   l   l   o  \\n  \\n
          string
             [  \\n           1   ,  \\n           2  \\n   ]  \\n
          array
          data
             -   5  \\n
          integer

          """)
    }
  }

  @Test func longListingHasTypeSizeTimeAndName() async throws {
    try await withWorld { world in
      try world.check(
        "keyhole set defaults/s/b 42; keyhole set defaults/s/a text; keyhole set defaults/s/B true; keyhole set defaults/s/é 1; keyhole set defaults/s/a%2Fb 1; keyhole ls defaults/s",
        prints: "B\na\na%2Fb\nb\né\n")
      let lines = try world.sh("keyhole ls -l defaults/s").lines.map {
        $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      }
      #expect(
        lines.map { [$0.first, $0.dropFirst().first, $0.last] } == [
          ["bool", "5", "B"], ["string", "5", "a"], ["integer", "2", "a%2Fb"], ["integer", "3", "b"],
          ["integer", "2", "é"],
        ])
      #expect(lines.allSatisfy { $0.count == 4 })
    }
  }

  @Test func attrListsReadsSetsAndRemoves() async throws {
    try await withWorld { world in
      try world.check("echo x | keyhole set keychain/generic/s/p/value")
      let item = "keychain/generic/s/p"
      try world.check(
        """
        keyhole attr \(item) user.comment note; keyhole attr \(item) comment; keyhole attr \(item) user.comment
        keyhole attr --remove \(item) comment; keyhole attr \(item) keyhole.label L; keyhole attr \(item)/value user.keyhole.label
        """, prints: "note\nnote\nL\n")
      let list = try world.sh("keyhole attr \(item)")
      #expect(
        list.status == 0 && list.text.contains("account") && list.text.contains("keyhole.label")
          && !list.text.contains("comment"))
      try world.fails("keyhole attr \(item) comment", status: 3)
      try world.fails("keyhole attr \(item) keyhole.nonsense x", status: 1)
      try world.fails("keyhole attr \(item) service other", status: 1)
    }
  }

  // MARK: Exit codes

  @Test(arguments: [
    "keyhole get defaults", "keyhole rm defaults/s", "keyhole set defaults/x 1",
    "keyhole attr defaults/s/k comment x",
    "keyhole set defaults/s/k text",
    "keyhole mount /nonexistent/mount",
    "head -c 17000000 /dev/zero | keyhole set defaults/s/big",
    "head -c 1100000 /dev/zero | keyhole set keychain/generic/s/p/value",
  ])
  func failureIsOneWithOneLine(script: String) async throws {
    try await withWorld { world in
      try world.check("keyhole set defaults/s/k 1")
      try world.fails(script, status: 1)
      try world.check("keyhole get defaults/s/k", prints: "1\n")
    }
  }

  @Test(arguments: [
    "keyhole get defaults/missing/k", "keyhole rm defaults/missing", "keyhole ls defaults/missing",
    "keyhole set x 1",
    "keyhole get keychain/generic/a/b/value", "keyhole get defaults/s/%41", "keyhole get /etc/passwd",
    "keyhole get nothing/here", "keyhole find nothing",
  ])
  func whatIsMissingIsThree(script: String) async throws {
    try await withWorld { world in
      try world.check("keyhole set defaults/s/k 1")
      try world.fails(script, status: 3)
    }
  }

  @Test(arguments: [
    "keyhole nonsense", "keyhole get", "keyhole get a b c", "keyhole ls --nonsense", "keyhole mount -o",
    "keyhole set",
    "keyhole set keychain/generic/s/p/value hunter2", "keyhole attr", "keyhole rm",
    "keyhole mount -o nonsense \"$MOUNT\"",
    "keyhole clip", "keyhole help nosuch", "keyhole cluster nosuch", "keyhole view v --json",
    "keyhole generate --length 3", "keyhole generate --words 4 --symbols",
    "keyhole mv defaults/s/k",
    "keyhole set defaults/s/k --acces x",
  ])
  func usageErrorIsTwo(script: String) async throws {
    try await withWorld { world in
      let output = try world.sh(script)
      #expect(output.status == 2)
      #expect(output.bytes.isEmpty)
      #expect(!output.error.isEmpty)
      #expect(!output.error.contains("hunter2"))
      #expect(!MountTable.contains(world.mount))
    }
  }

  @Test func secretAsAnArgumentIsRefusedAndNotStored() async throws {
    try await withWorld { world in
      let output = try world.sh("keyhole set keychain/generic/s/p/value hunter2")
      #expect(output.status == 2 && !output.error.contains("hunter2"))
      try world.check("keyhole ls keychain/generic")
    }
  }

  // MARK: Help

  @Test func helpIsThereForEveryCommand() async throws {
    try await withWorld { world in
      let overview = try world.sh("keyhole --help")
      #expect(overview.status == 0 && overview.error == "")
      for command in Self.subcommands {
        #expect(overview.text.contains(command), "\(command)")
        let help = try world.sh("keyhole \(command) --help")
        #expect(help.status == 0 && help.error == "" && help.text.contains(command), "\(command)")
      }
      // Asking changes nothing.
      try world.check("find \"$CONFIG\" \"$DATA\" \"$XDG_STATE_HOME\" -type f")
    }
  }

  @Test func versionIsOneLine() async throws {
    try await withWorld { world in
      let output = try world.sh("keyhole --version")
      #expect(output.status == 0 && output.error == "")
      #expect(output.lines.count == 1)
      #expect(output.text.contains(/[0-9]+\.[0-9]+/))
    }
  }

  // MARK: Mounting

  @Test func mountReturnsWhenTheMountIsReady() async throws {
    try await withWorld { world in
      let keyhole = MountedKeyhole(world, options: [])
      defer { keyhole.cleanUp() }
      try world.check(
        "keyhole mount -o keychain=vault \"$MOUNT\"; ls \"$MOUNT\"; mkdir \"$MOUNT/defaults/s\"; echo 1 > \"$MOUNT/defaults/s/k\"",
        prints: "defaults\nkeychain\ntemplates\nviews\n")
      let status = try world.sh("keyhole status --json")
      let object = try JSONSerialization.jsonObject(with: Data(status.bytes)) as? [String: Any]
      #expect(object?["mountpoint"] as? String == world.mount)
      let process = try #require(object?["pid"] as? Int)
      #expect(try System.text("/proc/\(process)/cmdline").contains("keyhole"))
      #expect(try world.sh("keyhole status").status == 0)
      try world.check("keyhole unmount \"$MOUNT\"; ls -A \"$MOUNT\"")
      #expect(!MountTable.contains(world.mount))
      #expect(holds { !System.exists("/proc/\(process)") })
      try world.check("keyhole get defaults/s/k", prints: "1\n")
    }
  }

  @Test func defaultMountpointIsKeyholeInTheHome() async throws {
    try await withWorld { world in
      defer { _ = try? world.sh("fusermount3 -u -z \"$HOME/Keyhole\"") }
      try world.check(
        "keyhole mount -o keychain=none; ls \"$HOME/Keyhole\" | head -1; keyhole unmount",
        prints: "defaults\n")
      #expect(!MountTable.contains(world.home + "/Keyhole"))
    }
  }

  @Test func statusWithoutAMountFails() async throws {
    try await withWorld { world in
      #expect(try world.sh("keyhole status").status == 3)
      try world.fails("keyhole unmount \"$OUT\"", status: 3)
    }
  }

  @Test func fusermountUnmounts() async throws {
    try await Self.unmounts("fusermount3 -u \"$MOUNT\"")
  }

  @Test(.enabled(if: Privileges.isRoot, "needs root")) func umountUnmountsAsRoot() async throws {
    try await Self.unmounts("umount \"$MOUNT\"")
  }

  private static func unmounts(_ script: String) async throws {
    try await withKeyhole { keyhole in
      let program = try keyhole.program
      try keyhole.world.check(script)
      #expect(try program.waitForEnd(until: Deadline(in: .seconds(10))) == 0)
      try keyhole.world.check("ls -A \"$MOUNT\"")
    }
  }

  @Test func signalsUnmount() async throws {
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
      try await withKeyhole { keyhole in
        let program = try keyhole.program
        program.signal(signal)
        #expect(try program.waitForEnd(until: Deadline(in: .seconds(10))) == 0)
        #expect(!MountTable.contains(keyhole.mount))
      }
    }
  }

  @Test func signalsThatMeanNothingEndNothing() async throws {
    try await withKeyhole { keyhole in
      for signal in [SIGUSR1, SIGUSR2] { try keyhole.program.signal(signal) }
      try keyhole.check("mkdir defaults/s; echo 1 > defaults/s/k; cat defaults/s/k", prints: "1\n")
    }
  }

  /// The replay of outside changes uses the mount itself, but never while it is to be unmounted.
  @Test func changesFromOutsideAreNoUse() async throws {
    try await withWorld { world in
      try world.check(
        """
        mkdir -m 700 "$OUT/elsewhere"
        XDG_RUNTIME_DIR="$OUT/elsewhere" keyhole set defaults/s/k1 0
        (while [ ! -e "$OUT/stop" ]; do for n in 1 2 3 4 5 6 7 8; do XDG_RUNTIME_DIR="$OUT/elsewhere" keyhole set defaults/s/k$n $RANDOM; done; done) & writer=$!
        for turn in 1 2 3 4 5 6 7 8 9 10; do
          keyhole mount -o keychain=none "$MOUNT" && ls "$MOUNT/defaults/s" > /dev/null
          read -r -n 1 line < "$MOUNT/.keyhole/events"
          keyhole unmount "$MOUNT" || { echo busy; fusermount3 -u -z "$MOUNT"; }
        done
        touch "$OUT/stop"; wait $writer
        """)
    }
  }

  @Test func busyMountIsNotUnmounted() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/s; echo 1 > defaults/s/k")
      let file = try OpenFile(keyhole / "defaults/s/k", O_RDONLY)
      try keyhole.world.fails("keyhole unmount \"$MOUNT\"", status: 1)
      #expect(try file.readAll() == Array("1\n".utf8))
      try file.close()
      try keyhole.world.check("keyhole unmount \"$MOUNT\"")
    }
  }

  @Test func keychainNoneHasNoKeychain() async throws {
    try await withKeyhole("keychain=none") { keyhole in
      try keyhole.check("mkdir defaults/s; echo 1 > defaults/s/k; cat defaults/s/k", prints: "1\n")
      #expect(failure { try System.mkdir(keyhole / "keychain/generic/s") } != nil)
      #expect(System.files(below: keyhole.world.data).isEmpty)
    }
  }

  /// Process 1 is no mount of this user's, whatever a note that outlived a restart says.
  @Test(.enabled(if: geteuid() != 0)) func noteWithTheNumberOfAForeignProcessIsNoMount() async throws {
    try await withWorld { world in
      try world.check(
        """
        umask 077; mkdir -p "$XDG_STATE_HOME/keyhole/run"; echo /nowhere > "$XDG_STATE_HOME/keyhole/run/1.mount"
        echo x | keyhole set keychain/generic/s/a/value
        EDITOR='readlink -f' keyhole edit keychain/generic/s/a/value | grep -c "^$XDG_RUNTIME_DIR/"
        """, prints: "1\n")
    }
  }

  /// Core files of the calling program: Keyhole itself leaves none.
  @Test func doctorSaysHowToLeaveNoCoreFiles() async throws {
    try await withWorld { world in
      try world.check(
        "printf 'keyhole doctor 2> /dev/null | grep -c \\\"core files: .*ulimit -c 0\\\" || :' > \"$OUT/doctor\""
      )
      try world.check(
        "prlimit --core=1000000 bash \"$OUT/doctor\"; prlimit --core=0 bash \"$OUT/doctor\"", prints: "1\n0\n"
      )
    }
  }

  @Test func doctorSaysWhyThereIsNoKeyring() async throws {
    try await withWorld { world in
      try world.check(
        """
        export DBUS_SESSION_BUS_ADDRESS=unix:path=$OUT/none; ulimit -c 0
        keyhole doctor | grep -c '^note     Secret Service: .*, so the keychain is going to be the vault; `systemctl --user'
        keyhole mount --keep -o keychain=vault "$MOUNT"; keyhole unmount "$MOUNT"; keyhole doctor | grep -c Service || :
        """, prints: "1\n0\n")
    }
  }

  @Test func statusIsOneScreenThatAnswers() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/s; echo 1 > defaults/s/k; echo x > defaults/s/k 2> /dev/null || :")
      let status = try keyhole.world.sh("keyhole status").text
      for line in [
        "mounted on   \(keyhole.mount) since ", "settings     \(keyhole.world.config)",
        "keychain     vault, as `keychain=vault` says",
        "vault        \(keyhole.world.data)/keyhole", "locked       no", "sealed       by its key file",
        "refused      ",
      ] {
        #expect(status.contains("\(line)"), "\(status)")
      }
      #expect(status.split(separator: "\n").count < 24)
      #expect(!status.contains("slow"))
    }
  }

  /// Another process that holds the suite's lock keeps the writer waiting.
  @Test func statusTellsWhatWasSlow() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/s; echo 1 > defaults/s/k")
      try keyhole.check("flock -o \"$CONFIG/s.plist\" bash -c '(echo 2 > defaults/s/k) & sleep 0.5'; wait")
      try keyhole.check("until grep -qx 2 defaults/s/k; do :; done")
      let status = try keyhole.world.sh("keyhole status").text
      #expect(status.contains(/slow         [-0-9T:Z]+  defaults\/s\/k  [0-9]{3,4} ms/), "\(status)")
    }
  }

  @Test func doctorIsContentWithHealthyStores() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/s; echo 1 > defaults/s/k; mkdir -p keychain/generic/s/p; echo x > keychain/generic/s/p/value"
      )
      let output = try keyhole.world.sh("keyhole doctor")
      #expect(output.status == 0 && output.error == "")
    }
  }
}

extension World {
  /// Runs a script that has to fail with this status and one line that names the program.
  func fails(_ script: String, status: Int32, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let output = try sh(script)
    #expect(output.status == status, "\(script)", sourceLocation: sourceLocation)
    #expect(output.bytes.isEmpty, "\(script)", sourceLocation: sourceLocation)
    #expect(output.error.hasPrefix("keyhole: "), "\(script)", sourceLocation: sourceLocation)
    // A usage error has a second line, the usage.
    let lines = output.error.split(separator: "\n")
    let hasUsage = status == 2 && lines.count == 2 && lines[1].hasPrefix("Usage: ")
    #expect(lines.count == 1 || hasUsage, "\(script)", sourceLocation: sourceLocation)
  }

  /// `set` replaces, also what another process stores in the same moment.
  @Test func secretsAreSetAtOnce() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        for n in $(seq 24); do printf $n | keyhole set keychain/generic/par/s$((n % 2)) & pids="$pids $!"; done
        # Of a suite that is new, too.
        for n in $(seq 16); do keyhole set -q defaults/par/k$n $n & pids="$pids $!"; done
        for pid in $pids; do wait $pid || echo failed; done
        ls keychain/generic/par; ls defaults/par | wc -l
        """, prints: "s0\ns1\n16\n", within: .seconds(50))
    }
  }

  /// There is nothing that `keyhole unlock` could open.
  @Test func aLockedVaultWithoutAMountNamesAWay() async throws {
    try await withWorld { world in
      try world.check(
        "printf x | keyhole set keychain/generic/a/b; echo horse | keyhole passphrase --weak --cost 14 2> /dev/null",
        within: LockTests.patience)
      let output = try world.sh("keyhole get keychain/generic/a/b < /dev/null")
      #expect(
        output.status == 4 && output.error.contains("`keyhole mount`, and then `keyhole unlock`"), "\(output)"
      )
      let none = try world.sh("keyhole passphrase --add-credential - < /dev/null")
      #expect(none.status == 4 && none.error.contains("no passphrase was given"), "\(none)")
    }
  }
}
