import Glibc
import Testing

/// Section 5: when a value changes, and what it changes to.
@Suite(.timeLimit(.minutes(1))) struct WritingTests {
  /// A key of each type, and an item.
  static let before = """
    mkdir defaults/s; cd defaults/s
    echo hello > string; echo 50 > integer; echo 0.5 > real; echo false > bool; echo '[1]' > array; echo '{}' > dict
    echo 2026-11-21T07:53:00Z > date; printf '\\0' > data; printf 0123456789 > data
    mkdir -p "$MOUNT/keychain/generic/s/p"; printf '0123456789' > "$MOUNT/keychain/generic/s/p/value"
    """

  @Test func valueChangesWhenTheWriterCloses() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for (path, old) in [("defaults/s/string", "hello\n"), ("keychain/generic/s/p/value", "0123456789")] {
        let file = try OpenFile(keyhole / path, O_WRONLY | O_TRUNC)
        try file.write("first part")
        #expect(try keyhole.cat(path) == old)
        try file.write(", second\n")
        #expect(try keyhole.cat(path) == old)
        try file.close()
        #expect(try keyhole.cat(path) == "first part, second" + (old.hasSuffix("\n") ? "\n" : ""))
      }
    }
  }

  @Test func fsyncCommitsAndTheHandleGoesOn() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for path in ["defaults/s/string", "keychain/generic/s/p/value"] {
        let file = try OpenFile(keyhole / path, O_WRONLY | O_TRUNC)
        try file.write("one")
        try file.sync()
        #expect(try keyhole.cat(path).hasPrefix("one"))
        try file.write(" two")
        #expect(try keyhole.cat(path).hasPrefix("one") && !keyhole.cat(path).hasPrefix("one two"))
        try file.close()
        #expect(try keyhole.cat(path).hasPrefix("one two"))
      }
    }
  }

  @Test func fsyncedAndClosedValuesSurviveAKill() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let paths = ["defaults/s/string", "keychain/generic/s/p/value"]
      for path in paths { try System.write(keyhole / path, "closed") }
      try keyhole.crash()
      for path in paths { #expect(try keyhole.cat(path).hasPrefix("closed")) }
      let files = try paths.map { try OpenFile(keyhole / $0, O_WRONLY | O_TRUNC) }
      for file in files {
        try file.write("synced")
        try file.sync()
        try file.write(" and never closed")
      }
      try keyhole.kill()
      for file in files { #expect(failure { try file.close() } == .notConnected) }
      try keyhole.start()
      for path in paths { #expect(["synced", "synced\n"].contains(try keyhole.cat(path))) }
    }
  }

  @Test func nobodyReadsHalfAValue() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/s; mkdir -p keychain/generic/s/p; echo x > defaults/s/k; echo x > keychain/generic/s/p/value"
      )
      for path in ["defaults/s/k", "keychain/generic/s/p/value"] {
        // Lines of one letter each, of very different lengths, as fast as it goes.
        let writer = try keyhole.launch([
          "/usr/bin/perl", "-e",
          """
          use Fcntl; $| = 1; my $rin = ""; vec($rin, 0, 1) = 1; my $n = 0;
          until (select(my $r = $rin, undef, undef, 0)) {
            my $c = chr(97 + $n % 26); my $text = $c x (1 + ($n * 7919) % 300000) . "\\n";
            sysopen(F, "\(path)", O_WRONLY | O_TRUNC) or die "open $!"; my $at = 0;
            while ($at < length $text) { $at += syswrite(F, $text, 50000, $at) // die "write $!" }
            close(F) or die "close $!"; print "ready\\n" if $n++ == 1;
          }
          """,
        ])
        _ = try writer.line()
        for _ in 0..<60 {
          let bytes = try System.read(keyhole / path)
          let letters = bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...]
          let size = bytes.count
          #expect(Set(letters).count == 1, "\(path): a mixture in \(size) bytes")
        }
        try writer.send("stop\n")
        #expect(try writer.finish().error == "")
      }
    }
  }

  @Test func readerKeepsTheValueThatItOpened() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for path in ["defaults/s/string", "keychain/generic/s/p/value"] {
        try System.write(keyhole / path, String(repeating: "a", count: 200_000))
        let reader = try OpenFile(keyhole / path, O_RDONLY)
        var got = try reader.read(upTo: 1000)
        try System.write(keyhole / path, "b")
        // Another process asks for the size in between.
        #expect(try keyhole.size(path) == (path.hasPrefix("d") ? 2 : 1))
        let rest = try reader.readAll()
        got += rest
        let end = path.hasPrefix("d") ? [UInt8(ascii: "\n")] : []
        #expect(got == [UInt8](repeating: UInt8(ascii: "a"), count: 200_000) + end, "\(path)")
        #expect(try keyhole.cat(path).hasPrefix("b"))
      }
    }
  }

  // MARK: Copies of a handle

  @Test func closingACopyCommitsWhatHasBeenWritten() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let file = try OpenFile(keyhole / "defaults/s/integer", O_WRONLY | O_TRUNC)
      let unwritten = try file.duplicate()
      try unwritten.close()
      #expect(try keyhole.cat("defaults/s/integer") == "50\n")
      try file.write("7")
      let copy = try file.duplicate()
      try copy.close()
      #expect(try keyhole.cat("defaults/s/integer") == "7\n")
      try file.write("8")
      #expect(try keyhole.cat("defaults/s/integer") == "7\n")
      try file.close()
      #expect(try keyhole.cat("defaults/s/integer") == "78\n")
    }
  }

  @Test func endOfAForkedChildCommits() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for path in ["defaults/s/integer", "keychain/generic/s/p/value"] {
        let output = try keyhole.sh(
          """
          perl -e 'use Fcntl; use POSIX; sysopen(F, "\(path)", O_WRONLY | O_TRUNC); $p = fork // die;
          if (!$p) { POSIX::_exit(0) } waitpid $p, 0; system("cat \(path)"); print STDERR "|";
          syswrite F, "1"; $p = fork // die; if (!$p) { POSIX::_exit(0) } waitpid $p, 0; system("cat \(path)"); print STDERR "|";
          $p = fork // die; if (!$p) { syswrite F, "2"; POSIX::_exit(0) } waitpid $p, 0; system("cat \(path)"); print STDERR "|";
          syswrite F, "3"; close F or print "close: $!"; system("cat \(path)")' 2>/dev/null
          """)
        let expected = path.hasPrefix("d") ? "50\n1\n12\n123\n" : "0123456789112123"
        #expect(output.text == expected)
      }
    }
  }

  @Test func execThatClosesAHandleCommits() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      // Perl's handles are O_CLOEXEC, as those of most languages: the child's copy is closed in the middle of exec.
      for path in ["defaults/s/integer", "keychain/generic/s/p/value"] {
        let script =
          #"open F, ">", $ARGV[0]; syswrite F, "7"; system("cat", $ARGV[0]); syswrite F, "8"; close F or die $!"#
        let output = try keyhole.launch(["/usr/bin/perl", "-e", script, path]).finish(within: .seconds(10))
        #expect(output.error == "" && output.text.hasPrefix("7"))
        #expect(try keyhole.cat(path).hasPrefix("78"))
      }
    }
  }

  @Test func shellsRedirectOfManyCommandsIsOneValue() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for shell in ["bash", "dash"] {
        try keyhole.check(
          #"\#(shell) -c '{ echo one; echo two; (echo three); cat /dev/null; } > defaults/s/string'; cat defaults/s/string"#,
          prints: "one\ntwo\nthree\n")
        try keyhole.check(
          #"\#(shell) -c '(echo one; echo two) | tee defaults/s/string > keychain/generic/s/p/value'; cat defaults/s/string keychain/generic/s/p/value"#,
          prints: "one\ntwo\none\ntwo\n")
        try keyhole.check(
          #"\#(shell) -c 'exec 3> defaults/s/integer; echo 4 >&3; exec 3>&-'; cat defaults/s/integer"#,
          prints: "4\n")
      }
    }
  }

  // MARK: Sizes while writing

  @Test func writerSeesItsOwnSizeAndOthersTheCommittedOne() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for (path, old) in [("defaults/s/string", 6), ("keychain/generic/s/p/value", 10)] {
        let file = try OpenFile(keyhole / path, O_WRONLY | O_TRUNC)
        try file.write("123")
        #expect(try file.size == 3)
        #expect(try System.status(keyhole / path).st_size == 3)
        #expect(try keyhole.size(path) == old)
        try file.write("4567890abcdef")
        #expect(try file.size == 16)
        #expect(try keyhole.size(path) == old)
        try file.close()
        let new = path.hasPrefix("d") ? 17 : 16
        #expect(try keyhole.size(path) == new)
        #expect(Int(try System.status(keyhole / path).st_size) == new)
      }
    }
  }

  // MARK: Truncation

  @Test func truncationAloneTakesEffectSoonAfterTheLastClose() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for (path, empty) in [
        ("defaults/s/data", 0), ("defaults/s/string", 1), ("keychain/generic/s/p/value", 0),
      ] {
        try keyhole.check(": > \(path)")
        #expect(
          try holds { try System.status(keyhole / path).st_size == empty },
          "\(path)")
        #expect(try System.read(keyhole / path).count == empty, "\(path)")
      }
    }
  }

  @Test func truncationThenShortWriteLeavesNoTail() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check(
        "printf ab > defaults/s/string; printf ab > keychain/generic/s/p/value; cat defaults/s/string keychain/generic/s/p/value",
        prints: "ab\nab")
      // Without O_TRUNC only the bytes that are written change.
      try keyhole.check(
        "printf X 1<> defaults/s/string; printf X 1<> keychain/generic/s/p/value; cat defaults/s/string keychain/generic/s/p/value",
        prints: "Xb\nXb")
    }
  }

  // MARK: Errors of write and close

  @Test func shellsPrintTheError() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.refuses("echo abc > defaults/s/integer", .invalid)
      try keyhole.refuses("printf abc > defaults/s/integer", .invalid)
      try keyhole.refuses("echo abc | tee defaults/s/integer > /dev/null", .invalid)
      try keyhole.refuses("echo abc > \"$OUT/x\"; cp \"$OUT/x\" defaults/s/integer", .invalid)
      try keyhole.refuses("echo abc | dd of=defaults/s/integer status=none", .invalid)
      let dash = try keyhole.sh("dash -c 'echo abc > defaults/s/integer'")
      #expect(dash.status != 0 && !dash.error.isEmpty)
      // The second error of a script that ignores the first one.
      let second = try keyhole.sh("exec 3> defaults/s/integer; echo x >&3; echo 7 >&3; exec 3>&-")
      #expect(second.error.contains("Invalid"))
      try keyhole.check("cat defaults/s/integer", prints: "50\n")
    }
  }

  // MARK: Writers that die

  @Test func writerThatASignalKilledChangesNothing() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let paths = ["defaults/s/string", "defaults/s/integer", "keychain/generic/s/p/value"]
      for signal in ["KILL", "TERM", "INT", "SEGV"] {
        for path in paths {
          let old = try keyhole.cat(path)
          let output = try keyhole.sh(
            "perl -e 'use Fcntl; sysopen(F, \"\(path)\", O_WRONLY | O_TRUNC); syswrite(F, \"99\"); kill \(signal), $$; sleep 9' 2>/dev/null; exit 0"
          )
          #expect(output.status == 0)
          #expect(try keyhole.cat(path) == old, "\(signal) \(path)")
          #expect(try keyhole.size(path) == old.utf8.count, "\(signal) \(path)")
        }
        // A new key that was never finished is not there, or is empty as it was created.
        _ = try keyhole.sh(
          "perl -e 'use Fcntl; sysopen(F, \"defaults/s/new\", O_WRONLY | O_CREAT); syswrite(F, \"99\"); kill \(signal), $$; sleep 9' 2>/dev/null"
        )
        if let size = try keyhole.size("defaults/s/new") { #expect(size == 0) }
      }
    }
  }

  @Test func writerThatEndedNormallyHasClosed() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for end in ["exit 0", "exit 3", "POSIX::_exit(0)", "die"] {
        try keyhole.check("echo 50 > defaults/s/integer; printf 50 > keychain/generic/s/p/value")
        for path in ["defaults/s/integer", "keychain/generic/s/p/value"] {
          _ = try keyhole.sh(
            "perl -e 'use Fcntl; use POSIX (); sysopen(F, \"\(path)\", O_WRONLY | O_TRUNC); syswrite(F, \"99\"); \(end)' 2>/dev/null"
          )
          #expect(try keyhole.cat(path).hasPrefix("99"), "\(end) \(path)")
        }
      }
    }
  }

  // MARK: Read-only

  @Test func readOnlyMountRefusesAtOpen() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.unmount()
      let again = MountedKeyhole(keyhole.world, options: ["keychain=vault", "ro"])
      defer { again.cleanUp() }
      try again.start()
      for path in ["defaults/s/string", "keychain/generic/s/p/value"] {
        #expect(failure { _ = try OpenFile(again / path, O_WRONLY) } == .readOnly)
        #expect(failure { try System.unlink(again / path) } == .readOnly)
        #expect(failure { try System.setAttribute(again / path, "user.keyhole.type", "data") } == .readOnly)
      }
      #expect(failure { try System.mkdir(again / "defaults/new") } == .readOnly)
      #expect(failure { try System.write(again / "defaults/s/new", "x") } == .readOnly)
      try again.refuses("echo x > defaults/s/string", .readOnly)
      try again.check("cat defaults/s/string keychain/generic/s/p/value", prints: "hello\n0123456789")
      try again.unmount()
    }
  }
}
