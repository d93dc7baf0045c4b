import Testing

/// Access to mounts: users without root's rights, allow_other, user namespaces, and mounts that root makes for others.
@Suite(
  .timeLimit(.minutes(1)), .enabled(if: Privileges.isRoot, "Only root can play several users."))
struct UsersAsRootTests {
  @Test func aUserMountsThroughFusermount() async throws {
    try await withMachine { machine in
      try machine.check(
        as: .anna,
        """
        keyhole mount && cd Keyhole
        mkdir defaults/s && echo 11 > defaults/s/volume && cat defaults/s/volume
        mkdir -p keychain/generic/s/a && echo hunter2 > keychain/generic/s/a/value && cat keychain/generic/s/a/value; echo
        stat -c '%U %a' . defaults/s defaults/s/volume keychain/generic/s/a/value
        findmnt -rn -o FSTYPE,OPTIONS -M ~/Keyhole; cd; keyhole unmount; ls Keyhole
        keyhole get keychain/generic/s/a/value
        """,
        prints: """
          11
          hunter2
          anna 700
          anna 700
          anna 600
          anna 600
          fuse.keyhole rw,nosuid,nodev,noexec,relatime,user_id=4001,group_id=4001
          hunter2
          """)
    }
  }

  @Test func fusermountUnmountsItToo() async throws {
    try await withMachine { machine in
      try machine.check(
        as: .anna,
        """
        keyhole mount && fusermount3 -u ~/Keyhole && ls Keyhole && keyhole mount && umount ~/Keyhole && ls Keyhole
        """)
    }
  }

  @Test func neitherAnotherUserNorRootSeesAnything() async throws {
    try await withMachine { machine in
      try machine.check(as: .anna, "mkdir -m 755 m; chmod 755 ~; keyhole mount m; keyhole set defaults/s/k 1")
      try machine.fails(as: .berta, "ls ~anna/m", status: 2, "Permission denied")
      try machine.fails(as: .root, "ls ~anna/m", status: 2, "Permission denied")
    }
  }

  @Test func twoUsersMountsAreApart() async throws {
    try await withMachine { machine in
      for user in [Machine.User.anna, .berta] {
        try machine.check(
          as: user,
          """
          keyhole mount; cd Keyhole; mkdir defaults/s; echo \(user.rawValue) > defaults/s/who
          mkdir -p keychain/generic/\(user.rawValue)/x; echo \(user.rawValue) > keychain/generic/\(user.rawValue)/x/value
          """)
      }
      for user in [Machine.User.anna, .berta] {
        try machine.check(
          as: user,
          "cat ~/Keyhole/defaults/s/who; ls ~/Keyhole/keychain/generic; keyhole status | grep -c mounted",
          prints: "\(user.rawValue)\n\(user.rawValue)\n1\n")
      }
    }
  }

  @Test func aUserMountsOnNothingOfOthers() async throws {
    try await withMachine { machine in
      try machine.check(as: .berta, "mkdir -m 777 open; mkdir -m 755 mine; chmod 755 ~")
      try machine.fails(as: .anna, "keyhole mount ~berta/mine", status: 1, "belongs to another user")
      try machine.fails(as: .anna, "keyhole mount /home/mnt", status: 1, "belongs to another user")
      try machine.fails(as: .anna, "mkdir -m 777 w; keyhole mount w", status: 1, "others may write")
      try machine.fails(
        as: .anna, "mkdir w2; keyhole mount -o uid=berta w2", status: 1,
        "only root can mount for another user")
    }
  }

  // MARK: allow_other and allow_root

