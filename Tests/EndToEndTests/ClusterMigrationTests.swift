import EtcdHarness
import Testing

/// `keyhole migrate` from and to a store in a cluster.
@Suite(.timeLimit(.minutes(2))) struct ClusterMigrationTests {
  private static func withMount(_ body: (ClusterMachines, MountedKeyhole) throws -> Void) async throws {
    try await withClusterMachines { machines in
      // Before there is a cluster.
      try machines.one.check(
        """
        keyhole set defaults/app/volume 42; keyhole set defaults/app/name x; keyhole set defaults/other/on true
        printf hunter2 | keyhole set keychain/generic/service/me
        printf s3cret | keyhole set keychain/internet/example.com/me
        keyhole attr keychain/generic/service/me comment hello; keyhole attr defaults/other keyhole.history 0
        keyhole attr keychain/internet/example.com/me keyhole.programs 'deny /usr/bin/head' 2> /dev/null
        """)
      try machines.create()
      try body(machines, machines.mount(machines.one))
    }
  }

  private static func migrate(_ from: String, _ to: String, _ further: String = "", on world: World) throws
    -> Output
  {
    try world.sh("exec keyhole migrate --from \(from) --to \(to) \(further)", within: .seconds(60))
  }

  @Test func settingsGoThereAndBack() async throws {
    try await Self.withMount { machines, one in
      try one.check("ls defaults", prints: "")
      let plan = try Self.migrate("files", "cluster", "--dry-run", on: one.world)
      #expect(
        plan.text == "defaults/app\ndefaults/other\nwould move 2 suites from files to cluster\n"
          && plan.status == 0,
        "\(plan)")
      let there = try Self.migrate("files", "cluster", on: one.world)
      #expect(there.text == "moved 2 suites from files to cluster\n" && there.status == 0, "\(there)")
      try one.check("cat defaults/app/volume defaults/app/name defaults/other/on", prints: "42\nx\ntrue\n")
      try one.world.check("ls \"$CONFIG\"", prints: "")
      try one.check("mkdir defaults/both; echo 1 > defaults/both/a")
      let back = try Self.migrate("cluster", "files", on: one.world)
      #expect(back.text == "moved 3 suites from cluster to files\n" && back.status == 0, "\(back)")
      // A suite that has another value there stays on both sides.
      try one.check("ls defaults; mkdir defaults/both; echo 2 > defaults/both/a", prints: "")
      let conflict = try Self.migrate("files", "cluster", on: one.world)
      #expect(
        conflict.text == "moved 2 suites from files to cluster\n" && conflict.status == 1
          && conflict.error.contains("defaults/both: it stays where it is"), "\(conflict)")
      try one.check("cat defaults/both/a", prints: "2\n")
      try one.world.check("ls \"$CONFIG\"", prints: "both.plist\n")
    }
  }

  /// A suite without history has none there either.
  @Test func suiteWithoutHistoryStaysOne() async throws {
    try await Self.withMount { _, one in
      for (from, to) in [("files", "cluster"), ("cluster", "files")] {
        let moved = try Self.migrate(from, to, on: one.world)
        #expect(moved.status == 0, "\(moved)")
        if to == "cluster" {
          try one.check("getfattr --only-values -n user.keyhole.history defaults/other", prints: "0")
          #expect(try one.sh("getfattr -n user.keyhole.history defaults/app").status != 0)
        }
      }
      try one.unmount()
      try one.world.check("keyhole attr defaults/other keyhole.history", prints: "0\n")
    }
  }

  @Test func itemsGoThereAndBack() async throws {
    try await Self.withMount { machines, one in
      // One that the cluster does not keep.
      try one.unmount()
      try one.world.check(
        """
        printf bound | keyhole set keychain/generic/bound/me
        keyhole attr keychain/generic/bound/me keyhole.accessible whenUnlockedThisDeviceOnly
        """)
      let unmounted = try Self.migrate("vault", "cluster", on: one.world)
      #expect(unmounted.status == 1 && unmounted.error.contains("only while it is mounted"), "\(unmounted)")
      try one.start()
      try machines.unlock(one)
      let plan = try Self.migrate("vault", "cluster", "--dry-run", on: one.world)
      #expect(
        plan.lines.last == "would move 2 items from vault to cluster" && plan.status == 1
          && plan.error.contains("keychain/generic/bound/me: it stays where it is"), "\(plan)")
      let there = try Self.migrate("vault", "cluster", on: one.world)
      #expect(
        there.text == "moved 2 items from vault to cluster\n" && there.status == 1
          && there.error.contains("keychain/generic/bound/me: it stays where it is"), "\(there)")
      try one.check(
        "cat keychain/generic/service/me/value keychain/internet/example.com/me/value",
        prints: "hunter2s3cret")
      try one.check("getfattr --only-values -n user.comment keychain/generic/service/me", prints: "hello")
      // A rule of this machine stays one.
      let number = try machines.device(of: one.world)
      try one.check(
        "getfattr --only-values -n user.keyhole.programs keychain/internet/example.com/me",
        prints: "deny host:\(number) /usr/bin/head")
      #expect(!System.exists(one / "keychain/generic/bound"))
      let again = try Self.migrate("vault", "cluster", on: one.world)
      #expect(again.text == "moved 0 items from vault to cluster\n" && again.status == 1, "\(again)")
      let back = try Self.migrate("cluster", "vault", on: one.world)
      #expect(back.text == "moved 2 items from cluster to vault\n" && back.status == 0, "\(back)")
      try one.check("find keychain/generic keychain/internet -type f", prints: "")
      try one.unmount()
      try one.world.check(
        "keyhole get service/me; keyhole get example.com/me; keyhole get bound/me",
        prints: "hunter2s3cretbound")
      try one.world.check(
        "keyhole attr keychain/internet/example.com/me keyhole.programs", prints: "deny /usr/bin/head\n")
    }
  }

  /// It is run again after it was killed, and after the servers did not answer any more.
  @Test(arguments: [true, false]) func interruptedMoveGoesOn(isKilled: Bool) async throws {
    try await Self.withMount { machines, one in
      try one.world.check(
        """
        for n in $(seq 100 160); do
          printf '<plist version="1.0"><dict><key>number</key><integer>%s</integer></dict></plist>' $n > "$CONFIG/s$n.plist"
        done
        """)
      let moving = try one.world.launch("exec keyhole migrate --from files --to cluster 2>&1")
      defer { moving.kill() }
      let hasBegun = try holds { try one.sh("ls defaults | grep -c .").text != "0\n" }
      #expect(hasBegun)
      if isKilled {
        moving.kill()
        _ = try moving.waitForEnd(until: Deadline(in: .seconds(10)))
      } else {
        machines.nodes.pause(0)
        defer { machines.nodes.resume(0) }
        let output = try moving.finish(within: .seconds(60))
        #expect(output.status == 1 && output.text.contains("run it again"), "\(output)")
      }
      try machines.nodes.waitUntilReady()
      // A suite that is in neither store would be lost.
      let isBack = try holds { try Self.migrate("files", "cluster", on: one.world).status == 0 }
      #expect(isBack)
      try one.world.check("ls \"$CONFIG\"", prints: "")
      try one.check("cat defaults/s*/number | paste -sd+ | bc", prints: "\((100...160).reduce(0, +))\n")
      try one.check("cat defaults/app/volume", prints: "42\n")
    }
  }

  /// Other machines have them too.
  @Test func layersAreNotMovedFromTheCluster() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let one = try machines.mount(machines.one, "layers=fleet/all,host/one")
      let output = try Self.migrate("cluster", "files", on: one.world)
      #expect(output.status == 1 && output.error.contains("without `layers=`"), "\(output)")
      let other = try Self.migrate("files", "vault", on: one.world)
      #expect(other.status == 2, "\(other)")
    }
  }
}
