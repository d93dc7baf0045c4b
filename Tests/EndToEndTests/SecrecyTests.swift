import Glibc
import Testing

/// Sections 4 and 10: where a secret must not be. Each search is tried on something that it must find.
@Suite(.timeLimit(.minutes(5))) struct SecrecyTests {
  static let item = "keychain/generic/s/p"

  /// A program that keeps what it reads, for a search to find.
  static func keeper(_ keyhole: MountedKeyhole, _ marker: Marker) throws -> Program {
    let program = try Program(
      ["/usr/bin/perl", "-e", "$| = 1; $x = <STDIN>; print \"ready\\n\"; <STDIN>"],
      environment: keyhole.world.environment, directory: keyhole.world.outside)
    try program.send(marker.text + "\n")
    _ = try program.line()
    return program
  }

  @Test(.enabled(if: Privileges.isRoot, "needs root: reads another process's memory"))
  func memoryKeepsNoSecretOnceItsHandlesAreClosedAsRoot() async throws {
    try await withKeyhole { keyhole in
      let marker = Marker(), second = Marker(), third = Marker()
      let keeper = try Self.keeper(keyhole, marker)
      #expect(try marker.count(inMemoryOf: keeper.process) > 0, "the search itself")
      keeper.kill()

      let process = try keyhole.process
      func expectNone(_ when: String) throws {
        for each in [marker, second, third] {
          #expect(try each.count(inMemoryOf: process) == 0, "\(when)")
        }
      }
      try keyhole.check("mkdir -p \(Self.item); cat > \(Self.item)/value", sending: Array(marker.text.utf8))
      try expectNone("after writing")
      try keyhole.check("cat \(Self.item)/value", prints: marker.text)
      try expectNone("after reading")
      try keyhole.check(
        "cat \(Self.item)/value | wc -c; ls -lR keychain > /dev/null; getfattr -dR keychain > /dev/null",
        prints: "200\n")
      try expectNone("after listing")
      try keyhole.check("cat >> \(Self.item)/value", sending: Array(second.text.utf8))
      try expectNone("after appending")
      try keyhole.check("cat > \(Self.item)/value", sending: Array(second.text.utf8))
      try expectNone("after a new value")
      try keyhole.check("dd of=\(Self.item)/value bs=7 status=none", sending: Array(third.text.utf8))
      try expectNone("after many small writes")
      try keyhole.check("dd if=\(Self.item)/value bs=3 status=none | wc -c", prints: "200\n")
      try expectNone("after many small reads")
      try keyhole.check(
        "mv \(Self.item) keychain/generic/s/q; setfattr -n user.comment -v x keychain/generic/s/q")
      try expectNone("after renaming")
      try keyhole.check(
        "cp keychain/generic/s/q/value \"$OUT/out\"; rm \"$OUT/out\"; cat keychain/generic/s/q/value > keychain/generic/s/q/copy; rm keychain/generic/s/q/copy"
      )
      try expectNone("after a scratch file")
      try keyhole.check("keyhole get keychain/generic/s/q/value | keyhole set keychain/generic/s/r/value")
      try expectNone("after the command")
      try keyhole.check("rm -r keychain/generic/s")
      try expectNone("after removing")
    }
  }

  @Test(.enabled(if: Privileges.isRoot, "needs root: reads another process's memory"))
  func memoryKeepsNothingOfAWriteThatFailedAsRoot() async throws {
    try await withKeyhole { keyhole in
      let marker = Marker()
      let process = try keyhole.process
      try keyhole.check("mkdir -p \(Self.item)")
      // Too big, never finished, and killed.
      let output = try keyhole.sh(
        "cat > \(Self.item)/value", sending: Array(String(repeating: marker.text, count: 6000).utf8))
      #expect(output.status != 0)
      #expect(try marker.count(inMemoryOf: process) == 0, "after one that was too big")
      _ = try keyhole.sh(
        "perl -e 'use Fcntl; sysopen(F, \"\(Self.item)/value\", O_WRONLY | O_CREAT); syswrite(F, scalar <STDIN>); kill KILL, $$; sleep 9'",
        sending: Array(marker.text.utf8))
      #expect(try marker.count(inMemoryOf: process) == 0, "after a writer that was killed")
      let file = try OpenFile(keyhole / "\(Self.item)/value", O_WRONLY | O_CREAT)
      try file.write(marker.text)
      try System.unlink(keyhole / "\(Self.item)/value")
      try System.rmdir(keyhole / Self.item)
      _ = failure { try file.close() }
      #expect(try marker.count(inMemoryOf: process) == 0, "after one whose item went")
    }
  }

  @Test(
    .enabled(
      if: Privileges.isRoot && System.exists("/usr/bin/gcore"),
      "needs root and gcore: takes a core of a running process"))
  func coreOfTheRunningProcessHasNoSecretAsRoot() async throws {
    try await withKeyhole { keyhole in
      let marker = Marker()
      let keeper = try Self.keeper(keyhole, marker)
      _ = try keyhole.world.sh("gcore -o \"$OUT/core\" \(keeper.process) > /dev/null 2>&1")
      #expect(
        try marker.count(inFile: "\(keyhole.world.outside)/core.\(keeper.process)") > 0, "the search itself")
      keeper.kill()
      try keyhole.check("mkdir -p \(Self.item); cat > \(Self.item)/value", sending: Array(marker.text.utf8))
      // With the secret open and read, when it has to be somewhere.
      let open = try OpenFile(keyhole / "\(Self.item)/value", O_RDWR)
      #expect(try open.readAll().count == 200)
      let process = try keyhole.process
      let output = try keyhole.world.sh("gcore -o \"$OUT/core\" \(process) 2>&1")
      let core = "\(keyhole.world.outside)/core.\(process)"
      try #require(System.exists(core), "\(output)")
      #expect(try marker.count(inFile: core) == 0)
    }
  }

  @Test(
    .enabled(
      if: Privileges.isRoot && System.exists("/usr/bin/gcore"),
      "needs root and gcore: takes a core of a running process"))
  func lockedProcessHasNeitherSecretNorKeyAsRoot() async throws {
    try await withKeyhole { keyhole in
      let marker = Marker()
      try keyhole.check("mkdir -p \(Self.item); cat > \(Self.item)/value", sending: Array(marker.text.utf8))
      let keys = try ClassKeys(keyhole.world)
      let open = try OpenFile(keyhole / "\(Self.item)/value", O_RDWR)
      #expect(try open.readAll().count == 200)
      try keyhole.check("keyhole lock")
      let process = try keyhole.process
      let output = try keyhole.world.sh("gcore -o \"$OUT/core\" \(process) 2>&1")
      let core = "\(keyhole.world.outside)/core.\(process)"
      try #require(System.exists(core), "\(output)")
      for (name, bytes) in [("master", keys.master), ("class", keys.whenUnlocked)] {
        let key = Marker(key: bytes)
        #expect(key.count(in: [0] + bytes) == 1, "the search itself")
        #expect(try key.count(inFile: core) == 0, "\(name) key in the core")
        #expect(try key.count(inMemoryOf: process) == 0, "\(name) key in the memory")
      }
      #expect(try marker.count(inFile: core) == 0 && marker.count(inMemoryOf: process) == 0)
    }
  }

  @Test(arguments: [SIGSEGV, SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGTRAP, SIGSYS])
  func crashPrintsNothingAndLeavesNoCore(signal: Int32) async throws {
    try await withKeyhole { keyhole in
      let marker = Marker()
      // Neither a limit nor the user's environment keeps the core and the backtrace away.
      try keyhole.unmount()
      let world = keyhole.world
      let program = try Program(
        [
          "/bin/bash", "-c",
          "ulimit -c unlimited; export SWIFT_BACKTRACE=enable=yes,color=no; exec keyhole mount --foreground -o keychain=vault \"$MOUNT\"",
        ],
        environment: world.environment, directory: world.outside, log: world.log)
      defer { program.kill() }
      try MountTable.wait(for: world.mount, orEndOf: program, until: Deadline(in: .seconds(20)))
      try keyhole.check(
        "mkdir -p \(Self.item); cat > \(Self.item)/value; cat \(Self.item)/value > /dev/null",
        sending: Array(marker.text.utf8))
      let open = try OpenFile(keyhole / "\(Self.item)/value", O_RDONLY)
      _ = try open.readAll()
      program.signal(signal)
      #expect(try program.waitForEnd(until: Deadline(in: .seconds(20))) == 128 + signal)
      try? open.close()
      #expect(try System.text(world.log) == "")
      keyhole.cleanUp()
      for file in System.files(below: world.root) {
        #expect(!file.contains("core"), "\(file)")
        #expect(try marker.count(inFile: "\(world.root)/\(file)") == 0, "\(file)")
      }
    }
  }

  @Test func atRestNoFileHasTheSecret() async throws {
    try await withKeyhole { keyhole in
      let marker = Marker(), removed = Marker(), setting = Marker()
      try keyhole.check(
        "mkdir -p keychain/generic/s/{p,q}; cat > \(Self.item)/value", sending: Array(marker.text.utf8))
      try keyhole.check("cat > keychain/generic/s/q/value", sending: Array(removed.text.utf8))
      try keyhole.check(
        "rm -r keychain/generic/s/q; mkdir defaults/s; cat > defaults/s/k", sending: Array(setting.text.utf8))
      let root = keyhole.world.root
      /// How often each is in the files that are there; nil: a file went away meanwhile.
      func searchOnce() throws -> [Int]? {
        do {
          let files = System.files(below: root).filter { !$0.hasPrefix("mount/") }
          return try [marker, removed, setting].map { marker in
            try files.map { try marker.count(inFile: "\(root)/\($0)") }.reduce(0, +)
          }
        } catch let error as Errno where error == .missing {
          return nil
        }
      }
      // The version before the last one is beside a suite until the new one is on the disk.
      func search() throws -> [Int] {
        let deadline = Deadline(in: .seconds(20))
        while !deadline.hasPassed {
          if let counts = try searchOnce() { return counts }
        }
        throw TimedOut(what: "a search in which no file goes away")
      }
      // The setting is there, so the search works.
      #expect(try search() == [0, 0, 1])
      try keyhole.kill()
      #expect(try search() == [0, 0, 1])
      try keyhole.start()
      try keyhole.unmount()
      #expect(try search() == [0, 0, 1])
    }
  }

  @Test func neitherArgumentsNorEnvironmentNorMessagesHaveTheSecret() async throws {
    try await withKeyhole { keyhole in
      let marker = Marker()
      try keyhole.check(
        "mkdir -p \(Self.item); cat > \(Self.item)/value; cat \(Self.item)/value > /dev/null",
        sending: Array(marker.text.utf8))
      let process = try keyhole.process
      // The environment of a process that is not dumpable is closed to its own user.
      for file in Privileges.isRoot ? ["cmdline", "environ"] : ["cmdline"] {
        #expect(try marker.count(inFile: "/proc/\(process)/\(file)") == 0)
      }
      #expect(try marker.count(inFile: keyhole / ".keyhole/status") == 0)
      for command in ["status", "status --json", "doctor", "ls -l \(Self.item)", "attr \(Self.item)"] {
        let output = try keyhole.world.sh("keyhole \(command) 2>&1")
        #expect(marker.count(in: output.bytes) == 0, "\(command)")
      }
      // Also where something fails with the secret in hand.
      let tooBig = Array(String(repeating: marker.text, count: 6000).utf8)
      let failed = try keyhole.world.sh("keyhole set \(Self.item)/value", sending: tooBig)
      #expect(failed.status == 1 && marker.count(in: Array(failed.error.utf8)) == 0)
      #expect(try marker.count(inFile: keyhole.world.log) == 0)
    }
  }

  @Test func processCanNotBeLookedIntoByItsOwnUser() async throws {
    try await withKeyhole { keyhole in
      // The effect of prctl(PR_SET_DUMPABLE, 0) shows in the owner of the process's files.
      let process = try keyhole.process
      #expect(try System.status("/proc/\(process)/mem").st_uid == 0)
      let limits = try System.text("/proc/\(process)/limits").split(separator: "\n").first {
        $0.hasPrefix("Max core file size")
      }
      #expect(limits?.split(separator: " ").dropFirst(4).prefix(2) == ["0", "0"])
      let rights =
        Privileges.isRoot
        ? "setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all --securebits=+noroot --clear-groups"
        : "env"
      #expect(try keyhole.world.sh("\(rights) cat /proc/\(process)/environ").status != 0)
    }
  }

  @Test(
    .enabled(if: Privileges.isRoot, "needs root: a swap file, and pushing another process's pages out to it"))
  func swapFileHasNoSecretAsRoot() async throws {
    try await withKeyhole { keyhole in
      let world = keyhole.world
      let swap = "\(world.outside)/swap"
      let ready = try world.sh(
        "dd if=/dev/zero of=\(swap) bs=1M count=256 status=none; chmod 600 \(swap); mkswap -q \(swap); swapon -p 32767 \(swap)"
      )
      // A container's kernel or file system may refuse it.
      guard ready.status == 0 else { return }
      defer { _ = try? world.sh("swapoff \(swap)", within: .seconds(60)) }
      // Every process's pages may go to this file, so the test itself knows the secrets only backwards.
      let kept = String(Marker().text.reversed()), marker = String(Marker().text.reversed())
      let reverse = "perl -0777 -ne 'print scalar reverse'"
      let search = { (reversed: String) in
        // Past the page cache: what is on the disk.
        try world.sh(
          "dd if=\(swap) iflag=direct bs=1M status=none | grep -ac \"$(printf %s \(reversed.prefix(24)) | \(reverse))\" || true"
        ).text
      }
      let keeper = try keyhole.launch(
        ["/usr/bin/perl", "-e", "$| = 1; chomp($x = <STDIN>); $x = reverse $x; print \"ready\\n\"; <STDIN>"])
      try keeper.send(kept + "\n")
      _ = try keeper.line()
      // The kernel is asked, and may have to be asked again.
      let isFound = try holds {
        try Self.pageOut(keeper.process, world)
        return try search(kept) != "0\n"
      }
      try #require(isFound, "the search itself")
      keeper.kill()
      try keyhole.check("mkdir -p \(Self.item); \(reverse) > \(Self.item)/value", sending: Array(marker.utf8))
      let open = try OpenFile(keyhole / "\(Self.item)/value", O_RDWR)
      try keyhole.check("wc -c < \(Self.item)/value", prints: "200\n")
      try Self.pageOut(try keyhole.process, world)
      #expect(try search(marker) == "0\n")
      try open.close()
    }
  }

  /// Pushes every page of a process out that can be: process_madvise(2) with MADV_PAGEOUT.
  static func pageOut(_ process: pid_t, _ world: World) throws {
    let script = """
      my $fd = syscall(434, \(process), 0); die "pidfd_open: $!" if $fd < 0; my $n = 0;
      open(M, "/proc/\(process)/maps"); while (<M>) {
        /^(\\w+)-(\\w+) rw/ or next; no warnings "portable"; my ($from, $to) = (hex $1, hex $2);
        my $vector = pack("QQ", $from, $to - $from); $n++ if syscall(440, $fd, $vector, 1, 21, 0) > 0;
      } print "$n\\n";
      """
    let output = try world.run(["/usr/bin/perl", "-e", script])
    #expect(output.status == 0 && (Int(output.text.dropLast()) ?? 0) > 0, "\(output)")
  }
}
