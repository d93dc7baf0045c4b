import EtcdHarness
import Glibc
import Testing

/// Mounts that meet another cluster, an earlier state of theirs, or servers that do not know them any more.
@Suite(.timeLimit(.minutes(3))) struct ClusterIdentityFaultTests {
  private static let volume = "defaults/app/volume"
  private static let secret = "keychain/generic/service/me/value"

  private static func fill(_ one: MountedKeyhole) throws {
    try one.check(
      "mkdir defaults/app; echo 1 > \(volume); mkdir -p keychain/generic/service/me; printf 1 > \(secret)")
  }

  /// Nothing can be changed through a mount, and it shows what it had.
  private static func isReadOnly(_ keyhole: MountedKeyhole, sourceLocation: SourceLocation = #_sourceLocation)
    throws
  {
    let isRefused = holds(within: .seconds(40)) {
      failure { try System.write(keyhole / volume, "9\n") } == .readOnly
    }
    #expect(isRefused, sourceLocation: sourceLocation)
    #expect(failure { try System.write(keyhole / secret, "9") } == .readOnly, sourceLocation: sourceLocation)
    #expect(
      failure { try System.mkdir(keyhole / "defaults/new") } == .readOnly, sourceLocation: sourceLocation)
    try keyhole.check("cat \(volume)", prints: "2\n")
    #expect(
      try keyhole.world.sh("keyhole doctor").text.contains("`keyhole cluster accept`"),
      sourceLocation: sourceLocation)
  }

  /// The servers were given back what they had before: EROFS on each machine until a person accepts that there.
  @Test func restoredSnapshotIsReadOnlyUntilItIsAccepted() async throws {
    try await withTwoClusterMounts(servers: 3) { machines, one, other in
      let nodes = machines.nodes
      try Self.fill(one)
      // The snapshot is of one server, which has all that was stored once it has answered this.
      try nodes.etcdctl("get any", at: [0])
      try nodes.etcdctl("snapshot save $0/snapshot", at: [0])
      try one.check("echo 2 > \(Self.volume); printf 2 > \(Self.secret)")
      try other.shows("2\n", at: Self.volume)
      try nodes.restore("\(nodes.folder)/snapshot")
      let restored = try nodes.versions("/keyhole/1/team/s/")
      for keyhole in [one, other] { try Self.isReadOnly(keyhole) }
      #expect(try nodes.versions("/keyhole/1/team/s/") == restored)
      for (keyhole, passphrase) in [
        (one, ClusterMachines.passphrase), (other, ClusterMachines.otherPassphrase),
      ] {
        try machines.succeeds("accept", [passphrase], on: keyhole.world)
        try keyhole.remount()
        try machines.unlock(keyhole)
        try keyhole.shows("1\n", at: Self.volume)
        try keyhole.shows("1", at: Self.secret)
      }
      try one.check("echo 3 > \(Self.volume); printf 3 > \(Self.secret)")
      try other.shows("3\n", at: Self.volume)
      try other.shows("3", at: Self.secret)
    }
  }

  /// Another cluster at the same addresses, with a store of the same name: nothing is taken from it, and nothing stored in it.
  @Test func anotherClusterIsReadOnly() async throws {
    try await withClusterMachines {
      $0.count = 3
    } body: { machines in
      try machines.create()
      let relays = try machines.nodes.relays()
      defer { relays.stop() }
      let one = try machines.mount(machines.one, endpoints: relays.map(\.endpoint))
      try Self.fill(one)
      try one.check("echo 2 > \(Self.volume); printf 2 > \(Self.secret)")
      let foreign = try EtcdNodes()
      defer { foreign.stop() }
      // It is ahead, so that its revisions say nothing.
      for number in 0..<50 { try foreign.etcdctl("put /keyhole/1/team/s/\(number) x") }
      let before = try foreign.revision()
      relays.set(.closed)
      for (relay, port) in zip(relays, foreign.clientPorts) { relay.redirect(to: port) }
      relays.set(.open)
      try Self.isReadOnly(one)
      #expect(failure { _ = try System.text(one / Self.secret) } != nil)
      #expect(try foreign.revision() == before)
    }
  }

  /// The servers have forgotten the token of a user, by its time or because they were started again: the password is sent again, and no call
  /// fails by that.
  @Test func tokenThatTheServersForgotIsReplaced() async throws {
    try await withClusterMachines { options in
      options.count = 3
      options.arguments = ["--auth-token-ttl", "1"]
    } body: { machines in
      let nodes = machines.nodes
      let one = try machines.mountAsUser()
      try Self.fill(one)
      let before = try nodes.logins
      for value in 2..<4 {
        // A token that was not used for its time is forgotten.
        usleep(2_500_000)
        try System.write(one / Self.volume, "\(value)\n")
        try System.write(one / Self.secret, "\(value)")
        try one.shows("\(value)", at: Self.secret, within: .zero)
      }
      #expect(try nodes.logins > before)
      nodes.killAll()
      for node in 0..<nodes.count { try nodes.start(node) }
      #expect(holds(within: .seconds(40)) { failure { try System.write(one / Self.secret, "4") } == nil })
      try one.shows("4", at: Self.secret, within: .seconds(40))
      #expect(holds(within: .seconds(40)) { failure { try System.write(one / Self.volume, "4\n") } == nil })
      #expect(try holds { try one.status("cluster").first?.contains(" connected") == true })
    }
  }
}

extension EtcdNodes {
  /// How many passwords were sent to the servers.
  fileprivate var logins: Int {
    get throws {
      try (0..<count).reduce(0) { sum, index in
        sum + (try metric("grpc_server_started_total", with: "\"Authenticate\"", of: index))
      }
    }
  }
}
