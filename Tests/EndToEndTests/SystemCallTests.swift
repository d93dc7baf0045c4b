import Glibc
import Testing

/// The system calls beside open, read, write and close that are known to break such file systems.
@Suite(.timeLimit(.minutes(1))) struct SystemCallTests {
  static let key = "defaults/s/data"
  static let secret = "keychain/generic/s/p/value"
  static let paths = [key, secret]
  /// The same, and scratch of both kinds.
  static let files = paths + ["defaults/s/.scratch", "keychain/generic/s/p/scratch"]
  static let bytes = (0..<6000).map { UInt8(truncatingIfNeeded: $0 &* 31 | 0x80) }

  private func withFiles(body: (MountedKeyhole) throws -> Void) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir -p defaults/s keychain/generic/s/p")
      for path in Self.files { try System.write(keyhole / path, Self.bytes) }
      try body(keyhole)
    }
  }

  private func folder(_ path: String) -> String {
    String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.endIndex))
  }

  // MARK: Copies in the kernel

  @Test func copyFileRangeCopiesWithinTheMount() async throws {
    try await withFiles { keyhole in
      for source in Self.files {
        for target in Self.files where target != source {
          let (from, to) = (
            try OpenFile(keyhole / source, O_RDONLY), try OpenFile(keyhole / target, O_WRONLY | O_TRUNC)
          )
          #expect(
            try System.copyRange(from: from, to: to, 100_000) == Self.bytes.count, "\(source) \(target)")
          #expect(try System.copyRange(from: from, to: to, 100_000) == 0)
          try to.close()
          #expect(try System.read(keyhole / target) == Self.bytes, "\(source) \(target)")
        }
      }
    }
  }

  @Test func copyFileRangeToAnotherFileSystemIsLeftToTheProgram() async throws {
    try await withFiles { keyhole in
      for path in Self.files {
        let outside = try OpenFile(keyhole.world.outside + "/copy", O_RDWR | O_CREAT | O_TRUNC)
        let file = try OpenFile(keyhole / path, O_RDWR)
        // cp and everything else that uses it goes on with read and write.
        let out = failure { _ = try System.copyRange(from: file, to: outside, 10) }
        #expect(out == .crossDevice || out == nil)
        let back = failure { _ = try System.copyRange(from: outside, to: file, 10) }
        #expect(back == .crossDevice || back == nil)
      }
    }
  }

  @Test func sendfileReadsAndWritesTheWholeValue() async throws {
    try await withFiles { keyhole in
      for path in Self.files {
        let copy = keyhole.world.outside + "/copy"
        let out = try OpenFile(copy, O_WRONLY | O_CREAT | O_TRUNC)
        let count = try System.send(from: try OpenFile(keyhole / path, O_RDONLY), to: out, 100_000)
        #expect(count == Self.bytes.count)
        #expect(try System.read(copy) == Self.bytes)
        try System.write(copy, Self.bytes.reversed())
        let file = try OpenFile(keyhole / path, O_WRONLY | O_TRUNC)
        let back = try System.send(from: try OpenFile(copy, O_RDONLY), to: file, 100_000)
        #expect(back == Self.bytes.count)
        try file.close()
        #expect(try System.read(keyhole / path) == Self.bytes.reversed(), "\(path)")
      }
    }
  }

  @Test func spliceReadsAndWrites() async throws {
    try await withFiles { keyhole in
      for path in Self.files {
        let (reading, writing) = try System.pipe()
        let source = try OpenFile(keyhole / path, O_RDONLY)
        var got: [UInt8] = []
        while try System.splice(from: source, to: writing, 65536) > 0 { got += try reading.read() }
        #expect(got == Self.bytes, "\(path)")
        try writing.write(Array(Self.bytes.prefix(3000)))
        let target = try OpenFile(keyhole / path, O_WRONLY | O_TRUNC)
        #expect(try System.splice(from: reading, to: target, 3000) == 3000)
        try target.close()
        #expect(try System.read(keyhole / path) == Array(Self.bytes.prefix(3000)), "\(path)")
      }
    }
  }

  // MARK: Mapping

  @Test func mappingsShowTheWholeValue() async throws {
    try await withFiles { keyhole in
      try System.write(keyhole / "defaults/s/string", "hello, mapping")
      try System.write(keyhole / Self.secret, "hello, mapping\n\n")
      for path in ["defaults/s/string", Self.secret] {
        let size = try Int(System.status(keyhole / path).st_size)
        let text = try keyhole.cat(path)
        let file = try OpenFile(keyhole / path, O_RDONLY)
        #expect(try file.mapped(size, MAP_PRIVATE) == text)
        #expect(try file.mapped(size, MAP_PRIVATE, protection: PROT_READ | PROT_WRITE) == text)
      }
    }
  }

  @Test func settingIsMappedSharedAndASecretIsNot() async throws {
    try await withFiles { keyhole in
      try System.write(keyhole / "defaults/s/string", "hello")
      // The kernel tells the end of the writer's handle after its close has returned; until then readers go past the cache.
      #expect(
        try holds {
          let file = try OpenFile(keyhole / "defaults/s/string", O_RDONLY)
          return (try? file.mapped(6, MAP_SHARED)) == "hello\n"
        })
      for path in [Self.secret, "keychain/generic/s/p/scratch"] {
        for (flags, protection) in [(O_RDONLY, PROT_READ), (O_RDWR, PROT_READ | PROT_WRITE)] {
          let file = try OpenFile(keyhole / path, flags)
          #expect(
            failure { _ = try file.mapped(6, MAP_SHARED, protection: protection) } == .noDevice, "\(path)")
        }
      }
      // A writer of a setting goes past the cache, and what is written to it is what is committed.
      let writer = try OpenFile(keyhole / "defaults/s/string", O_RDWR)
      #expect(
        failure { _ = try writer.mapped(6, MAP_SHARED, protection: PROT_READ | PROT_WRITE) } == .noDevice)
    }
  }

  // MARK: Creating

  @Test func unnamedFilesAreRefusedSoThatProgramsTakeNamedOnes() async throws {
    try await withFiles { keyhole in
      for path in Self.paths {
        #expect(
          failure { _ = try OpenFile(keyhole / folder(path), O_RDWR | System.temporaryFile) } == .notSupported
        )
        let file = try OpenFile(keyhole / path, O_RDONLY)
        #expect(
          failure { try System.linkOpenFile(file, keyhole / folder(path) + "/linked") } == .notPermitted)
        // Nor can an unnamed file of another file system be given a name here.
        let other = try OpenFile(keyhole.world.outside, O_RDWR | System.temporaryFile)
        #expect(
          failure { try System.linkOpenFile(other, keyhole / folder(path) + "/linked") } == .crossDevice)
      }
      try keyhole.check("find . -name linked")
    }
  }

  @Test func ofManyExclusiveCreatorsOneWins() async throws {
    try await withFiles { keyhole in
      for (number, name) in ["defaults/s/new", "defaults/s/.new", "keychain/generic/s/p/new"].enumerated() {
        let output = try keyhole.sh(
          "for i in 1 2 3 4 5 6 7 8; do (set -C; echo $i > \(name)) 2>/dev/null && echo won & done; wait; cat \(name) | wc -l"
        )
        #expect(output.lines == ["won", "1"], "\(number)")
      }
    }
  }

  // MARK: Appending, locking, renaming between processes

  @Test func appendingProcessesLoseNothing() async throws {
    try await withFiles { keyhole in
      try keyhole.check(": > defaults/s/log; printf 'x\\ny\\n' > keychain/generic/s/p/value")
      for path in ["defaults/s/log", Self.secret] {
        let append =
          "perl -e 'for (1..50) { open F, \">>\", $ARGV[0] or die; syswrite F, \"$ARGV[1]$_\\n\"; close F or die }' \(path)"
        let output = try keyhole.sh(
          "\(append) a & \(append) b & wait; tail -c +1 \(path) | grep -c '[ab][0-9]'")
        #expect(output.error == "" && output.lines == ["100"], "\(path) \(output)")
      }
    }
  }

  @Test func locksHoldBetweenProcesses() async throws {
    try await withFiles { keyhole in
      for path in Self.paths {
        let holder = try keyhole.launch([
          "/usr/bin/perl", "-e",
          """
          use Fcntl; $| = 1; open F, "+<", $ARGV[0] or die;
          my $lock = pack "s s x4 l! l! i x4", F_WRLCK, 0, 0, 0, 0; fcntl(F, F_SETLK, $lock) or die "lock $!";
          print "locked\\n"; <STDIN>; close F; print "unlocked\\n"; <STDIN>;
          """, path,
        ])
        #expect(try holder.line() == "locked")
        let file = try OpenFile(keyhole / path, O_RDWR)
        #expect(Self.isLockedByAnother(file))
        // The two kinds of locks know nothing of each other.
        _ = try System.check { flock(file.descriptor, LOCK_EX | LOCK_NB) }
        #expect(try keyhole.sh("flock -n \(path) true").status == 1)
        _ = try System.check { flock(file.descriptor, LOCK_UN) }
        try holder.send("\n")
        #expect(try holder.line() == "unlocked")
        #expect(!Self.isLockedByAnother(file))
        try holder.send("\n")
        #expect(try holder.finish().status == 0)
      }
    }
  }

  private static func isLockedByAnother(_ file: OpenFile) -> Bool {
    var lock = Glibc.flock()
    lock.l_type = Int16(F_WRLCK)
    lock.l_whence = Int16(SEEK_SET)
    _ = unsafe fcntl(file.descriptor, F_GETLK, &lock)
    return lock.l_type != Int16(F_UNLCK)
  }

  @Test func fileOpenInOneProcessAndRenamedInAnotherIsWrittenUnderItsNewName() async throws {
    try await withFiles { keyhole in
      let moves = [
        (Self.key, "defaults/s/moved", "defaults/s/moved"),
        ("keychain/generic/s/p", "keychain/generic/s/q", "keychain/generic/s/q/value"),
        ("defaults/s/.scratch", "defaults/s/.moved", "defaults/s/.moved"),
      ]
      for (old, new, file) in moves {
        let path = old.hasSuffix("/p") ? old + "/value" : old
        let writer = try OpenFile(keyhole / path, O_RDWR)
        try writer.write(Array("late\u{0}".utf8), at: 0)
        try keyhole.check("mv \(old) \(new)")
        try writer.write(Array("r\u{0}".utf8), at: 5)
        try writer.close()
        #expect(try keyhole.cat(file).hasPrefix("late\u{0}r\u{0}"), "\(old)")
        #expect(!System.exists(keyhole / old), "\(old)")
      }
    }
  }

  @Test func unlinkedFilesServeThoseWhoHaveThemOpen() async throws {
    try await withFiles { keyhole in
      for path in Self.files {
        let reader = try OpenFile(keyhole / path, O_RDONLY)
        let writer = try OpenFile(keyhole / path, O_RDWR)
        try System.unlink(keyhole / path)
        #expect(try reader.readAll() == Self.bytes, "\(path)")
        try writer.write([1, 2, 3], at: 0)
        #expect(try writer.read(upTo: 3, at: 0) == [1, 2, 3], "\(path)")
        #expect(try writer.status().st_nlink == 0, "\(path)")
        #expect(failure { try writer.close() } == nil, "\(path)")
        #expect(!System.exists(keyhole / path), "\(path)")
      }
      // No `.fuse_hidden…`, and nothing in the stores.
      try keyhole.check("find . -name '.fuse*'")
      try keyhole.remount()
      for path in Self.files { #expect(!System.exists(keyhole / path), "\(path)") }
    }
  }

  // MARK: Allocation and holes

  @Test func allocationMakesRoomOfZeroBytes() async throws {
    try await withFiles { keyhole in
      for path in Self.files {
        let file = try OpenFile(keyhole / path, O_RDWR)
        try System.allocate(file, 7000)
        #expect(try file.size == 7000)
        try System.allocate(file, 10)
        #expect(try file.size == 7000)
        try file.close()
        #expect(try System.read(keyhole / path) == Self.bytes + [UInt8](repeating: 0, count: 1000), "\(path)")
      }
    }
  }

  @Test func otherKindsOfAllocationAreNotSupported() async throws {
    try await withFiles { keyhole in
      for path in Self.files {
        let file = try OpenFile(keyhole / path, O_RDWR)
        // Keep the size, punch a hole, collapse, zero, insert.
        for mode: Int32 in [1, 3, 8, 16, 32] {
          #expect(failure { try System.allocate(file, mode: mode, 4096) } == .notSupported, "\(path) \(mode)")
        }
        try file.close()
        #expect(try System.read(keyhole / path) == Self.bytes)
      }
      let big = try OpenFile(keyhole / Self.secret, O_RDWR)
      #expect(failure { try System.allocate(big, 1 << 21) } == .fileTooBig)
    }
  }

  @Test func allIsDataAndNothingIsAHole() async throws {
    try await withFiles { keyhole in
      for path in Self.files {
        let file = try OpenFile(keyhole / path, O_RDONLY)
        #expect(try System.seek(file, 10, System.seekData) == 10)
        #expect(try System.seek(file, 10, System.seekHole) == Self.bytes.count)
        #expect(try System.seek(file, -5, SEEK_END) == Self.bytes.count - 5)
        #expect(failure { _ = try System.seek(file, 1 << 20, System.seekData) } == Errno(code: ENXIO))
      }
    }
  }

  // MARK: Growth

  @Test func tailFollowsAValueThatGrows() async throws {
    try await withFiles { keyhole in
      for path in ["defaults/s/log", Self.secret] {
        try System.write(keyhole / path, "one\ntwo\n")
        let tail = try keyhole.launch(["/usr/bin/tail", "-f", "-s", "0.05", path])
        #expect(try tail.line() == "one")
        #expect(try tail.line() == "two")
        try keyhole.check("echo three >> \(path)")
        #expect(try tail.line() == "three")
        try keyhole.check("printf 'one\\ntwo\\nthree\\nfour\\n' > \(path)")
        #expect(try tail.line() == "four")
        tail.signal(SIGTERM)
        #expect(try tail.finish().error == "")
      }
    }
  }

  @Test func outsideGrowthIsFollowedToo() async throws {
    try await withFiles { keyhole in
      try keyhole.check("echo one > defaults/s/log")
      let tail = try keyhole.launch(["/usr/bin/tail", "-f", "-s", "0.05", "defaults/s/log"])
      #expect(try tail.line() == "one")
      try keyhole.check("printf 'one\\ntwo\\n' | keyhole set defaults/s/log")
      #expect(try tail.line() == "two")
      tail.kill()
    }
  }

  // MARK: Odd names

  static let oddNames = [
    "two words", " blank ", "it's", "\"q\"", "a\\b", "$(x)", "*", "ü", "🔑", "-rf", "a;b", "a&b",
  ]

  @Test func toolsCopeWithOddNames() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/s keychain/generic/s")
      for name in Self.oddNames {
        try System.write(keyhole / "defaults/s/\(name)", "1\n")
        try System.mkdir(keyhole / "keychain/generic/s/\(name)")
        try System.write(keyhole / "keychain/generic/s/\(name)/value", "1\n")
      }
      // A line feed stands as %0A in a path.
      try keyhole.check(
        "echo 1 > defaults/s/two%0Alines; getfattr --only-values -n user.keyhole.name defaults/s/two%0Alines",
        prints: "two\nlines")
      try keyhole.check(
        """
        cp -r defaults keychain "$OUT"; diff -r defaults "$OUT/defaults"; diff -r keychain "$OUT/keychain"
        find defaults -type f -print0 | xargs -0 cat | sort -u; find keychain -name value -print0 | xargs -0 cat; echo
        find defaults -type f -print0 | xargs -0 sed -i s/1/2/; find defaults -type f -exec cat {} + | sort -u
        rm -r defaults/s keychain/generic/s; ls defaults keychain/generic
        """,
        prints:
          "1\n\(String(repeating: "1", count: Self.oddNames.count))\n2\ndefaults:\n\nkeychain/generic:\n")
    }
  }

  @Test func wholeFoldersAreCopiedByCp() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(CopyTests.before)
      try keyhole.check(
        """
        cp -r defaults/app defaults/copy; diff -r defaults/app defaults/copy
        cp -r keychain/generic/s keychain/generic/t; diff -r keychain/generic/s keychain/generic/t
        cp -a defaults/app defaults/twin; for k in defaults/app/*; do
          [ "$(getfattr --only-values -n user.keyhole.type "$k")" = "$(getfattr --only-values -n user.keyhole.type "defaults/twin/${k##*/}")" ]; done
        ls defaults; cp -r . "$OUT/all"; diff -r . "$OUT/all"
        """, prints: "app\ncopy\ntwin\n")
    }
  }

  // MARK: Watching

  @Test func inotifySeesWhatIsDoneThroughTheMount() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir -p defaults/s keychain/generic/s/p; echo 1 > defaults/s/k; echo 1 > keychain/generic/s/p/value"
      )
      for folder in ["defaults/s", "keychain/generic/s/p"] {
        let file = folder == "defaults/s" ? "k" : "value"
        let watch = try keyhole.launch([
          "/bin/sh", "-c",
          "exec inotifywait -m -e create,delete,moved_to,close_write,attrib --format '%e %f' \(folder) 2>&1",
        ])
        while let line = try watch.line(), !line.contains("Watches established") {}
        try keyhole.check("cd \(folder); echo 2 > \(file); sed -i s/2/3/ \(file); touch \(file); rm \(file)")
        var seen: [String] = []
        while seen.last != "DELETE \(file)", let line = try watch.line() { seen.append(line) }
        #expect(seen.contains("CLOSE_WRITE,CLOSE \(file)"))
        #expect(seen.contains("MOVED_TO \(file)"))
        #expect(seen.contains("ATTRIB \(file)"))
        watch.kill()
      }
    }
  }
}
