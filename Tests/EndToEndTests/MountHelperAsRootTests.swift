import Testing

/// `mount.keyhole` and `umount.keyhole` as mount(8), umount(8) and fstab(5) call them.
@Suite(
  .timeLimit(.minutes(1)), .enabled(if: Privileges.isRoot, "Only root can install a mount helper."))
struct MountHelperAsRootTests {
  @Test(arguments: ["keyhole", "fuse.keyhole"])
  func mountsByType(type: String) async throws {
    try await withMachine { machine in
      try machine.check(
        as: .root,
        """
        mkdir m; mount -t \(type) keyhole ~/m -o noatime,keychain=vault; findmnt -rn -o SOURCE,FSTYPE -M ~/m
        findmnt -n -o OPTIONS -M ~/m | grep -o noatime; ls m; umount ~/m; ls m
        """, prints: "keyhole fuse.keyhole\nnoatime\ndefaults\nkeychain\ntemplates\nviews\n")
    }
  }

  @Test func rootMountsAUsersVaultForTheUser() async throws {
    try await withMachine { machine in
      try machine.check(as: .anna, "mkdir vault")
      try machine.check(as: .root, "mount -t keyhole vault:/home/anna/vault /home/mnt -o uid=4001,gid=4001")
      try machine.check(
        as: .anna,
        """
        cd /home/mnt; mkdir -p defaults/s keychain/generic/s/a; echo 1 > defaults/s/k; echo hunter2 > keychain/generic/s/a/value
        cat keychain/generic/s/a/value; echo; stat -c '%U %G' . keychain/generic/s/a/value
        stat -c %U ~/vault/vault.db ~/.config/s.plist; ls ~/.local/share 2> /dev/null
        grep -E '^(Uid|Gid|CapEff|Groups):' /proc/$(grep -oP '"pid": \\K[0-9]+' .keyhole/status)/status
        """,
        prints: """
          hunter2
          anna anna
          anna anna
          anna
          anna
          Uid:\t4001\t4001\t4001\t4001
          Gid:\t4001\t4001\t4001\t4001
          Groups:\t4001\u{20}
          CapEff:\t0000000000000000

          """)
      try machine.fails(as: .berta, "ls /home/mnt", status: 2, "Permission denied")
      try machine.check(as: .root, "umount /home/mnt; findmnt -M /home/mnt || echo gone", prints: "gone\n")
    }
  }

  @Test func aLineOfFstabMounts() async throws {
    try await withMachine { machine in
      try machine.check(
        as: .root,
        """
        echo 'keyhole /home/mnt keyhole uid=anna,_netdev,nofail,x-systemd.automount 0 0' >> /etc/fstab
        mount -a; findmnt -rn -o SOURCE,FSTYPE -M /home/mnt; mount -a; grep -c ' /home/mnt ' /proc/self/mountinfo
        umount /home/mnt; echo 'none /home/srv keyhole noauto,ro,x-systemd.automount 0 0' > /etc/fstab
        mount -a; findmnt -M /home/srv || mount /home/srv; findmnt -rn -o SOURCE -M /home/srv; mkdir /home/srv/defaults/s 2>&1 | grep -o 'Read-only'
        """, prints: "keyhole fuse.keyhole\n1\nnone\nRead-only\n")
    }
  }

  /// mount(8) is set-user-id, and gives its rights up before it calls the helper.
  @Test func aLineForUsersMountsAsTheUser() async throws {
    try await withMachine { machine in
      try machine.check(
        as: .root, "echo 'keyhole /home/anna/m fuse.keyhole noauto,user,_netdev,eol=exact 0 0' >> /etc/fstab")
      try machine.check(
        as: .anna,
        """
        mkdir m; mount ~/m; keyhole set defaults/s/k 1; cat m/defaults/s/k; stat -c %U m/defaults/s/k
        umount ~/m; ls m
        """, prints: "1\nanna\n")
      // Others may not: mount(8) would let them, the folder's owner is what keeps them out.
      let stranger = try machine.sh("mount ~anna/m", as: .berta)
      #expect(stranger.status != 0)
    }
  }

  @Test(arguments: [
    ("frobnicate", "frobnicate"), ("ro,frobnicate=7,noatime", "frobnicate=7"),
    ("keychain=nonsense", "nonsense"),
    ("vault=relative", "vault=relative"),
  ])
  func unknownOptionIsRefusedByName(options: String, name: String) async throws {
    try await withMachine { machine in
      try machine.fails(as: .root, "mount -t keyhole keyhole /home/mnt -o \(options)", status: 1, name)
      try machine.check(as: .root, "findmnt -M /home/mnt || echo nothing", prints: "nothing\n")
    }
  }

  @Test(arguments: ["tmpfs", "vault:relative", "/dev/sda1"])
  func unknownSourceIsAUsageError(source: String) async throws {
    try await withMachine { machine in
      try machine.fails(as: .root, "mount -t keyhole \(source) /home/mnt", status: 1, source)
    }
  }

  @Test func aFailureHasTheExitCodeOfMount() async throws {
    try await withMachine { machine in
      try machine.fails(
        as: .root, "mount -t keyhole keyhole /home/mnt -o uid=nobody-at-all", status: 32, "there is no user")
      try machine.check(as: .root, "mkdir full; touch full/x")
      try machine.fails(as: .root, "mount -t keyhole keyhole ~/full", status: 32, "not empty")
      // A vault that can't be opened leaves no mount behind.
      try machine.check(as: .anna, "mkdir -m 777 v")
      try machine.fails(
        as: .root, "mount -t keyhole vault:/home/anna/v /home/mnt -o uid=anna", status: 32, "/home/anna/v")
      try machine.check(as: .root, "findmnt -M /home/mnt || echo nothing", prints: "nothing\n")
    }
  }

  @Test func pretendingMountsNothing() async throws {
    try await withMachine { machine in
      try machine.check(
        as: .root,
        "mount -f -v -t keyhole keyhole /home/mnt -o ro | grep -o 'keyhole mount -o .*'; findmnt -M /home/mnt || echo nothing",
        prints: "keyhole mount -o ro,fsname=keyhole -- /home/mnt\nnothing\n")
    }
  }

  @Test func aMountInUseIsUnmountedOnlyLazily() async throws {
    try await withMachine { machine in
      try machine.check(as: .root, "mount -t keyhole keyhole /home/mnt")
      try machine.fails(as: .root, "cd /home/mnt && umount /home/mnt", status: 32, "busy")
      try machine.fails(as: .root, "cd /home/mnt && umount.keyhole /home/mnt", status: 32, "in use")
      try machine.check(
        as: .root, "cd /home/mnt && umount -l /home/mnt; findmnt -M /home/mnt || echo gone", prints: "gone\n")
    }
  }
}
