import EtcdHarness
import Testing

/// Secrets of a store in a cluster that are opened while its servers do not answer: `offline-secrets`.
@Suite(.timeLimit(.minutes(3))) struct ClusterOfflineTests {
  private static let value = "keychain/generic/conspicuous/me/value"
  private static let guarded = "keychain/generic/guarded/me/value"

  private static func isStale(_ keyhole: MountedKeyhole) throws -> Bool {
    try System.attribute(keyhole / "keychain/generic/conspicuous/me", "user.keyhole.stale") == "true"
  }

  /// The state of the copy as `keyhole status` says it.
  private static func waits(
    for state: String, _ keyhole: MountedKeyhole, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let isThere = try holds(within: .seconds(40)) {
      try keyhole.status("offline").first?.contains(" \(state)") == true
    }
    let lines = try keyhole.status("offline")
    #expect(isThere, "\(lines)", sourceLocation: sourceLocation)
  }

  @Test func secretsOpenWithoutTheServers() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let one = try machines.mount(machines.one, "offline-secrets")
      try one.check(
        """
        mkdir -p keychain/generic/conspicuous/me keychain/generic/guarded/me
        printf conspicuous-value > \(Self.value); printf hunter2 > \(Self.guarded)
        keyhole attr keychain/generic/guarded/me keyhole.programs 'deny /usr/bin/cat'
        """)
      try Self.waits(for: "kept: 2 as of 20", one)
      #expect(try !Self.isStale(one))
      let file = machines.one.state + "/keyhole/clusters/team.offline"
      try machines.one.check(
        "stat -c %a '\(file)'; grep -c -e conspicuous -e hunter2 '\(file)' || true", prints: "600\n0\n")

      try machines.one.check("keyhole log --all; rm -f \"$XDG_STATE_HOME/keyhole/access.log\"")
      machines.nodes.kill(0)
      #expect(try holds { try Self.isStale(one) })
      try Self.opensAndRefuses(one)
      try Self.waits(for: "used: 2 as of 20", one)
      let doctor = try one.world.sh("keyhole doctor")
      #expect(doctor.status == 1 && doctor.text.contains("secrets are those of the copy of 20"), "\(doctor)")
      // Each opening is in the log, as with the cluster.
      let log = try one.world.sh("keyhole log").text
      #expect(log.contains("\tallowed\t") && log.contains("generic/conspicuous/me"), "\(log)")
      #expect(log.contains("\tdenied\t") && log.contains("generic/guarded/me"), "\(log)")

      // A mount that begins without the servers.
      #expect(try one.unmount() == 0)
      try one.start()
      try one.refuses("cat \(Self.value)", .noKey)
      try machines.unlock(one)
      #expect(try Self.isStale(one))
      try Self.opensAndRefuses(one)
      try one.world.check("keyhole lock")
      try one.refuses("cat \(Self.value)", .noKey)
      try machines.unlock(one)
      try one.shows("conspicuous-value", at: Self.value)

      try machines.nodes.start(0)
      try machines.nodes.waitUntilReady()
      #expect(try holds(within: .seconds(40)) { try !Self.isStale(one) })
      try one.check("printf another > \(Self.value)")
      try one.shows("another", at: Self.value)
      try Self.waits(for: "kept: 2 as of 20", one)

      // Without the option nothing stays.
      #expect(try one.unmount() == 0)
      #expect(System.exists(file))
      let plain = try machines.mount(machines.one)
      #expect(!System.exists(file))
      #expect(try plain.status("offline").isEmpty)
    }
  }

  /// The secret opens, with the rules of its item, and can't be changed.
  private static func opensAndRefuses(_ keyhole: MountedKeyhole) throws {
    try keyhole.check("cat \(value)", prints: "conspicuous-value")
    try keyhole.world.check("keyhole attr keychain/generic/conspicuous/me keyhole.stale", prints: "true\n")
    try keyhole.refuses("cat \(guarded)", .denied)
    try keyhole.world.check("printf x > x")
    try keyhole.refuses("cp \"$OUT/x\" \(value)", .io)
    let set = try keyhole.world.sh("printf x | keyhole set \(value)")
    #expect(set.status != 0 && set.error.contains("the cluster does not answer"), "\(set)")
    try keyhole.check("cat \(value)", prints: "conspicuous-value")
  }

  /// A file that was cut: nothing is opened by it, and commands say why.
  @Test func copyThatWasChangedIsNotUsed() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let one = try machines.mount(machines.one, "offline-secrets=30")
      try one.check("mkdir -p keychain/generic/conspicuous/me; printf a > \(Self.value)")
      try Self.waits(for: "kept: 1 as of 20", one)
      #expect(try one.unmount() == 0)
      machines.nodes.kill(0)
      try machines.one.check("truncate -s 100 \"$XDG_STATE_HOME/keyhole/clusters/team.offline\"")
      try one.start()
      let unlock = try machines.one.sh(
        "exec keyhole unlock", sending: Array((ClusterMachines.passphrase + "\n").utf8))
      let reason = "the copy of its secrets on this device is not used"
      #expect(unlock.status == 1 && unlock.error.contains(reason), "\(unlock)")
      try Self.waits(for: "refused: \(reason)", one)
      let doctor = try one.world.sh("keyhole doctor")
      #expect(doctor.text.contains(reason) && doctor.text.contains("makes another copy"), "\(doctor)")
      try machines.nodes.start(0)
      try machines.nodes.waitUntilReady()
      try machines.unlock(one)
      try one.shows("a", at: Self.value)
      try Self.waits(for: "kept: 1 as of 20", one)
    }
  }

  /// The copy of a machine that is taken away goes when new keys are made, without a call.
  @Test func removedMachineHasNoCopy() async throws {
    try await withClusterMachines { machines in
      try machines.create()
      let one = try machines.mount(machines.one)
      try one.check("mkdir -p keychain/generic/conspicuous/me; printf a > \(Self.value)")
      try machines.join()
      let other = try machines.mount(machines.other, "offline-secrets")
      try other.shows("a", at: Self.value)
      try Self.waits(for: "kept: 1 as of 20", other)
      let file = machines.other.state + "/keyhole/clusters/team.offline"
      try machines.succeeds(
        "remove \(machines.device(of: machines.other))", [ClusterMachines.passphrase], on: machines.one)
      #expect(holds(within: .seconds(40)) { !System.exists(file) })
      machines.nodes.kill(0)
      #expect(failure { _ = try System.text(other / Self.value) } != nil)
      #expect(!System.exists(file))
    }
  }

  /// Each is refused before anything is mounted.
  @Test(arguments: [
    ("offline-secrets", "it needs `store=etcd://"), ("offline-secrets=3", "it needs `store=etcd://"),
    ("store=etcd://127.0.0.1:1/team,offline-secrets=0", "it takes 1 to 90 days"),
    ("store=etcd://127.0.0.1:1/team,offline-secrets=a", "it takes 1 to 90 days"),
    ("store=etcd://127.0.0.1:1/team,keychain=vault,offline-secrets", "it needs the keychain of the store"),
  ])
  func optionsThatCanNotBe(options: String, words: String) async throws {
    try await withWorld { world in
      let output = try world.sh("exec keyhole mount -o '\(options)' \"$MOUNT\"")
      #expect(output.status != 0 && output.error.contains(words), "\(output)")
    }
  }
}