  @Test func lettingOthersInNeedsALineOfRoots() async throws {
    try await withMachine { machine in
      for option in ["allow_other", "allow_root"] {
        let output = try machine.sh("keyhole mount -o \(option)", as: .anna)
        #expect(output.status == 1)
        #expect(
          output.error
            == "keyhole: `allow_other` and `allow_root` need the line `user_allow_other` in /etc/fuse.conf, which root adds\n"
        )
      }
    }
  }

  /// The modes keep other users out even where the kernel lets them ask; root passes by modes.
  @Test func withAllowOtherRootSeesAllAndOthersNothing() async throws {
    try await withMachine { machine in
      try machine.check(as: .root, "echo user_allow_other >> /etc/fuse.conf")
      try machine.check(
        as: .anna,
        "chmod 755 ~; keyhole mount -o allow_other; keyhole set defaults/s/k 1; cat Keyhole/defaults/s/k",
        prints: "1\n")
      try machine.check(as: .root, "cat ~anna/Keyhole/defaults/s/k", prints: "1\n")
      try machine.fails(as: .berta, "ls ~anna/Keyhole", status: 2, "Permission denied")
      try machine.fails(as: .berta, "cat ~anna/Keyhole/defaults/s/k", status: 1, "Permission denied")
    }
  }

  @Test func withAllowRootOnlyRootIsLetIn() async throws {
    try await withMachine { machine in
      try machine.check(as: .root, "echo user_allow_other >> /etc/fuse.conf")
      try machine.check(
        as: .anna,
        "chmod 755 ~; keyhole mount -o allow_root; keyhole set defaults/s/k 1; cat Keyhole/defaults/s/k",
        prints: "1\n")
      try machine.check(as: .root, "cat ~anna/Keyhole/defaults/s/k", prints: "1\n")
      try machine.fails(as: .berta, "ls ~anna/Keyhole", status: 2, "Permission denied")
    }
  }

  // MARK: User namespaces

  @Test func itMountsInsideAUserNamespace() async throws {
    try await withMachine { machine in
      try machine.check(
        as: .anna,
        """
        unshare --user --map-root-user --mount bash -c '
          keyhole mount && echo 1 | keyhole set defaults/s/k && cat ~/Keyhole/defaults/s/k
          stat -c %u ~/Keyhole/defaults/s/k; keyhole unmount'
        ls Keyhole; keyhole get defaults/s/k
        """, prints: "1\n0\n1\n")
    }
  }

  /// The set-up of a rootless container: it maps the user to its own root, and binds the folder.
  @Test func aRootlessContainerSeesABoundMount() async throws {
    try await withMachine { machine in
      try machine.check(
        as: .anna,
        """
        keyhole mount; keyhole set defaults/s/k 1; mkdir bound
        unshare --user --map-root-user --mount bash -c '
          mount --bind ~/Keyhole/defaults ~/bound && cat ~/bound/s/k && echo 2 > ~/bound/s/k'
        cat Keyhole/defaults/s/k
        """, prints: "1\n2\n")
      // Another user's container, or another user of the same one, is a stranger.
      try machine.fails(
        as: .berta, "unshare --user --map-root-user --mount ls ~anna/Keyhole", status: 2, "Permission denied")
    }
  }

  // MARK: A mount whose process died

  @Test func aDeadMountIsMountedAgain() async throws {
    try await withMachine { machine in
      let die = "kill -9 $(grep -oP '\"pid\": \\K[0-9]+' ~/Keyhole/.keyhole/status)"
      let output = try machine.sh("keyhole mount; keyhole set defaults/s/k 1; \(die); ls Keyhole", as: .anna)
      #expect(output.status != 0)
      try machine.fails(as: .anna, "keyhole status", status: 1, "its process has died")
      let doctor = try machine.sh("keyhole doctor", as: .anna)
      #expect(
        doctor.status == 1 && doctor.text.contains("`keyhole mount /home/anna/Keyhole` mounts it again"))
      try machine.check(as: .anna, "keyhole mount; cat Keyhole/defaults/s/k; keyhole unmount", prints: "1\n")
    }
  }

  @Test func aDeadMountThatRootMadeIsMountedAgain() async throws {
    try await withMachine { machine in
      let mount = "mount -t keyhole keyhole /home/mnt -o uid=anna"
      try machine.check(as: .root, mount)
      _ = try machine.sh("kill -9 $(grep -oP '\"pid\": \\K[0-9]+' /home/mnt/.keyhole/status)", as: .anna)
      try machine.fails(as: .anna, "ls /home/mnt", status: 2, "cannot access")
      try machine.check(as: .root, mount)
      try machine.check(as: .anna, "ls /home/mnt", prints: "defaults\nkeychain\ntemplates\nviews\n")
    }
  }
}
