import EtcdHarness
import Glibc
import Testing

/// States in which something is refused, and what the commands say and keep then.
@Suite(.timeLimit(.minutes(2))) struct ClusterRefusalTests {
  /// Behind a mount whose process was killed nothing is read from, or written to, the files of this machine.
  @Test func deadMountIsNotTakenForNone() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let one = try machines.mount(machines.one)
      try one.check("keyhole set defaults/app/volume 1; keyhole get defaults/app/volume", prints: "1\n")
      try one.world.check(
        "kill -9 $(jq .pid \"$MOUNT/.keyhole/status\"); while stat \"$MOUNT\" >/dev/null 2>&1; do :; done")
      for words in [
        "set defaults/app/volume 2", "get defaults/app/volume", "rm defaults/app/volume", "ls defaults",
        "get keychain/generic/service/me",
      ] {
        let output = try one.world.sh("keyhole \(words)")
        #expect(output.status != 0 && output.text.isEmpty, "\(words): \(output)")
      }
      try one.world.check("ls \"$XDG_CONFIG_HOME\" | grep -c app.plist || true", prints: "0\n")
      let doctor = try one.world.sh("keyhole doctor")
      #expect(doctor.text.contains("keyhole mount -o store=\(machines.address)"), "\(doctor)")
      let status = try one.world.sh("keyhole status")
      #expect(status.error.contains("keyhole mount -o store=\(machines.address)"), "\(status)")
      try one.crash()
      try machines.unlock(one)
      try one.shows("1\n", at: "defaults/app/volume")
    }
  }

  /// An empty cluster, as after the loss of its disks: a member keeps its keys.
  @Test func emptyClusterIsNotTakenForARemoval() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      try machines.join()
      let keys = try machines.other.sh(
        "ls \"$XDG_DATA_HOME/keyhole/clusters\" \"$XDG_STATE_HOME/keyhole/clusters\""
      ).text
      let log = try machines.nodes.etcdctl("get --prefix /keyhole/1/team/log/ --keys-only")
      #expect(log.contains("/log/"))
      try machines.nodes.etcdctl("del --prefix /keyhole/1/team/log/")
      for words in ["members", "status", "join --withdraw"] {
        let output = try machines.cluster(words, on: machines.other)
        #expect(output.status != 0 && output.error.contains("another cluster answers"), "\(words): \(output)")
        #expect(!output.text.contains("removed"), "\(output)")
      }
      let accepted = try machines.cluster("accept", [ClusterMachines.otherPassphrase], on: machines.other)
      #expect(accepted.status != 0 && accepted.error.contains("nothing to accept"), "\(accepted)")
      let made = try machines.cluster("init", [ClusterMachines.passphrase], on: machines.one)
      #expect(made.status != 0 && made.error.contains("another cluster answers"), "\(made)")
      let kept = try machines.other.sh(
        "ls \"$XDG_DATA_HOME/keyhole/clusters\" \"$XDG_STATE_HOME/keyhole/clusters\"")
      #expect(kept.text == keys, "\(kept)")
    }
  }

  /// A request that was made before the keys became new is made again by the command that the message names.
  @Test func requestOfBeforeARotationIsMadeAgain() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let other = ClusterMachines.otherPassphrase
      let first = try machines.succeeds("join", [other], on: machines.other)
      // The code is shown again.
      #expect(try machines.succeeds("join", [other], on: machines.other).lines == first.lines)
      try machines.succeeds("rotate", [ClusterMachines.passphrase], on: machines.one)
      let code = try #require(first.lines.first)
      let late = try machines.cluster("approve", [ClusterMachines.passphrase, code], on: machines.one)
      #expect(late.status != 0 && late.error.contains("`keyhole cluster join` on it asks again"), "\(late)")
      let next = try #require(try machines.succeeds("join", [other], on: machines.other).lines.first)
      #expect(next != code)
      let approved = try machines.succeeds("approve", [ClusterMachines.passphrase, next], on: machines.one)
      try machines.succeeds("join", [other, try #require(approved.lines.first)], on: machines.other)
      #expect(try machines.succeeds("members", on: machines.one).lines.count == 3)
    }
  }

  /// A device that is locked learns that it was removed, and no person is asked for its passphrase.
  @Test func removedDeviceIsNotAskedForItsPassphrase() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      try machines.join()
      let one = try machines.mount(machines.one)
      try one.check("mkdir -p keychain/generic/service/me; printf a > keychain/generic/service/me/value")
      let other = try machines.mount(machines.other)
      try other.shows("a", at: "keychain/generic/service/me/value")
      try other.check("keyhole lock")
      let number = try machines.device(of: machines.other)
      try machines.succeeds("remove \(number)", [ClusterMachines.passphrase], on: machines.one)
      #expect(try holds { try other.status("cluster").first?.contains(" removed") == true })
      try other.refuses("cat keychain/generic/service/me/value", .notPermitted)
      let got = try other.world.sh("keyhole get keychain/generic/service/me </dev/null")
      #expect(got.status != 0 && got.error.contains("does not belong to the store"), "\(got)")
      // The same for a mount that was never unlocked; there is one reason, and one advice.
      try other.remount()
      #expect(try holds { try other.status("cluster").first?.contains(" removed") == true })
      let doctor = try other.world.sh("keyhole doctor")
      #expect(doctor.text.contains("`keyhole cluster join --withdraw`"), "\(doctor)")
      #expect(!doctor.text.contains("accept"), "\(doctor)")
    }
  }

  /// Entries of the list of members that no member has signed are named, and stop no member.
  @Test func strayEntriesAreNamed() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let one = try machines.mount(machines.one)
      try one.check("mkdir defaults/app; echo 1 > defaults/app/volume")
      try machines.nodes.etcdctl("put /keyhole/1/team/log/0000000000000002 garbage")
      #expect(
        try holds { try one.world.sh("keyhole doctor").text.contains("entries that no member has signed") })
      try machines.join()
      #expect(try machines.succeeds("members", on: machines.one).lines.count == 3)
      #expect(
        try holds { try !one.world.sh("keyhole doctor").text.contains("entries that no member has signed") })
    }
  }

  /// Nothing can be stored any more: `status` and `doctor` say so, before a change was refused too, and until the remedy has been typed.
  @Test func quotaThatIsUsedUpIsSaid() async throws {
    try await withClusterMachines { options in
      options.count = 3
      options.arguments = ["--quota-backend-bytes", "\(4 << 20)"]
    } body: { machines in
      try machines.create()
      let one = try machines.mount(machines.one)
      try one.check("mkdir defaults/app; echo 1 > defaults/app/volume")
      // Until the server has no room left.
      for number in 0..<40 {
        let text = String(repeating: "x", count: 256 << 10)
        if (try? machines.nodes.etcdctl("put filler/\(number)", input: text)) == nil { break }
      }
      func isFull() throws -> Bool { try one.status("cluster").first?.contains(" no-space") == true }
      #expect(try holds { try isFull() }, "no change of this machine was refused yet")
      try one.world.check("echo 2 > two")
      try one.refuses("cp \"$OUT/two\" defaults/app/volume", .noSpace)
      #expect(try isFull())
      let doctor = try one.world.sh("keyhole doctor")
      #expect(doctor.status == 1 && doctor.text.contains("etcdctl alarm disarm"), "\(doctor)")
      try machines.nodes.etcdctl("del --prefix filler/")
      let status = try machines.nodes.etcdctl("endpoint status -w json")
      let revision = try #require(status.firstMatch(of: #/"revision":([0-9]+)/#)?.output.1)
      try machines.nodes.etcdctl("compact \(revision)")
      try machines.nodes.etcdctl("defrag --cluster")
      try machines.nodes.etcdctl("alarm disarm")
      #expect(try holds { try !isFull() }, "nothing was stored since")
      let healthy = try one.world.sh("keyhole doctor")
      #expect(!healthy.text.contains("quota"), "\(healthy)")
      let version = try machines.nodes.etcdctl("version")
      if version.contains("3.4.23") { #expect(healthy.text.contains("etcd 3.4.23"), "\(healthy)") }
      try one.check("cp \"$OUT/two\" defaults/app/volume; cat defaults/app/volume", prints: "2\n")
    }
  }

  /// A user who may read, and not change.
  @Test func missingRightToChangeIsSaid() async throws {
    try await withClusterMachines { machines in
      let one = try machines.mountAsUser()
      let world = one.world
      try one.check("mkdir defaults/app; echo 1 > defaults/app/volume")
      try machines.nodes.etcdctl(
        "--user=root:rootpw role revoke-permission fleet --prefix=true /keyhole/1/team/")
      try machines.nodes.etcdctl(
        "--user=root:rootpw role grant-permission fleet --prefix=true read /keyhole/1/team/")
      let set = try world.sh("keyhole set defaults/app/volume 2")
      #expect(set.status == 5, "\(set)")
      #expect(try one.status("cluster").first?.contains(" access-denied") == true)
      try machines.nodes.etcdctl(
        "--user=root:rootpw role grant-permission fleet --prefix=true readwrite /keyhole/1/team/")
      #expect(try holds { try world.sh("keyhole set defaults/app/volume 3").status == 0 })
      #expect(try one.status("cluster").first?.contains(" connected") == true)
      // Without authentication every client is let in, one with a password too.
      try machines.nodes.etcdctl("--user=root:rootpw auth disable")
      #expect(try holds { try world.sh("keyhole set defaults/app/volume 4").status == 0 })
      try one.shows("4\n", at: "defaults/app/volume")
    }
  }

  /// Each device says what it has seen, and the others when they have read that.
  @Test func membersSayWhenTheyWereHeard() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      try machines.join()
      let one = try machines.mount(machines.one)
      try one.check("mkdir defaults/app; echo 1 > defaults/app/volume")
      let number = try machines.device(of: machines.one)
      // Its record is there once the first comparison was made.
      #expect(
        try holds {
          try machines.nodes.etcdctl("get --prefix /keyhole/1/team/seen/ --keys-only").contains("/seen/")
        })
      let other = try machines.mount(machines.other)
      let line = "\(number)  device  heard 20"
      #expect(try holds { try machines.cluster("members", on: machines.other).text.contains(line) })
      #expect(try other.status("cluster").contains { $0.contains("device \(number), heard 20") })
      let json = try machines.succeeds("members --json", on: machines.other)
      #expect(json.text.contains("\"kind\": \"device\", \"heard\": \"20"), "\(json)")
    }
  }

  /// A device that has asked, and one that has lost its state folder.
  @Test func unconfirmedDeviceIsNamed() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      try machines.succeeds("join", [ClusterMachines.otherPassphrase], on: machines.other)
      let other = try machines.mountLocked(machines.other)
      #expect(try holds { try other.status("cluster").first?.contains(" unconfirmed") == true })
      let doctor = try other.world.sh("keyhole doctor")
      #expect(doctor.status == 1 && doctor.text.contains("`keyhole cluster join` takes it"), "\(doctor)")
      #expect(!doctor.text.contains("--withdraw"), "\(doctor)")
    }
  }

  /// The keys of the store in the cluster were changed by something else: the mount says so from the first attempt to unlock on.
  @Test func changedKeysAreSaid() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let one = try machines.mountLocked(machines.one)
      let ring = "/keyhole/1/team/ring"
      try machines.nodes.etcdctl("put \(ring) junk")
      let unlocked = try one.world.sh(
        "exec keyhole unlock", sending: Array((ClusterMachines.passphrase + "\n").utf8))
      #expect(unlocked.status != 0, "\(unlocked)")
      let doctor = try one.world.sh("keyhole doctor")
      #expect(doctor.status == 1 && doctor.text.contains("this device can't be unlocked"), "\(doctor)")
    }
  }

  /// The same of a mount that is open: it has the keys, and no device could open the store again.
  @Test func changedKeysOfAnOpenMountAreSaid() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let one = try machines.mount(machines.one)
      try one.check("mkdir defaults/app; echo 1 > defaults/app/volume")
      // Whether the watch is there already, or begins behind the change, is seen by the comparison too.
      #expect(
        try holds {
          try machines.nodes.etcdctl("get --prefix /keyhole/1/team/seen/ --keys-only").contains("/seen/")
        })
      try machines.nodes.etcdctl("put /keyhole/1/team/ring junk")
      #expect(try holds { try one.world.sh("keyhole doctor").text.contains("own slot was changed") })
      #expect(try one.status("cluster").first?.contains(" refused") == true)
    }
  }
}
