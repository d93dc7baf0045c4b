import Glibc
import Testing

/// SPECIFICATION.md, section 1: what it looks like to stat(2) and statfs(2). PosixTests has what is refused where.
@Suite(.timeLimit(.minutes(1))) struct TreeTests {
  @Test func controlFolderIsFoundByNameAndNotListed() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "ls -A . .keyhole keychain; find . -name .keyhole",
        prints:
          ".:\ndefaults\nkeychain\ntemplates\nviews\n\n.keyhole:\nevents\nhistory\nstatus\n\nkeychain:\ngeneric\ninternet\nother\n"
      )
      let status = try System.text(keyhole / ".keyhole/status")
      try keyhole.check(
        "wc -c < .keyhole/status; jq -r type .keyhole/status", prints: "\(status.utf8.count)\nobject\n")
      try keyhole.check("stat -c '%F %a' .keyhole", prints: "directory 700\n")
      // Recursive readers never meet `events`, which would block them.
      try keyhole.check("grep -r nothing . ; tar cf - . | wc -c | grep -q '[1-9]'")
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
      let files = ["defaults/a/k", "keychain/generic/s/p/value"]
      try keyhole.check(
        "stat -c '%F %a %u %g' \((directories + files).joined(separator: " "))",
        prints: String(repeating: "directory 700 \(mine)\n", count: directories.count)
          + String(repeating: "regular file 600 \(mine)\n", count: files.count))
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

  @Test func dfShowsTheStoresDisk() async throws {
    try await withKeyhole { keyhole in
      func numbers(_ path: String) throws -> [Substring] {
        try keyhole.sh("df --output=size,avail -B1M \(path) | tail -1").text.split { $0.isWhitespace }
      }
      let (own, disk) = (try numbers("."), try numbers("\"$CONFIG\""))
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
