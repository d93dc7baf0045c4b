import Testing

/// The remedies of `keyhole doctor` for the system, each typed by root on a machine of the test's own.
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

  /// A file in place of the system's setting, which all processes share.
  @Test(arguments: ["max_user_instances", "max_user_watches"])
  func limitsOfInotify(name: String) async throws {
    try await check(
      spoiling:
        "echo 8 > /home/.etc/\(name); chmod 644 /home/.etc/\(name); mount --bind /home/.etc/\(name) /proc/sys/fs/inotify/\(name)",
      word: name, command: "sysctl")
  }

  /// Commands that install a program are not typed here: they only have to be named.
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
      // The advice: what it holds can only be removed, and that frees room.
      try machine.check(
        as: .anna, "keyhole rm defaults/s/k; rm fill; keyhole doctor > after; grep -c '^ok' after",
        prints: "1\n")
    }
  }

  /// A disk of the user's own, of which `/dev/loopN` is the device.
  private static let disk = """
    truncate -s 32M /home/.etc/image; mkfs.ext4 -q -b 4096 /home/.etc/image
    device=$(losetup -f --show /home/.etc/image); echo $device > /home/.etc/device
    mount -o errors=remount-ro $device /home/anna; chown anna: /home/anna; chmod 700 /home/anna
    """
  private static let fill = "keyhole set defaults/s/k 1; printf x | keyhole set keychain/generic/s/a/value"

  /// Looked at by doctor, and mended by what it says first.
  @Test(arguments: [
    ("mount -o remount,ro /home/anna", "its disk is mounted read-only", "sudo mount -o remount,rw "),
    (
      "echo test > /sys/fs/ext4/$(basename $(cat /home/.etc/device))/trigger_fs_error",
      "its disk became read-only after an error", "sudo umount "
    ),
  ])
  func diskThatTakesNoWrites(spoiling: String, reason: String, command: String) async throws {
    try await withMachine { machine in
      try machine.check(as: .root, Self.disk)
      defer { _ = try? machine.sh("umount -l /home/anna; losetup -d $(cat /home/.etc/device)", as: .root) }
      try machine.check(as: .anna, "\(Self.fill); keyhole doctor > /dev/null")
      try machine.check(as: .root, spoiling)
      let found = try machine.sh("keyhole doctor", as: .anna)
      // One disk, one problem: nothing is said of a vault that would be damaged.
      let problems = found.text.split(separator: "\n").filter { $0.hasPrefix("problem") }
      #expect(problems.count == 1 && found.status == 1, "\(found)")
      let line = problems.first ?? ""
      #expect(line.contains("/home/anna: \(reason)") && !line.contains("backup"), "\(line)")
      let written = try machine.sh("keyhole set defaults/s/k 2", as: .anna)
      #expect(written.status == 1 && written.error.contains("read-only"), "\(written)")
      // Stored values can be read, without a file that SQLite would have to make.
      try machine.check(
        as: .anna, "keyhole get defaults/s/k; keyhole get keychain/generic/s/a/value", prints: "1\nx")
      let secret = try machine.sh("printf y | keyhole set keychain/generic/s/a/value", as: .anna)
      #expect(secret.status == 1 && secret.error.contains("read-only"), "\(secret)")
      let parts = line.split(separator: "`", omittingEmptySubsequences: false)
      try #require(parts.count >= 3 && parts[1].hasPrefix(command), "\(line)")
      let typed = try machine.sh("cd /; sudo() { \"$@\"; }; \(parts[1])", as: .root)
      #expect(typed.status == 0, "\(typed)")
      try machine.check(
        as: .anna,
        "keyhole doctor | grep -c ^ok; keyhole set defaults/s/k 3; keyhole get keychain/generic/s/a/value",
        prints: "1\nx")
    }
  }

  /// The hard limit is root's to raise, where root has CAP_SYS_RESOURCE.
  @Test func tooLittleLockedMemory() async throws {
    try await withWorld { world in
      guard try world.sh("ulimit -l 64; prlimit --pid $$ --memlock=8388608").status == 0 else { return }
      try world.check(
        DoctorTests.withoutSecretMemory
          + "ulimit -l 64; sed -i '1i sudo() { \"$@\"; }' $OUT/follow; python3 $OUT/filter.py bash $OUT/follow",
        prints: "sudo prlimit --pid $$ --memlock=8388608\nenough\n")
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
