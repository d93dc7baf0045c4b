import EtcdHarness
import Testing

/// A store in a cluster on two machines, through the command and the mounts.
@Suite(.timeLimit(.minutes(2))) struct ClusterMountTests {
  @Test func settingsAndSecretsAreTheSameOnBoth() async throws {
    try await withTwoClusterMounts { _, one, other in
      try one.check(
        """
        mkdir defaults/app; echo 42 > defaults/app/volume
        mkdir -p keychain/generic/service/me; printf hunter2 > keychain/generic/service/me/value
        """)
      try other.shows("42\n", at: "defaults/app/volume")
      try other.shows("hunter2", at: "keychain/generic/service/me/value")
      // The other way, by the command, which reaches the store through the mount.
      try other.world.check(
        """
        keyhole set defaults/app/volume 43
        printf correct-horse | keyhole set keychain/generic/service/me/value
        """)
      try one.shows("43\n", at: "defaults/app/volume")
      try one.shows("correct-horse", at: "keychain/generic/service/me/value")
      try one.world.check("keyhole get defaults/app/volume", prints: "43\n")
      // Nothing of it is kept in this machine's own files.
      try one.world.check(
        "find \"$CONFIG\" -name 'app*' -o -name '*.db'; grep -rl hunter2 \"$HOME\" \"$DATA\" || true")
    }
  }

  @Test func changeOfOneIsAnEventOnTheOther() async throws {
    try await withTwoClusterMounts { _, one, other in
      try one.check("mkdir defaults/app; echo 1 > defaults/app/volume")
      try one.check("mkdir -p keychain/generic/service/me; printf a > keychain/generic/service/me/value")
      try other.shows("1\n", at: "defaults/app/volume")
      try other.shows("a", at: "keychain/generic/service/me/value")
      let inotify = try other.inotify()
      try one.check("echo 2 > defaults/app/volume")
      _ = try inotify.until("CLOSE_WRITE", "/defaults/app/volume")
      try other.shows("2\n", at: "defaults/app/volume", within: .zero)
      try one.check("printf b > keychain/generic/service/me/value")
      _ = try inotify.until("CLOSE_WRITE", "/keychain/generic/service/me/value")
      try other.shows("b", at: "keychain/generic/service/me/value", within: .zero)
      try one.check("rm defaults/app/volume; echo x > defaults/app/new")
      _ = try inotify.until("DELETE", "/defaults/app/volume")
      _ = try inotify.until("CREATE", "/defaults/app/new")
    }
  }

  /// Of what is stored after it was removed, a machine reads nothing.
  @Test func removedMemberReadsNothingNew() async throws {
    try await withTwoClusterMounts { machines, one, other in
      try one.check("mkdir defaults/app; echo 1 > defaults/app/volume")
      try one.check("mkdir -p keychain/generic/service/me; printf a > keychain/generic/service/me/value")
      try other.shows("a", at: "keychain/generic/service/me/value")
      let removed = try machines.device(of: machines.other)
      let listed = try machines.cluster("members --json", on: machines.other)
      #expect(listed.text.contains("{\"id\": \"\(removed)\", \"kind\": \"this device\"}"), "\(listed)")
      try machines.succeeds("remove \(removed)", [ClusterMachines.passphrase], on: machines.one)
      let members = try machines.cluster("members", on: machines.one)
      #expect(members.lines.count == 2 && !members.text.contains(removed), "\(members)")
      try one.check("printf new-secret > keychain/generic/service/me/value; echo 2 > defaults/app/volume")
      try one.shows("new-secret", at: "keychain/generic/service/me/value")
      #expect(failure { _ = try System.text(other / "keychain/generic/service/me/value") } != nil)
      #expect(try other.cat("defaults/app/volume") != "2\n")
      // After a restart the reason is said.
      try other.remount()
      let unlocked = try other.world.sh(
        "exec keyhole unlock", sending: Array((ClusterMachines.otherPassphrase + "\n").utf8))
      #expect(unlocked.status != 0 && unlocked.error.contains("does not belong to the store"), "\(unlocked)")
    }
  }

  @Test func wrongCodesAndPassphrasesChangeNothing() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      func join(_ line: String, _ further: String...) throws -> Output {
        try machines.cluster("join", [line] + further, on: machines.other)
      }
      let weak = try join("password1")
      #expect(weak.status != 0 && weak.error.contains("--weak"), "\(weak)")
      let withdrawn = try #require(try join(ClusterMachines.otherPassphrase).lines.first)
      try machines.succeeds("join --withdraw", on: machines.other)
      #expect(try machines.cluster("requests", on: machines.one).lines.isEmpty)
      let code = try #require(try join(ClusterMachines.otherPassphrase).lines.first)
      #expect(code != withdrawn)
      let old = try machines.cluster("approve", [ClusterMachines.passphrase, withdrawn], on: machines.one)
      #expect(old.status != 0 && old.error.contains("no request has this code"), "\(old)")
      let wrong = try machines.cluster("approve", ["something else", code], on: machines.one)
      #expect(wrong.status != 0 && wrong.error.contains("this is not this device's passphrase"), "\(wrong)")
      // A code that was not typed.
      let none = try machines.cluster("approve", [ClusterMachines.passphrase], on: machines.one)
      #expect(none.status != 0 && none.error.contains("no code was typed"), "\(none)")
      #expect(try machines.cluster("members", on: machines.one).lines.count == 2)
      let approved = try machines.succeeds("approve", [ClusterMachines.passphrase, code], on: machines.one)
      // The machine's own code is not the one that is to be typed there.
      let own = try join(ClusterMachines.otherPassphrase, code)
      #expect(own.status != 0 && own.error.contains("this is not the code of the store"), "\(own)")
      let confirmed = try join(ClusterMachines.otherPassphrase, try #require(approved.lines.first))
      #expect(confirmed.status == 0, "\(confirmed)")
    }
  }

  /// The person who joins waits at the prompt.
  @Test func codeIsTypedWhileJoinWaits() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let join = try machines.other.launch("exec keyhole cluster join --store \(machines.address)")
      defer { join.kill() }
      try join.send(ClusterMachines.otherPassphrase + "\n")
      let code = try #require(try join.line())
      #expect(try machines.cluster("requests", on: machines.one).lines.count == 1)
      let approved = try machines.succeeds("approve", [ClusterMachines.passphrase, code], on: machines.one)
      try join.send(approved.text)
      let output = try join.finish()
      #expect(output.status == 0 && output.error.contains("keyhole mount -o store="), "\(output)")
      #expect(try machines.cluster("requests", on: machines.one).lines.isEmpty)
      _ = try machines.mount(machines.other)
    }
  }

  /// The settings of the store beside the keychain of the machine, and the reverse.
  @Test(arguments: ["keychain=vault", "settings=files"]) func mixture(option: String) async throws {
    try await withClusterMachines { machines in
      try machines.create()
      try machines.join()
      let one = try machines.mount(machines.one, option)
      let other = try machines.mount(machines.other)
      try one.check(
        """
        mkdir defaults/app; echo 1 > defaults/app/volume
        mkdir -p keychain/generic/service/me; printf a > keychain/generic/service/me/value
        """)
      // The shared one comes; after it, the other has not come.
      if option == "keychain=vault" {
        try other.shows("1\n", at: "defaults/app/volume")
        #expect(!System.exists(other / "keychain/generic/service"))
        try one.world.check("ls \"$DATA/keyhole/vault.db\" > \"$OUT/found\"; find \"$CONFIG\" -name 'app*'")
      } else {
        try other.shows("a", at: "keychain/generic/service/me/value")
        #expect(!System.exists(other / "defaults/app"))
        try one.world.check("find \"$DATA\" -name vault.db; ls \"$CONFIG\"", prints: "app.plist\n")
      }
      // The commands use the same two.
      try one.world.check(
        "keyhole get defaults/app/volume; keyhole get keychain/generic/service/me/value", prints: "1\na")
    }
  }

  /// Of a fleet and of a host: the last layer that has a key wins, and changes go to the one that is written.
  @Test func layers() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      try machines.join()
      let fleet = try machines.mount(machines.one, "layers=fleet/all")
      let host = try machines.mount(machines.other, "layers=fleet/all,host/one", "write-layer=host/one")
      try fleet.check("mkdir defaults/app; echo 1 > defaults/app/volume; echo 7 > defaults/app/size")
      try host.shows("1\n", at: "defaults/app/volume")
      #expect(try System.attribute(host / "defaults/app/volume", "user.keyhole.origin") == "fleet/all")
      try host.check("echo 2 > defaults/app/volume; rm defaults/app/size")
      #expect(try System.attribute(host / "defaults/app/volume", "user.keyhole.origin") == "host/one")
      try machines.other.check("keyhole attr defaults/app/volume keyhole.origin", prints: "host/one\n")
      try machines.other.check(
        "keyhole attr defaults/app/volume",
        prints: "user.keyhole.origin\thost/one\nuser.keyhole.stale\tfalse\nuser.keyhole.type\tinteger\n")
      try machines.other.check(
        "keyhole attr --json defaults/app/volume | grep -c '\"host/one\"'", prints: "1\n")
      try host.check("ls defaults/app; cat defaults/app/volume", prints: "volume\n2\n")
      // The fleet's are as they were, and a change of them shows on the host where it has no value of its own.
      try fleet.check(
        "cat defaults/app/volume defaults/app/size; echo new > defaults/app/name", prints: "1\n7\n")
      try host.shows("new\n", at: "defaults/app/name")
      try host.check("rm defaults/app/volume; ls defaults/app", prints: "name\n")
      #expect(
        failure { try System.setAttribute(host / "defaults/app/name", "user.keyhole.origin", "x") } != nil)
    }
  }

  /// The way back to the values of the layers below, and the removal of a suite that they have.
  @Test func resetsAndRemovesInALayer() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      try machines.join()
      let fleet = try machines.mount(machines.one, "layers=fleet/all")
      let host = try machines.mount(machines.other, "layers=fleet/all,host/one", "write-layer=host/one")
      try fleet.check("mkdir defaults/app; echo 1 > defaults/app/volume; echo 7 > defaults/app/size")
      try host.shows("7\n", at: "defaults/app/size")
      try host.check("echo 2 > defaults/app/volume; rm defaults/app/size; echo 3 > defaults/app/own")
      try machines.other.check(
        "keyhole reset defaults/app/volume 2>&1",
        prints: "keyhole: note: defaults/app/volume: removed from the layer that is written: 1 entry\n")
      try host.check("cat defaults/app/volume", prints: "1\n")
      let refused = try machines.other.sh("keyhole reset defaults/app/own")
      #expect(refused.status == 1 && refused.error.contains("its only value would go"), "\(refused)")
      #expect(try machines.other.sh("keyhole reset defaults/app/none").status == 3)
      try machines.other.check("keyhole undo -q defaults/app/volume; keyhole reset -qy defaults/app")
      try host.check("cat defaults/app/volume defaults/app/size defaults/app/own", prints: "1\n7\n3\n")
      // rm(1) and `keyhole rm` take a suite of the fleet away here, and a new key of the fleet brings it back.
      try host.check("rm -r defaults/app; ls defaults")
      try fleet.check("cat defaults/app/volume; echo new > defaults/app/name", prints: "1\n")
      try host.shows("new\n", at: "defaults/app/name")
      try host.check("ls defaults/app", prints: "name\n")
      try machines.other.check("keyhole rm -r defaults/app --yes 2> /dev/null; keyhole ls defaults")
      try machines.other.check(
        "keyhole reset -qy defaults/app; keyhole ls defaults/app", prints: "name\nsize\nvolume\n")
      try host.check("ls defaults/app", prints: "name\nsize\nvolume\n")
      #expect(try fleet.unmount() == 0)
      let plain = try machines.mount(machines.one)
      let none = try machines.one.sh("keyhole reset -y defaults/app")
      #expect(none.status == 1 && none.error.contains("not made of layers"), "\(none)")
      _ = plain
    }
  }

  /// A write that a higher layer would hide is refused at open, where every program looks.
  @Test func writesBelowAHigherLayerAreRefused() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      try machines.join()
      let host = try machines.mount(machines.other, "layers=fleet/all,host/one", "write-layer=host/one")
      try host.check("mkdir defaults/app; echo 1 > defaults/app/volume")
      let fleet = try machines.mount(machines.one, "layers=fleet/all,host/one", "write-layer=fleet/all")
      try fleet.shows("1\n", at: "defaults/app/volume")
      try fleet.refuses("echo 2 > defaults/app/volume", .notPermitted)
      try fleet.check(
        "cat defaults/app/volume; echo 3 > defaults/app/other; cat defaults/app/other", prints: "1\n3\n")
    }
  }

  /// Settings that are moved to a store in layers are in the layer that is written.
  @Test func settingsAreMovedIntoALayer() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      try machines.one.check("keyhole set defaults/app/volume 4")
      let host = try machines.mount(machines.one, "layers=fleet/all,host/one", "write-layer=host/one")
      try machines.one.check(
        "keyhole migrate --from files --to cluster 2> /dev/null",
        prints: "moved 1 suite from files to cluster\n")
      try host.check(
        "cat defaults/app/volume; ls \"$XDG_CONFIG_HOME\" | grep -c app.plist || true", prints: "4\n0\n")
      #expect(try System.attribute(host / "defaults/app/volume", "user.keyhole.origin") == "host/one")
      try host.unmount()
      _ = try machines.mount(machines.one)
      let back = try machines.one.sh("keyhole migrate --from cluster --to files")
      #expect(back.status == 1 && back.error.contains("suite in a layer"), "\(back)")
    }
  }
}
