import Foundation
import Glibc
import Testing

/// SPECIFICATION.md, section 1: what is where, and what it looks like to stat(2).
@Suite(.timeLimit(.minutes(1))) struct TreeTests {
  @Test func topHoldsDefaultsAndKeychain() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("ls -A", prints: "defaults\nkeychain\n")
      try keyhole.check("ls -A keychain", prints: "generic\ninternet\nother\n")
      try keyhole.check("ls -A defaults")
    }
  }

  @Test func controlFolderIsFoundByNameAndNotListed() async throws {
    try await withKeyhole { keyhole in
      #expect(try System.names(keyhole / ".keyhole").contains("status"))
      try keyhole.check("find . -name .keyhole")
      try keyhole.check("stat -c '%F %a' .keyhole", prints: "directory 700\n")
      // Recursive readers never meet `events`, which would block them.
      try keyhole.check("grep -r nothing . ; tar cf - . | wc -c | grep -q '[1-9]'")
    }
  }

  @Test func controlFolderHasEvents() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("ls -A .keyhole", prints: "events\nstatus\n")
    }
  }

  @Test func statusIsOneObject() async throws {
    try await withKeyhole { keyhole in
      let bytes = try System.read(keyhole / ".keyhole/status")
      let object = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
      #expect(object?.isEmpty == false)
      let output = try keyhole.sh("wc -c < .keyhole/status")
      #expect(output.text == "\(bytes.count)\n")
    }
  }

  @Test func modesAndOwnersArePrivate() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/a; echo 1 > defaults/a/k; mkdir -p keychain/generic/s/p; echo x > keychain/generic/s/p/value"
      )
      let mine = "\(getuid()) \(getgid())"
      let directories = [
        ".", "defaults", "defaults/a", "keychain", "keychain/generic", "keychain/generic/s/p", ".keyhole",
      ]
      for path in directories {
        try keyhole.check("stat -c '%F %a %u %g' \(path)", prints: "directory 700 \(mine)\n")
      }
      for path in ["defaults/a/k", "keychain/generic/s/p/value"] {
        try keyhole.check("stat -c '%F %a %u %g' \(path)", prints: "regular file 600 \(mine)\n")
      }
    }
  }

  @Test func chmodSucceedsAndChangesNothing() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/a; echo 1 > defaults/a/k")
      try keyhole.check(
        "chmod 777 defaults/a/k defaults/a defaults && stat -c %a defaults/a/k defaults/a defaults",
        prints: "600\n700\n700\n")
      try keyhole.check(
        "umask 0; mkdir -m 777 defaults/b; echo 1 > defaults/b/k; stat -c %a defaults/b defaults/b/k",
        prints: "700\n600\n")
    }
  }

  @Test func chownSucceedsForThePresentOwnerOnly() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/a; echo 1 > defaults/a/k")
      let key = keyhole / "defaults/a/k"
      #expect(failure { try System.chown(key, getuid(), getgid()) } == nil)
      #expect(failure { try System.chown(key, getuid(), gid_t.max) } == nil)
      #expect(failure { try System.chown(key, gid_t.max, getgid()) } == nil)
      #expect(failure { try System.chown(key, getuid() + 1, gid_t.max) } == .notPermitted)
      #expect(failure { try System.chown(key, uid_t.max, getgid() + 1) } == .notPermitted)
      try keyhole.check("stat -c '%u %g' defaults/a/k", prints: "\(getuid()) \(getgid())\n")
    }
  }

  @Test func creatingWhatTheTreeHasNoPlaceForIsNotPermitted() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/a; echo 1 > defaults/a/k; mkdir -p keychain/generic/s/p; echo x > keychain/generic/s/p/value"
      )
      let places = [
        "x", "defaults/x", "keychain/x", "keychain/generic/x", "keychain/internet/x", "keychain/other/x",
        "keychain/generic/s/x", ".keyhole/x",
      ]
      for place in places {
        #expect(failure { try System.write(keyhole / place, "") } == .notPermitted, "file \(place)")
        #expect(
          failure { try System.mknod(keyhole / place, kind: S_IFREG) } == .notPermitted, "mknod \(place)")
        #expect(
          failure { try System.symlink("target", keyhole / place) } == .notPermitted, "symlink \(place)")
      }
      for place in ["x", "keychain/x", ".keyhole/x", "defaults/a/x", "keychain/generic/s/p/x"] {
        #expect(failure { try System.mkdir(keyhole / place) } == .notPermitted, "directory \(place)")
      }
    }
  }

  @Test func linksDevicesAndPipesAreNotPermitted() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/a; echo 1 > defaults/a/k; mkdir -p keychain/generic/s/p; echo x > keychain/generic/s/p/value"
      )
      #expect(
        failure { try System.link(keyhole / "defaults/a/k", keyhole / "defaults/a/l") } == .notPermitted)
      let value = keyhole / "keychain/generic/s/p/value"
      #expect(failure { try System.link(value, keyhole / "keychain/generic/s/p/l") } == .notPermitted)
      for folder in [".", "defaults", "defaults/a", "keychain/generic/s", "keychain/generic/s/p"] {
        for kind in [S_IFIFO, S_IFCHR, S_IFBLK, S_IFSOCK] {
          let refusal = failure { try System.mknod(keyhole / "\(folder)/x", kind: kind, device: 0x0103) }
          #expect(refusal == .notPermitted, "\(folder) \(kind)")
        }
      }
      #expect(failure { try System.symlink("k", keyhole / "defaults/a/l") } == .notPermitted)
      try keyhole.check(
        "ls -A defaults/a keychain/generic/s/p", prints: "defaults/a:\nk\n\nkeychain/generic/s/p:\nvalue\n")
    }
  }

  @Test func mknodOfARegularFileCreatesAKey() async throws {
    try await withKeyhole { keyhole in
      try System.mkdir(keyhole / "defaults/a")
      try System.mknod(keyhole / "defaults/a/k", kind: S_IFREG)
      try keyhole.check(
        "stat -c '%s %F' defaults/a/k; echo 5 > defaults/a/k; cat defaults/a/k",
        prints: "0 regular empty file\n5\n")
    }
  }

  @Test func fixedFoldersStay() async throws {
    try await withKeyhole { keyhole in
      for place in [
        "defaults", "keychain", "keychain/generic", "keychain/internet", "keychain/other", ".keyhole",
      ] {
        #expect(failure { try System.rmdir(keyhole / place) } == .notPermitted, "rmdir \(place)")
        let move = failure { try System.rename(keyhole / place, keyhole / "moved") }
        #expect(move == .notPermitted, "rename \(place)")
      }
      try keyhole.check("ls; ls keychain", prints: "defaults\nkeychain\ngeneric\ninternet\nother\n")
    }
  }

  @Test func kernelRefusesWhatIsNoUseOfADirectoryOrFile() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/a; echo 1 > defaults/a/k")
      let key = keyhole / "defaults/a/k"
      #expect(failure { _ = try System.status(key + "/x") } == .notDirectory)
      #expect(failure { _ = try OpenFile(keyhole / "defaults/a", O_WRONLY) } == .isDirectory)
      #expect(failure { try System.rmdir(key) } == .notDirectory)
      #expect(failure { try System.unlink(keyhole / "defaults/a") } == .isDirectory)
      #expect(failure { try System.rename(keyhole / "defaults", keyhole / "defaults/a/b") } == .invalid)
      #expect(failure { _ = try System.status(keyhole / "defaults/missing") } == .missing)
      #expect(failure { _ = try System.status(keyhole / "defaults/a/missing") } == .missing)
      #expect(failure { try System.mkdir(keyhole / "defaults/a") } == .exists)
      #expect(failure { _ = try OpenFile(key, O_WRONLY | O_CREAT | O_EXCL) } == .exists)
    }
  }

  @Test func linkCountsAreReal() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/a defaults/b; echo 1 > defaults/a/k; mkdir -p keychain/generic/s/p keychain/generic/s/q; echo x > keychain/generic/s/p/value"
      )
      let counts = [
        "defaults": 4, "defaults/a": 2, "defaults/a/k": 1, "keychain": 5, "keychain/generic": 3,
        "keychain/internet": 2, "keychain/generic/s": 4, "keychain/generic/s/p": 2,
        "keychain/generic/s/p/value": 1,
      ]
      for (path, count) in counts.sorted(by: { $0.key < $1.key }) {
        #expect(try System.status(keyhole / path).st_nlink == UInt(count), "\(path)")
      }
    }
  }

  @Test func inodeNumbersAreTheirOwnAndStable() async throws {
    try await Self.inodeNumbersAreStable(after: "true")
  }

  @Test(.enabled(if: Privileges.isRoot, "needs root: drops the caches of the kernel"))
  func inodeNumbersAreStableWithoutTheKernelsCachesAsRoot() async throws {
    try await Self.inodeNumbersAreStable(after: "echo 2 > /proc/sys/vm/drop_caches")
  }

  private static func inodeNumbersAreStable(after script: String) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/a defaults/b; echo 1 > defaults/a/k; echo 1 > defaults/b/k; mkdir -p keychain/generic/s/p; echo x > keychain/generic/s/p/value"
      )
      let paths = [
        "", "defaults", "defaults/a", "defaults/b", "defaults/a/k", "defaults/b/k", "keychain",
        "keychain/generic",
        "keychain/generic/s", "keychain/generic/s/p", "keychain/generic/s/p/value",
      ]
      let before = try paths.map { try System.status(keyhole / $0).st_ino }
      #expect(Set(before).count == paths.count)
      // After a new value, and after the script.
      try keyhole.check(
        "echo 2 > defaults/a/k; echo y > keychain/generic/s/p/value; mkdir defaults/c; rmdir defaults/c")
      try keyhole.check(script)
      #expect(try paths.map { try System.status(keyhole / $0).st_ino } == before)
      // A listing tells the same numbers as stat (`ls -i`, `find -inum`).
      for folder in ["defaults", "defaults/a", "keychain/generic", "keychain/generic/s/p"] {
        for (name, inode) in try System.entries(keyhole / folder) {
          #expect(try System.status(keyhole / "\(folder)/\(name)").st_ino == inode, "\(folder)/\(name)")
        }
      }
    }
  }

  @Test func sizesAreExact() async throws {
    let contents = [
      "1", "true", "hello", "1.5", "[1, 2]", "2026-11-21T07:53:00Z", #"{"a":{"b":[]}}"#, "größer",
    ]
    try await withKeyhole { keyhole in
      try System.mkdir(keyhole / "defaults/a")
      try keyhole.check("mkdir -p keychain/generic/s/{0,1,2,3,4,5,6,7}")
      for (number, content) in contents.enumerated() {
        try System.write(keyhole / "defaults/a/\(number)", content)
        try System.write(keyhole / "keychain/generic/s/\(number)/value", content + "\n")
      }
      // Also in a fresh mount, where nothing has been opened before the first stat.
      try keyhole.remount()
      for number in contents.indices {
        for path in ["defaults/a/\(number)", "keychain/generic/s/\(number)/value"] {
          let size = try System.status(keyhole / path).st_size
          #expect(Int(size) == (try System.read(keyhole / path)).count, "\(path)")
        }
      }
    }
  }

  @Test func dfShowsTheStoresDisk() async throws {
    try await withKeyhole { keyhole in
      let own = try keyhole.sh("df --output=size,avail -B1M . | tail -1").text.split(separator: " ").map {
        $0.trimmingCharacters(in: .newlines)
      }
      let disk = try keyhole.sh("df --output=size,avail -B1M \"$CONFIG\" | tail -1").text.split(
        separator: " "
      ).map { $0.trimmingCharacters(in: .newlines) }
      try #require(own.count == 2 && disk.count == 2)
      #expect(own[0] == disk[0])
      let room = try #require(Int(own[1])), there = try #require(Int(disk[1]))
      // Other programs write to the disk meanwhile.
      #expect(abs(room - there) < 1024)
    }
  }

  @Test func mountIsPrivateAndNamed() async throws {
    try await withKeyhole { keyhole in
      let output = try keyhole.sh("findmnt -n -o FSTYPE,OPTIONS \"$MOUNT\"")
      #expect(output.text.hasPrefix("fuse"))
      #expect(!output.text.contains("allow_other"))
      #expect(output.text.contains("nosuid") && output.text.contains("nodev"))
    }
  }

  @Test(.enabled(if: Privileges.isRoot, "needs root: plays another user"))
  func otherUsersSeeNothingAsRoot() async throws {
    try await withKeyhole { keyhole in
      // The way there is open to them, the mount is not.
      try keyhole.check("chmod 755 \"$MOUNT/..\"")
      let output = try keyhole.world.sh("setpriv --reuid 65534 --regid 65534 --clear-groups ls \"$MOUNT\"")
      #expect(output.status != 0)
      #expect(output.error.contains("Permission denied"))
    }
  }

  @Test func unmountEndsTheProcessAndPlacesArePrivate() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/a; echo 1 > defaults/a/k; mkdir -p keychain/generic/s/p; echo x > keychain/generic/s/p/value"
      )
      let world = keyhole.world
      let script =
        "find \"$CONFIG\" \"$DATA\" \"$XDG_STATE_HOME\" \"$XDG_RUNTIME_DIR\" -mindepth 1 ! -perm 0700 ! -perm 0600 ! -path '*/systemd*'"
      #expect(try world.sh(script) == Output(status: 0, bytes: [], error: ""))
      try world.check("test -d \"$DATA/keyhole\" && test -d \"$XDG_STATE_HOME/keyhole\"")
      #expect(try keyhole.unmount() == 0)
      #expect(try world.sh(script) == Output(status: 0, bytes: [], error: ""))
    }
  }
}
