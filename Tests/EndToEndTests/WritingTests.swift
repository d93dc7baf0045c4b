import Glibc
import TestSupport
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

  @Test func fsyncOfAReaderSucceeds() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for path in ["defaults/s/string", "keychain/generic/s/p/value"] {
        let file = try OpenFile(keyhole / path, O_RDONLY)
        #expect(failure { try file.sync() } == nil)
        #expect(failure { try file.write("x") } == .badDescriptor)
      }
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
        for _ in 0..<150 {
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

  @Test func copyClosedWithHalfAValueReportsItAndKeepsTheContent() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let file = try OpenFile(keyhole / "defaults/s/bool", O_WRONLY | O_TRUNC)
      try file.write("tr")
      let copy = try file.duplicate()
      #expect(failure { try copy.close() } == .invalid)
      #expect(try keyhole.cat("defaults/s/bool") == "false\n")
      try file.write("ue")
      #expect(failure { try file.close() } == nil)
      #expect(try keyhole.cat("defaults/s/bool") == "true\n")
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

  @Test func writerReadsBackWhatItWrote() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for path in ["defaults/s/data", "keychain/generic/s/p/value"] {
        let file = try OpenFile(keyhole / path, O_RDWR)
        #expect(try file.read(upTo: 1, at: 0) == [UInt8(ascii: "0")])
        try file.write(Array("XY".utf8), at: 2)
        let tail = try file.read(upTo: 100, at: 2)
        #expect(String(decoding: tail.prefix(3), as: UTF8.self).hasPrefix("XY"))
        let end = try file.size
        try file.write(Array("end".utf8), at: end + 2)
        #expect(try file.read(upTo: 100, at: end) == [0, 0] + Array("end".utf8))
        try file.close()
        #expect(try System.read(keyhole / path).count == end + 5)
        #expect(try System.read(keyhole / path).suffix(5) == [0, 0] + Array("end".utf8))
      }
    }
  }

  // MARK: Appending

  @Test func appendedIsWhatTheValueHasAtTheCommit() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/s; mkdir -p keychain/generic/s/p; printf 'x\\0' > defaults/s/k; printf 'x\\0' > keychain/generic/s/p/value"
      )
      for path in ["defaults/s/k", "keychain/generic/s/p/value"] {
        let one = try OpenFile(keyhole / path, O_WRONLY | O_APPEND)
        let two = try OpenFile(keyhole / path, O_WRONLY | O_APPEND)
        try one.write("1")
        try two.write("2")
        try one.write("1")
        try two.close()
        #expect(try keyhole.cat(path) == "x\u{0}2")
        try one.close()
        #expect(try keyhole.cat(path) == "x\u{0}211")
        // And onto a value that another one replaced meanwhile.
        let three = try OpenFile(keyhole / path, O_WRONLY | O_APPEND)
        try three.write("3")
        try System.write(keyhole / path, "new\u{0}")
        try three.close()
        #expect(try keyhole.cat(path) == "new\u{0}3")
      }
    }
  }

  @Test func manyAppendersLoseNothing() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        mkdir defaults/s; echo start > defaults/s/log
        for w in a b c d; do (for i in {1..20}; do echo $w$i >> defaults/s/log; done) & done; wait
        wc -l < defaults/s/log; sort defaults/s/log | uniq -d
        """, prints: "81\n")
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
          try holds(within: .milliseconds(100)) { try System.status(keyhole / path).st_size == empty },
          "\(path)")
        #expect(try System.read(keyhole / path).count == empty, "\(path)")
      }
    }
  }

  @Test func truncationAloneLeavesWhatCanNotBeEmpty() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for type in ["integer", "real", "bool", "date", "array", "dict"] {
        let path = "defaults/s/\(type)"
        let old = try System.text(keyhole / path)
        _ = try keyhole.sh(": > \(path)")
        // Nothing tells the end of the close; the next commit of the same key comes after it.
        let other = try OpenFile(keyhole / path, O_RDWR)
        try other.write(old)
        try other.close()
        #expect(try keyhole.cat(path) == old)
        let file = try OpenFile(keyhole / path, O_WRONLY | O_TRUNC)
        #expect(failure { try file.sync() } == .invalid, "\(type)")
        _ = failure { try file.close() }
        #expect(failure { try System.truncate(keyhole / path, 0) } == .invalid, "\(type)")
        #expect(try keyhole.cat(path) == old)
        #expect(try keyhole.size(path) == old.utf8.count)
      }
    }
  }

  @Test func fsyncMakesATruncationAtOnce() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for (path, empty) in [
        ("defaults/s/data", 0), ("defaults/s/string", 1), ("keychain/generic/s/p/value", 0),
      ] {
        let file = try OpenFile(keyhole / path, O_WRONLY | O_TRUNC)
        #expect(try keyhole.size(path) != empty)
        try file.sync()
        #expect(try keyhole.size(path) == empty)
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

  @Test func ftruncateTakesEffectAtClose() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for path in ["defaults/s/data", "keychain/generic/s/p/value"] {
        let whole = try System.read(keyhole / path)
        let file = try OpenFile(keyhole / path, O_WRONLY)
        try file.truncate(4)
        #expect(try file.size == 4)
        #expect(try keyhole.size(path) == whole.count)
        try file.close()
        #expect(try System.read(keyhole / path) == Array(whole.prefix(4)))
        let longer = try OpenFile(keyhole / path, O_WRONLY)
        try longer.truncate(6)
        try longer.close()
        #expect(try System.read(keyhole / path) == Array(whole.prefix(4)) + [0, 0])
      }
      let file = try OpenFile(keyhole / "defaults/s/integer", O_WRONLY)
      try file.truncate(0)
      #expect(failure { try file.close() } == .invalid)
      try keyhole.check("cat defaults/s/integer", prints: "50\n")
    }
  }

  @Test func truncateByPathActsAtOnce() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for path in ["defaults/s/data", "keychain/generic/s/p/value"] {
        let whole = try System.read(keyhole / path)
        try System.truncate(keyhole / path, 5)
        #expect(try keyhole.size(path) == 5)
        #expect(try System.read(keyhole / path) == Array(whole.prefix(5)))
        try System.truncate(keyhole / path, 0)
        #expect(try keyhole.size(path) == 0)
      }
      try System.truncate(keyhole / "defaults/s/integer", 1)
      try keyhole.check("cat defaults/s/integer", prints: "5\n")
      try keyhole.check("truncate -s 2 defaults/s/string; cat defaults/s/string", prints: "he\n")
      #expect(failure { try System.truncate(keyhole / "defaults/s/string", -1) } == .invalid)
    }
  }

  // MARK: Errors of write and close

  /// Contents that can't become a value of the type whatever follows, so that write(2) itself fails.
  static let hopeless: [(type: String, content: String)] = [
    ("integer", "abc"), ("integer", "1.5"), ("integer", "1 2"), ("integer", "--1"),
    ("integer", "99999999999999999999999"),
    ("real", "abc"), ("real", "1..2"), ("real", "1e5e"), ("bool", "x"), ("bool", "trup"), ("bool", "yess"),
    ("bool", "10"),
    ("date", "x"), ("date", "2026-11-21T07:53.5"), ("date", "2026/11"), ("array", "x"), ("array", "{"),
    ("array", "[1,,"),
    ("array", "[nul,"), ("array", "[1] 2"), ("dict", "["), ("dict", "{1"), ("dict", "{\"a\" 1"),
    ("dict", "{} x"),
    ("array", "[null"),
  ]

  @Test func writeItselfFailsWhereNothingCouldFollow() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for (type, content) in Self.hopeless {
        let path = "defaults/s/\(type)"
        let old = try System.text(keyhole / path)
        let file = try OpenFile(keyhole / path, O_WRONLY | O_TRUNC)
        #expect(failure { try file.write(content) } == .invalid, "\(type) \(content)")
        #expect(failure { try file.close() } == .invalid, "\(type) \(content)")
        #expect(try keyhole.cat(path) == old, "\(type) \(content)")
      }
      let bytes = try OpenFile(keyhole / "defaults/s/string", O_WRONLY | O_TRUNC)
      #expect(failure { try bytes.write([0x61, 0xFF, 0x61]) } == .invalid)
    }
  }

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
      try keyhole.check("cat defaults/s/integer", prints: "50\n")
    }
  }

  /// The beginning of a value: write(2) takes it, and only close can say that the rest is missing.
  static let unfinished: [(type: String, content: String)] = [
    ("integer", "-"), ("integer", " "), ("real", "1e"), ("bool", "t"), ("date", "2026-11-21"),
    ("array", "[1,"),
    ("dict", "{\"a\":"), ("dict", "<plist"), ("dict", "<?xml version=\"1.0\"?>\n<plist><dict>"),
  ]

  @Test func closeAndFsyncReportTheRest() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for (type, content) in Self.unfinished {
        let path = "defaults/s/\(type)"
        let old = try System.text(keyhole / path)
        let file = try OpenFile(keyhole / path, O_WRONLY | O_TRUNC)
        #expect(failure { try file.write(content) } == nil, "\(type) \(content)")
        #expect(failure { try file.sync() } == .invalid, "\(type) \(content)")
        #expect(failure { try file.close() } == .invalid, "\(type) \(content)")
        #expect(try keyhole.cat(path) == old, "\(type) \(content)")
      }
    }
  }

  @Test func oneByteAtATimeIsNoError() async throws {
    let rows = [
      ("integer", " -42 \n", "-42\n"), ("real", "-1.5e-3", "-0.0015\n"), ("bool", "True\n", "true\n"),
      ("date", "2026-11-21T07:53:00+01:00\n", "2026-11-21T06:53:00Z\n"),
      (
        "array", #" [ 1 , -2.5e+3, true, false, "\u00e9\n", {"a": []} ] "#,
        "[\n  1,\n  -2500.0,\n  true,\n  false,\n  \"é\\n\",\n  {\n    \"a\": []\n  }\n]\n"
      ),
      ("dict", #"{"größer":{}}"#, "{\n  \"größer\": {}\n}\n"), ("string", "größer 🔑\n", "größer 🔑\n"),
      ("dict", PropertyListText.xml("<dict><key>a</key><true/></dict>"), "{\n  \"a\": true\n}\n"),
    ]
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for (type, content, shown) in rows {
        let file = try OpenFile(keyhole / "defaults/s/\(type)", O_WRONLY | O_TRUNC)
        for byte in content.utf8 { #expect(failure { try file.write([byte]) } == nil, "\(type) \(content)") }
        #expect(failure { try file.close() } == nil, "\(type) \(content)")
        #expect(try keyhole.cat("defaults/s/\(type)") == shown)
      }
    }
  }

  @Test func failedWriteSpoilsItsHandle() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let file = try OpenFile(keyhole / "defaults/s/integer", O_WRONLY | O_TRUNC)
      try file.write("1")
      #expect(failure { try file.write("x") } == .invalid)
      _ = failure { try file.write("2") }
      #expect(failure { try file.close() } == .invalid)
      try keyhole.check("cat defaults/s/integer", prints: "50\n")
      // The second error of a script that ignores the first one.
      #expect(
        try keyhole.sh("exec 3> defaults/s/integer; echo x >&3; echo 7 >&3; exec 3>&-").error.contains(
          "Invalid"))
      try keyhole.check("cat defaults/s/integer", prints: "50\n")
    }
  }

  // MARK: Writers that die

  @Test(arguments: ["KILL", "TERM", "INT", "SEGV"])
  func writerThatASignalKilledChangesNothing(signal: String) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for path in ["defaults/s/string", "defaults/s/integer", "keychain/generic/s/p/value"] {
        let old = try keyhole.cat(path)
        let output = try keyhole.sh(
          "perl -e 'use Fcntl; sysopen(F, \"\(path)\", O_WRONLY | O_TRUNC); syswrite(F, \"99\"); kill \(signal), $$; sleep 9' 2>/dev/null; exit 0"
        )
        #expect(output.status == 0)
        #expect(try keyhole.cat(path) == old, "\(path)")
        #expect(try keyhole.size(path) == old.utf8.count, "\(path)")
      }
      // A new key that was never finished is not there, or is empty as it was created.
      _ = try keyhole.sh(
        "perl -e 'use Fcntl; sysopen(F, \"defaults/s/new\", O_WRONLY | O_CREAT); syswrite(F, \"99\"); kill \(signal), $$; sleep 9' 2>/dev/null"
      )
      if let size = try keyhole.size("defaults/s/new") { #expect(size == 0) }
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

  // MARK: Limits

  @Test(arguments: [("defaults/s/data", 16 << 20), ("keychain/generic/s/p/value", 1 << 20)])
  func valueOverTheLimitIsTooBig(path: String, limit: Int) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let old = try System.read(keyhole / path)
      let most = [UInt8](repeating: 0xFE, count: limit)
      #expect(failure { try System.write(keyhole / path, most + [0]) } == .fileTooBig)
      #expect(failure { try System.truncate(keyhole / path, limit + 1) } == .fileTooBig)
      for offset in [limit, 1 << 40] {
        let file = try OpenFile(keyhole / path, O_WRONLY)
        #expect(failure { try file.write([1], at: offset) } == .fileTooBig, "\(offset)")
      }
      let cut = try OpenFile(keyhole / path, O_WRONLY)
      #expect(failure { try cut.truncate(limit + 1) } == .fileTooBig)
      #expect(try System.read(keyhole / path) == old)
    }
  }

  @Test(arguments: [("defaults/s/data", 16 << 20), ("keychain/generic/s/p/value", 1 << 20)])
  func valueOfTheLimitIsStored(path: String, limit: Int) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let most = [UInt8](repeating: 0xFE, count: limit)
      try System.write(keyhole / path, most)
      #expect(try keyhole.size(path) == limit)
      let more = try OpenFile(keyhole / path, O_WRONLY | O_APPEND)
      let write = failure { try more.write([0]) }
      let close = failure { try more.close() }
      #expect(write == .fileTooBig || close == .fileTooBig)
      #expect(try System.read(keyhole / path) == most)
    }
  }

  @Test func toolsSayThatAValueIsTooBig() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.refuses("head -c 1048577 /dev/zero > keychain/generic/s/p/value", .fileTooBig)
      try keyhole.refuses("head -c 16777217 /dev/zero > defaults/s/data", .fileTooBig)
      try keyhole.check("cat keychain/generic/s/p/value; wc -c < defaults/s/data", prints: "012345678910\n")
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

  // MARK: Several handles

  @Test func lastCloseWinsWhole() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for path in ["defaults/s/string", "keychain/generic/s/p/value"] {
        let one = try OpenFile(keyhole / path, O_WRONLY | O_TRUNC)
        let two = try OpenFile(keyhole / path, O_WRONLY | O_TRUNC)
        try one.write("one one one one")
        try two.write("two")
        try one.write(" one")
        try two.close()
        #expect(try keyhole.cat(path).hasPrefix("two"))
        try one.close()
        #expect(try keyhole.cat(path).hasPrefix("one one one one one"))
      }
    }
  }

  @Test func openingToWriteAndClosingChangesNothing() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for path in ["defaults/s/string", "keychain/generic/s/p/value"] {
        try System.setModified(keyhole / path, seconds: 1_000_000_000)
        let old = try keyhole.cat(path)
        for flags in [O_WRONLY, O_RDWR, O_WRONLY | O_APPEND] { try OpenFile(keyhole / path, flags).close() }
        #expect(try keyhole.cat(path) == old)
        #expect(try System.status(keyhole / path).st_mtim.tv_sec == 1_000_000_000)
      }
    }
  }

  // MARK: Removed but open

  @Test func removedValueStaysReadableAndDoesNotComeBack() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for path in ["defaults/s/string", "keychain/generic/s/p/value"] {
        let old = try System.read(keyhole / path)
        let reader = try OpenFile(keyhole / path, O_RDONLY)
        let writer = try OpenFile(keyhole / path, O_WRONLY | O_TRUNC)
        try writer.write("resurrected")
        try System.unlink(keyhole / path)
        #expect(!System.exists(keyhole / path))
        #expect(try reader.readAll() == old)
        #expect(try reader.status().st_nlink == 0)
        _ = failure { try writer.close() }
        #expect(!System.exists(keyhole / path))
        try reader.close()
      }
      // No `.fuse_hidden…`, and nothing in the stores.
      try keyhole.check("find . -name '.fuse*'")
      try keyhole.remount()
      #expect(!System.exists(keyhole / "defaults/s/string"))
      #expect(!System.exists(keyhole / "keychain/generic/s"))
    }
  }

  @Test func movedKeyIsWrittenUnderItsNewName() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let writer = try OpenFile(keyhole / "defaults/s/string", O_WRONLY | O_TRUNC)
      try writer.write("late")
      try System.rename(keyhole / "defaults/s/string", keyhole / "defaults/s/moved")
      try writer.close()
      #expect(!System.exists(keyhole / "defaults/s/string"))
      try keyhole.check("cat defaults/s/moved", prints: "late\n")
    }
  }

  // MARK: Mapping and locking

  @Test func settingIsReadThroughAMapping() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let file = try OpenFile(keyhole / "defaults/s/string", O_RDONLY)
      for flags in [MAP_PRIVATE, MAP_SHARED] {
        #expect(try file.mapped(6, flags) == "hello\n")
      }
      try System.write(keyhole / "defaults/s/string", "other")
      let again = try OpenFile(keyhole / "defaults/s/string", O_RDONLY)
      #expect(try again.mapped(6, MAP_PRIVATE) == "other\n")
    }
  }

  @Test func locksAreTheKernels() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let file = try OpenFile(keyhole / "defaults/s/string", O_RDWR)
      _ = try System.check { flock(file.descriptor, LOCK_EX) }
      #expect(try keyhole.sh("flock -n defaults/s/string true").status == 1)
      _ = try System.check { flock(file.descriptor, LOCK_UN) }
      try keyhole.check("flock -n defaults/s/string true")
    }
  }
}
