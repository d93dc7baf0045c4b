import EtcdHarness
import Glibc
import Testing

/// The states of a store in a cluster as the commands say them, and the ways out where something of it is missing.
@Suite(.timeLimit(.minutes(2))) struct ClusterStateTests {
  /// Servers that stopped keep their connections: `status` asks them.
  @Test func statusSaysSinceWhenNothingWasHeard() async throws {
    try await withClusterMachines {
      $0.count = 3
    } body: { machines in
      try machines.create()
      let one = try machines.mount(machines.one)
      try one.check("mkdir defaults/app; echo 1 > defaults/app/volume")
      let connected = try one.status("cluster")
      #expect(connected.first?.contains(" connected, heard 20") == true, "\(connected)")
      machines.nodes.pauseAll()
      defer { machines.nodes.resumeAll() }
      // From the first answer on that is not an earlier one.
      let isNoticed = try holds(within: .seconds(5)) {
        try one.status("cluster").first?.contains(" reconnecting since 20") == true
      }
      #expect(isNoticed)
      let doctor = try one.world.sh("keyhole doctor")
      #expect(
        doctor.status == 1 && doctor.text.contains("it does not answer since 20")
          && doctor.text.contains("look at its servers"), "\(doctor)")
      // Settings are shown as they were last, at once; nothing can be changed.
      try one.check("cat defaults/app/volume", prints: "1\n")
      try one.world.check("echo 2 > two")
      try one.refuses("cp \"$OUT/two\" defaults/app/volume", .io)
      let set = try one.world.sh("keyhole set defaults/app/volume 2")
      #expect(set.status != 0 && set.error.contains("the cluster does not answer"), "\(set)")
      machines.nodes.resumeAll()
      let isBack = try holds { try one.status("cluster").first?.contains(" connected, heard 20") == true }
      #expect(isBack)
    }
  }

  /// Settings are shown as they were last, and an attribute says so.
  @Test func settingsThatMayBeBehindAreStale() async throws {
    try await withClusterMachines {
      $0.count = 3
    } body: { machines in
      try machines.create()
      let one = try machines.mount(machines.one)
      try one.check("mkdir defaults/app; echo 1 > defaults/app/volume")
      let name = "user.keyhole.stale"
      let isStale = { try System.attribute(one / "defaults/app/volume", name) }
      #expect(try isStale() == "false")
      machines.nodes.killAll()
      #expect(try holds(within: .seconds(30)) { try isStale() == "true" })
      try one.check("cat defaults/app/volume", prints: "1\n")
      try one.world.check("keyhole attr defaults/app/volume keyhole.stale", prints: "true\n")
      for index in 0..<machines.nodes.count { try machines.nodes.start(index) }
      #expect(try holds(within: .seconds(30)) { try isStale() == "false" })
      try one.world.check(
        "keyhole attr defaults/app/volume", prints: "user.keyhole.stale\tfalse\nuser.keyhole.type\tinteger\n")
    }
  }

  /// A value that is larger than the servers keep is refused by the write, of new files and of those that grow; not by the close, which no shell reports.
  @Test func largeValueIsRefusedWhenItIsWritten() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let one = try machines.mount(machines.one)
      try one.world.check(
        "head -c 1048576 /dev/zero | tr '\\0' x > largest; (cat largest; printf yy) > larger")
      try one.check(
        "mkdir defaults/app; cp \"$OUT/largest\" defaults/app/text; wc -c < defaults/app/text",
        prints: "1048577\n")
      let copied = try one.sh("dd if=\"$OUT/larger\" of=defaults/app/larger bs=2M 2>&1")
      #expect(copied.status != 0 && copied.text.contains("error writing"), "\(copied)")
      let grown = try one.sh(
        "dd if=/dev/zero of=defaults/app/text bs=16 count=1 oflag=append conv=notrunc 2>&1")
      #expect(grown.status != 0 && grown.text.contains("error writing"), "\(grown)")
      try one.check(
        "echo a > defaults/app/log; echo b >> defaults/app/log; cat defaults/app/log", prints: "a\nb\n")
    }
  }

  /// While the servers are silent, a signal ends the opening of a secret long before the call's own end.
  @Test func secretThatIsWaitedForCanBeInterrupted() async throws {
    try await withClusterMachines {
      $0.count = 3
    } body: { machines in
      try machines.create()
      let one = try machines.mount(machines.one)
      try one.check(
        "mkdir -p keychain/generic/s/me; printf x > keychain/generic/s/me/value; cat keychain/generic/s/me/value",
        prints: "x")
      machines.nodes.pauseAll()
      defer { machines.nodes.resumeAll() }
      // The first one waits to its end; those after it get a signal.
      let ended = try one.sh(
        """
        cat keychain/generic/s/me/value 2>/dev/null & first=$!
        for signal in INT TERM KILL; do timeout -s $signal 0.2 cat keychain/generic/s/me/value 2>/dev/null; echo $?; done
        kill -0 $first && echo waits; wait $first; echo $?
        """)
      #expect(ended.lines == ["124", "124", "137", "waits", "1"], "\(ended)")
      machines.nodes.resumeAll()
      #expect(try holds { try one.sh("cat keychain/generic/s/me/value").text == "x" })
    }
  }

  /// A store that was made, without a recovery code: the servers ended between both.
  @Test func interruptedInitGoesOn() async throws {
    try await withClusterMachines { machines in
      let address = machines.address
      machines.nodes.kill(0)
      let unreachable = try machines.cluster("init", [ClusterMachines.passphrase], on: machines.one)
      #expect(unreachable.status == 1 && unreachable.text.isEmpty, "\(unreachable)")
      try machines.nodes.start(0)
      try machines.nodes.waitUntilReady()
      try #require(machines.address == address)
      let code = try machines.create()
      // Whole: it is not made again.
      let again = try machines.cluster("init", [ClusterMachines.passphrase], on: machines.one)
      #expect(
        again.status == 1 && again.error.contains("this device belongs to the store already"), "\(again)")
      let other = try machines.cluster("init", [ClusterMachines.otherPassphrase], on: machines.other)
      #expect(other.status == 1 && other.error.contains("the store is there already"), "\(other)")
      // Without its recovery code, it gets another one.
      let codes = try machines.succeeds("members", on: machines.one).lines.filter {
        $0.hasSuffix("recovery code")
      }
      let number = try #require(codes.first?.split(separator: " ").first)
      try machines.succeeds("remove \(number)", [ClusterMachines.passphrase], on: machines.one)
      let wrong = try machines.cluster("init", [ClusterMachines.otherPassphrase], on: machines.one)
      #expect(wrong.status != 0 && wrong.error.contains("another passphrase"), "\(wrong)")
      #expect(try machines.create() != code)
      _ = try machines.mount(machines.one)
    }
  }

  /// The store was not made when the process ended: the device's file is there alone.
  @Test func initThatWasKilledGoesOn() async throws {
    try await withClusterMachines { machines in
      machines.nodes.pause(0)
      let making = try machines.one.launch("exec keyhole cluster init --store \(machines.address)")
      defer { making.kill() }
      try making.send(ClusterMachines.passphrase + "\n")
      let file = machines.one.data + "/keyhole/clusters/team.device"
      let isThere = holds { System.exists(file) }
      making.kill()
      _ = try making.waitForEnd(until: Deadline(in: .seconds(10)))
      machines.nodes.resume(0)
      #expect(isThere)
      try machines.nodes.waitUntilReady()
      try machines.create()
      _ = try machines.mount(machines.one)
    }
  }

  /// Keys without what was seen: the recovery code vouches for the store.
  @Test func memberThatLostItsStateRecovers() async throws {
    try await withClusterMachines { machines in
      let code = try machines.create()
      let one = try machines.mount(machines.one)
      try one.check("mkdir defaults/app; echo 1 > defaults/app/volume")
      try one.unmount()
      try machines.one.check("rm -r \"$XDG_STATE_HOME/keyhole\"")
      try one.start()
      let locked = try machines.one.sh(
        "exec keyhole unlock", sending: Array((ClusterMachines.passphrase + "\n").utf8))
      #expect(locked.status == 1 && locked.error.contains("`keyhole cluster join --recover`"), "\(locked)")
      let accept = try machines.cluster("accept", [ClusterMachines.passphrase], on: machines.one)
      #expect(accept.status == 1 && accept.error.contains("`keyhole cluster join --recover`"), "\(accept)")
      let wrong = try machines.cluster("join --recover", [code, "something else"], on: machines.one)
      #expect(wrong.status != 0 && wrong.error.contains("this is not this device's passphrase"), "\(wrong)")
      try machines.succeeds("join --recover", [code, ClusterMachines.passphrase], on: machines.one)
      #expect(try machines.succeeds("members", on: machines.one).lines.count == 2)
      try machines.unlock(one)
      try one.shows("1\n", at: "defaults/app/volume")
    }
  }

  /// Mounts take over the end of a rotation, and a typing error in a number removes nothing.
  @Test func aRotationThatHasEndedIsNoProblem() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      try machines.join()
      let (one, other) = (try machines.mount(machines.one), try machines.mount(machines.other))
      try one.check("mkdir defaults/app; echo 1 > defaults/app/volume")
      try other.shows("1\n", at: "defaults/app/volume")
      let wrong = try machines.cluster("remove ffffff", [ClusterMachines.passphrase], on: machines.one)
      #expect(wrong.status == 1 && wrong.error.contains("no member has this number"), "\(wrong)")
      for value in 2...4 {
        try machines.succeeds("rotate", [ClusterMachines.passphrase], on: machines.one)
        try one.check("echo \(value) > defaults/app/volume")
        try other.shows("\(value)\n", at: "defaults/app/volume")
        for world in [machines.one, machines.other] {
          // The watch tells a mount of the new list of keys, after the change of a setting or before it.
          let hasEnded = try holds { try !world.sh("keyhole doctor").text.contains("new keys were made") }
          #expect(hasEnded)
        }
      }
    }
  }

  /// A member that was removed forgets its keys, and asks again.
  @Test func removedMemberJoinsAgain() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      try machines.join()
      let mount = try machines.mount(machines.other)
      try mount.check("mkdir defaults/app; echo 1 > defaults/app/volume")
      let number = try machines.succeeds("members", on: machines.other).lines.first {
        $0.contains("this device")
      }
      let id = number?.split(separator: " ").first.map(String.init) ?? ""
      try machines.succeeds("remove \(id)", [ClusterMachines.passphrase], on: machines.one)
      #expect(
        try holds {
          try machines.other.sh("keyhole doctor").text.contains("`keyhole cluster join --withdraw`")
        })
      try mount.unmount()
      let refused = try machines.cluster("join", [ClusterMachines.otherPassphrase], on: machines.other)
      #expect(
        refused.status == 1 && refused.error.contains("`keyhole cluster join --withdraw`"), "\(refused)")
      try machines.succeeds("join --withdraw", on: machines.other)
      try machines.join()
      #expect(try machines.succeeds("members", on: machines.one).lines.count == 3)
    }
  }

  /// All devices are lost: the code lets a new one in.
  @Test func recoveryCodeLetsANewMachineIn() async throws {
    try await withClusterMachines { machines in
      let code = try machines.create()
      let one = try machines.mount(machines.one)
      try one.check("mkdir defaults/app; echo 1 > defaults/app/volume")
      try machines.succeeds("join --recover", [code, ClusterMachines.otherPassphrase], on: machines.other)
      let other = try machines.mount(machines.other)
      try other.shows("1\n", at: "defaults/app/volume")
      #expect(try machines.succeeds("members", on: machines.other).lines.count == 3)
    }
  }

  /// Commands that look at files of this machine say so, and what to do instead.
  @Test func commandsOfThisMachinesFilesRefuseAStore() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let one = try machines.mount(machines.one)
      for path in ["", "defaults/app"] {
        let watch = try one.world.sh("exec keyhole watch \(path)")
        #expect(watch.status == 1 && watch.error.contains("tail -f"), "\(watch)")
      }
      let passphrase = Array((ClusterMachines.passphrase + "\n").utf8)
      let backup = try one.world.sh("exec keyhole backup \"$OUT/b\"", sending: passphrase)
      #expect(backup.status == 1 && backup.error.contains("--without-cluster"), "\(backup)")
      #expect(!System.exists(one.world.outside + "/b"))
      let own = try one.world.sh(
        "exec keyhole backup --without-cluster --cost 14 \"$OUT/b\"", sending: passphrase)
      #expect(own.status == 0, "\(own)")
      let restore = try one.world.sh("exec keyhole restore \"$OUT/b\"", sending: passphrase)
      #expect(restore.status == 1 && restore.error.contains("`keyhole unmount` first"), "\(restore)")
      // The secrets of the store are watched through the mount.
      let watch = Watcher(try one.world.launch("exec keyhole watch keychain 2>&1"))
      var number = 0
      repeat {
        number += 1
        try one.check("mkdir -p keychain/generic/s/a; printf \(number) > keychain/generic/s/a/value")
      } while (try? watch.program.line(within: .milliseconds(100))) == nil && number < 100
      #expect(number < 100)
    }
  }

  /// Each is refused before anything is mounted.
  @Test(arguments: [
    ("layers=fleet/all", "store=etcd://"), ("write-layer=a/b", "store=etcd://"),
    ("store=etcd://127.0.0.1:1/team,write-layer=a/b", "it needs `layers=`"),
    ("store=etcd://127.0.0.1:1/team,layers=all", "with `/` in them"),
    ("store=etcd://127.0.0.1:1/team,layers=a/b,a/b", "different names"),
    ("store=etcd://127.0.0.1:1/team,layers=a/b,c/d,write-layer=e/f", "one of `layers=`"),
    ("store=etcd://127.0.0.1:1/team,settings=files,layers=a/b", "settings of the store"),
  ])
  func layersThatCanNotBe(options: String, words: String) async throws {
    try await withWorld { world in
      let output = try world.sh("exec keyhole mount -o '\(options)' \"$MOUNT\"")
      #expect(output.status != 0 && output.error.contains(words), "\(output)")
    }
  }
}
