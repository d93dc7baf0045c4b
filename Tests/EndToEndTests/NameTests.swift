import Glibc
import Testing

/// SPECIFICATION.md, section 2, where the kernel and the terminal take part; ServiceTests.StoredNameTests has the rest.
@Suite(.timeLimit(.minutes(1))) struct NameTests {
  /// A slash and the mark behind it are one Character: commands take names as the mount does, and rules hold for them.
  @Test func namesThatBeginWithAMark() async throws {
    try await withKeyhole { keyhole in
      let mark = "\u{301}x"
      try keyhole.check(
        "keyhole set 'defaults/\(mark)/a' 1; cat 'defaults/\(mark)/a'; keyhole get 'defaults/\(mark)/a'; keyhole ls defaults",
        prints: "1\n1\n\(mark)\n")
      try keyhole.check(
        """
        mkdir -p 'keychain/generic/\(mark)/\(mark)'; printf s > 'keychain/generic/\(mark)/\(mark)/value'
        keyhole get 'keychain/generic/\(mark)/\(mark)/value'; setfattr -n user.keyhole.programs -v 'deny *' 'keychain/generic/\(mark)'
        """, prints: "s")
      try keyhole.refuses("cat 'keychain/generic/\(mark)/\(mark)/value'", .denied)
    }
  }

  /// On a terminal, and in events and reports wherever they go, no name steers anything; for programs `ls` prints it as it is.
  @Test func namesSteerNoTerminal() async throws {
    try await withKeyhole { keyhole in
      let world = keyhole.world
      let name = "a\u{9B}31m\u{202E}b"
      try keyhole.check("keyhole set 'defaults/s/\(name)' x; mkdir 'keychain/generic/\(name)'")
      try keyhole.check("keyhole ls defaults/s; keyhole get 'defaults/s/\(name)'", prints: "\(name)\nx\n")
      let scripts = [
        "keyhole ls defaults/s", "keyhole ls -l keychain/generic",
        "keyhole attr 'defaults/s/\(name)' comment \(name) 2>&1",
        "keyhole get 'defaults/s/\(name)x' 2>&1", "keyhole rm 'defaults/\(name)' 2>&1",
        "keyhole set 'defaults/s/\(name)~' x 2>&1",
        "keyhole import -n --to 'defaults/\(name)' /dev/null 2>&1", "keyhole mount '/\(name)' 2>&1",
        "keyhole '\(name)' 2>&1",
        "echo x > 'keychain/generic/\(name)/x'; keyhole status; keyhole status --json",
        "cat .keyhole/events & keyhole set 'defaults/s/\(name)' y; kill $!",
        "keyhole log; keyhole doctor",
      ]
      for script in scripts {
        let session = try Terminal(
          ["/bin/bash", "-c", script], environment: world.environment, directory: keyhole.mount,
          errors: world.outside + "/errors")
        let text = try session.finish().text
        let steers = text.unicodeScalars.contains {
          !["\n", "\r", "\t"].contains($0) && ($0.value < 0x20 || 0x7F...0x9F ~= $0.value || $0 == "\u{202E}")
        }
        #expect(!steers, "\(script): \(text.debugDescription)")
      }
    }
  }

  @Test func nameThatIsNotUTF8IsAnIllegalSequence() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/s; echo 1 > defaults/s/k")
      try keyhole.check(
        #"""
        perl -e '
          use Errno qw(EILSEQ ENOENT); use Fcntl;
          for my $name ("\xff\xfe", "x\xc3", "..\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80") {
            for my $folder ("defaults", "keychain/generic", "keychain/internet") {
              mkdir "$folder/$name" and print "made\n"; $! == EILSEQ or print "mkdir $folder: $!\n";
              lstat "$folder/$name" and print "found\n"; $! == EILSEQ or $! == ENOENT or print "lstat: $!\n";
            }
            sysopen(F, "defaults/s/$name", O_WRONLY | O_CREAT) and print "created\n";
            $! == EILSEQ or print "open: $!\n";
            rename "defaults/s/k", "defaults/s/$name" and print "renamed\n"; $! == EILSEQ or print "rename: $!\n";
          }'
        """#)
      try keyhole.check("ls defaults defaults/s", prints: "defaults:\ns\n\ndefaults/s:\nk\n")
    }
  }

  @Test func nameOfOver255BytesIsTooLong() async throws {
    let longest = String(repeating: "a", count: 255)
    try await withKeyhole { keyhole in
      try System.mkdir(keyhole / "defaults/s")
      try System.write(keyhole / "defaults/s/\(longest)", "1")
      #expect(try System.text(keyhole / "defaults/s/\(longest)") == "1\n")
      #expect(try System.names(keyhole / "defaults/s") == [longest])
      let tooLong = [
        longest + "a", String(repeating: "é", count: 128), String(repeating: "x", count: 3000),
        String(repeating: "%25", count: 86),
      ]
      for name in tooLong {
        for folder in ["defaults/s", "keychain/generic", "defaults"] {
          #expect(failure { _ = try System.status(keyhole / "\(folder)/\(name)") } == .nameTooLong)
        }
        #expect(failure { try System.write(keyhole / "defaults/s/\(name)", "1") } == .nameTooLong)
        #expect(failure { try System.mkdir(keyhole / "keychain/generic/\(name)") } == .nameTooLong)
        #expect(
          failure { try System.rename(keyhole / "defaults/s/\(longest)", keyhole / "defaults/s/\(name)") }
            == .nameTooLong)
      }
    }
  }
}
