import Testing

/// What `keyhole doctor` says of the system to a user, each typed by root on a machine of the test's own.
@Suite(.timeLimit(.minutes(2)), .enabled(if: Privileges.isRoot, "Only root can spoil a system."))
struct DoctorAsRootTests {
  /// Spoils something, expects doctor to name it with a command, types that as root, and expects it gone.
  private func check(
    spoiling script: String, word: String, command: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    try await withMachine { machine in
      try machine.check(as: .anna, "keyhole doctor > before; grep '\(word)' before || true")
      try machine.check(as: .root, script)
      let found = try machine.sh("keyhole doctor", as: .anna)
      let line = found.text.split(separator: "\n").first { $0.contains(word) }.map(String.init) ?? ""
      let parts = line.split(separator: "`", omittingEmptySubsequences: false)
      try #require(parts.count >= 3, "\(found)", sourceLocation: sourceLocation)
      #expect(parts[1].hasPrefix("sudo " + command), "\(line)", sourceLocation: sourceLocation)
      // Root is who sudo would be; the folder is that of the user, in which the command is typed.
      let typed = try machine.sh("sudo() { \"$@\"; }; cd /home/anna; \(parts[1])", as: .root)
      #expect(typed.status == 0, "\(parts[1]): \(typed)", sourceLocation: sourceLocation)
      let after = try machine.sh("keyhole doctor", as: .anna)
      #expect(!after.text.contains(word), "\(parts[1]): \(after)", sourceLocation: sourceLocation)
      try machine.check(as: .anna, "keyhole mount && keyhole unmount")
    }
  }

  @Test func fusermountWithoutItsBit() async throws {
    try await check(
      spoiling:
        "cp /usr/bin/fusermount3 /home/.etc/; chown anna /home/.etc/fusermount3; chmod 755 /home/.etc/fusermount3; mount --bind /home/.etc/fusermount3 /usr/bin/fusermount3",
      word: "set-user-id", command: "chown")
  }

  @Test func deviceThatIsClosed() async throws {
    try await check(spoiling: "chmod 600 /dev/fuse", word: "/dev/fuse", command: "chmod 666")
  }

  @Test func mountTableThatIsMissing() async throws {
    try await check(
      spoiling: """
        mkdir -m 755 /home/.etc/u /home/.etc/w; mount -t overlay -o lowerdir=/etc,upperdir=/home/.etc/u,workdir=/home/.etc/w overlay /etc
        for file in passwd group fuse.conf fstab; do mount --bind /home/.etc/$file /etc/$file; done; rm /etc/mtab
        """, word: "/etc/mtab", command: "ln -s")
  }

  /// A file in place of the system's own setting, which is everybody's.
  @Test(arguments: ["max_user_instances", "max_user_watches"])
  func limitsOfInotify(name: String) async throws {
    try await check(
      spoiling:
        "echo 8 > /home/.etc/\(name); chmod 644 /home/.etc/\(name); mount --bind /home/.etc/\(name) /proc/sys/fs/inotify/\(name)",
      word: name, command: "sysctl")
  }

  /// What installs a program is not typed here: that it is named is what counts.
  @Test(arguments: [("fusermount3", "fuse3", "problem"), ("pinentry", "pinentry-curses", "note")])
  func programThatIsMissing(program: String, package: String, kind: String) async throws {
    try await withMachine { machine in
      try machine.check(
        as: .root,
        "for file in /usr/bin/\(program)*; do mount --bind /dev/null \"$(realpath \"$file\")\" 2> /dev/null || true; done"
      )
      let found = try machine.sh("keyhole doctor", as: .anna)
      let line = found.text.split(separator: "\n").first { $0.contains("apt-get install \(package)`") } ?? ""
      #expect(line.hasPrefix(kind) && line.contains(program), "\(found)")
      #expect(found.status == (kind == "problem" ? 1 : 0))
    }
  }

  @Test func diskThatIsFull() async throws {
    try await withMachine { machine in
      try machine.check(as: .root, "mount -t tmpfs -o size=24m,uid=4001,gid=4001,mode=700 tmpfs /home/anna")
      try machine.check(
        as: .anna, "keyhole set defaults/s/k 1; dd if=/dev/zero of=fill bs=4k 2> /dev/null || true")
      let found = try machine.sh("keyhole doctor", as: .anna)
      #expect(found.status == 1 && found.text.contains("its disk is full"), "\(found)")
      let parts = found.text.split(separator: "`", omittingEmptySubsequences: false)
      #expect(try machine.sh(String(parts[1]), as: .anna).status == 0, "\(found)")
      // The advice: only removing works, and that frees room.
      try machine.check(
        as: .anna, "keyhole rm defaults/s/k; rm fill; keyhole doctor > after; grep -c '^ok' after",
        prints: "1\n")
    }
  }

  /// Not this user's file: chmod would not do.
  @Test func suiteOfAnotherOwner() async throws {
    try await withMachine { machine in
      try machine.check(as: .anna, "keyhole set defaults/s/k 1")
      try machine.check(as: .root, "chown 0 /home/anna/.config/s.plist; chmod 600 /home/anna/.config/s.plist")
      let found = try machine.sh("keyhole doctor", as: .anna)
      let parts = found.text.split(separator: "`", omittingEmptySubsequences: false)
      try #require(parts.count >= 3 && parts[1].hasPrefix("sudo chown $(id -u) "), "\(found)")
      // The shell replaces $(id -u) before sudo runs.
      let typed = parts[1].replacing("$(id -u)", with: "4001")
      try machine.check(as: .root, "sudo() { \"$@\"; }; \(typed)")
      try machine.check(as: .anna, "keyhole get defaults/s/k", prints: "1\n")
    }
  }
}
