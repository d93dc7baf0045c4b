import EtcdHarness
import Synchronization
import Testing

/// Two machines or more, as far as homes and mounts go, and a server of etcd on loopback that all reach. For one test.
final class ClusterMachines: Sendable {
  static let passphrase = "plum-Xq7-vixen-04-tundra-1"
  static let otherPassphrase = "moss-Vt9-otter-31-canyon-8"

  let nodes: EtcdNodes
  let one: World
  let other: World
  /// All of them, the two first.
  let worlds: [World]
  /// To servers that can be reached only through them.
  private let ways: [Relay]
  /// The mount options of every command and mount, besides the store's address.
  let options: [String]
  private let mounts = Mutex<[MountedKeyhole]>([])

  fileprivate init(_ nodes: EtcdNodes, _ worlds: [World], options: [String]) throws {
    (self.nodes, self.worlds, self.options) = (nodes, worlds, options)
    (one, other) = (worlds[0], worlds[1])
    ways = nodes.options.network == nil ? [] : try nodes.relays()
  }

  var address: String { Self.address(ways.isEmpty ? nodes.endpoints : ways.map(\.endpoint)) }

  private static func address(_ endpoints: [String]) -> String {
    "etcd://\(endpoints.joined(separator: ","))/team"
  }

  private func passphrase(of world: World) -> String {
    world.root == one.root ? Self.passphrase : Self.otherPassphrase
  }
}

// MARK: - Commands

extension ClusterMachines {
  /// `keyhole cluster` with the store's address, and lines of standard input.
  func cluster(
    _ words: String, _ lines: [String] = [], on world: World, within duration: Duration = .seconds(30)
  ) throws -> Output {
    let flags = options.map { "--" + $0 }.joined(separator: " ")
    return try world.sh(
      "exec keyhole cluster \(words) --store \(address) \(flags)",
      sending: Array(lines.map { $0 + "\n" }.joined().utf8), within: duration)
  }

  /// The same, which has to succeed.
  @discardableResult
  func succeeds(
    _ words: String, _ lines: [String] = [], on world: World,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Output {
    let output = try cluster(words, lines, on: world)
    try #require(output.status == 0, "\(words): \(output)", sourceLocation: sourceLocation)
    return output
  }

  /// Makes the store. - Returns: its recovery code.
  @discardableResult
  func create(sourceLocation: SourceLocation = #_sourceLocation) throws -> String {
    let made = try succeeds("init", [Self.passphrase], on: one, sourceLocation: sourceLocation)
    return try #require(made.lines.first, "\(made)", sourceLocation: sourceLocation)
  }

  /// Has the other machine belong to the store, or another one: each person types what the other machine shows.
  func join(_ joining: World? = nil, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let other = joining ?? other
    let asked = try succeeds("join", [Self.otherPassphrase], on: other, sourceLocation: sourceLocation)
    let code = try #require(asked.lines.first, "\(asked)", sourceLocation: sourceLocation)
    let approved = try succeeds("approve", [Self.passphrase, code], on: one, sourceLocation: sourceLocation)
    let answer = try #require(approved.lines.first, "\(approved)", sourceLocation: sourceLocation)
    try succeeds("join", [Self.otherPassphrase, answer], on: other, sourceLocation: sourceLocation)
  }

  /// The number of a machine's device.
  func device(of world: World) throws -> String {
    let members = try cluster("members", on: world)
    return try #require(members.lines.first { $0.hasSuffix("  this device") }, "\(members)").split(
      separator: " ")[0].description
  }
}

extension ClusterMachines {
  /// From now on etcd asks for users: `root`, whose password is `rootpw`, and `fleet`, `fleetpw`, who may change the store.
  func enableUsers() throws {
    for words in [
      "user add root:rootpw", "user add fleet:fleetpw", "role add fleet",
      "role grant-permission fleet --prefix=true readwrite /keyhole/1/team/", "user grant-role fleet fleet",
      "user grant-role root root", "auth enable",
    ] { try nodes.etcdctl(words) }
  }
}

// MARK: - Mounts

extension ClusterMachines {
  /// Mounts the store and unlocks it. `endpoints`: other ways to the servers, or to some of them.
  func mount(
    _ world: World, _ further: String..., endpoints: [String]? = nil, launcher: [String] = []
  ) throws -> MountedKeyhole {
    let keyhole = try mountLocked(world, further, endpoints: endpoints, launcher: launcher)
    try unlock(keyhole)
    return keyhole
  }

  /// Makes the store as a user of etcd, with credentials in the place of a terminal, and mounts it. Users are enabled.
  func mountAsUser() throws -> MountedKeyhole {
    try enableUsers()
    try one.check(
      """
      mkdir -m 700 right; printf fleetpw > right/keyhole.etcd-password
      printf '\(Self.passphrase)' > right/keyhole.cluster-passphrase; chmod 600 */*
      """)
    let made = try one.sh(
      "CREDENTIALS_DIRECTORY=$OUT/right exec keyhole cluster init --store \(address) --etcd-user fleet",
      sending: Array((Self.passphrase + "\n").utf8))
    #expect(made.status == 0, "\(made)")
    let keyhole = try mountLocked(
      one, ["etcd-user=fleet"],
      launcher: ["/usr/bin/env", "CREDENTIALS_DIRECTORY=\(one.outside)/right"])
    #expect(try holds { try keyhole.status("cluster").first?.contains(" connected") == true })
    return keyhole
  }

  func mountLocked(
    _ world: World, _ further: [String] = [], endpoints: [String]? = nil, launcher: [String] = []
  ) throws -> MountedKeyhole {
    let store = endpoints.map(Self.address) ?? address
    let keyhole = MountedKeyhole(
      world, options: ["store=\(store)"] + options + further, launcher: launcher)
    mounts.withLock { $0.append(keyhole) }
    try keyhole.start()
    return keyhole
  }

  func unlock(_ keyhole: MountedKeyhole) throws {
    let output = try keyhole.world.sh(
      "exec keyhole unlock", sending: Array((passphrase(of: keyhole.world) + "\n").utf8))
    #expect(output.status == 0, "\(output)")
  }

  fileprivate func cleanUp() {
    for mount in mounts.withLock({ $0 }) { mount.cleanUp() }
    ways.stop()
  }

  /// Makes every call that waits for a mount or the server fail.
  fileprivate func abort() {
    for mount in mounts.withLock({ $0 }) { mount.abort() }
    for index in 0..<nodes.count { nodes.kill(index) }
  }
}

extension MountedKeyhole {
  /// Waits until a path has this content.
  func shows(
    _ content: String, at path: String, within duration: Duration = .seconds(20),
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let isShown = try holds(within: duration) { try cat(path) == content }
    let shown = try cat(path)
    #expect(isShown, "\(path): \(shown)", sourceLocation: sourceLocation)
  }

  /// The lines of `keyhole status` that begin with a word.
  func status(_ word: String) throws -> [String] {
    try world.sh("keyhole status").lines.filter { $0.hasPrefix("\(word) ") }
  }
}

/// Runs `body` with two machines or more and a server, and ends all that was started, also when the test fails or is too slow.
func withClusterMachines(
  _ count: Int = 2, _ adjust: (inout EtcdNodes.Options) -> Void = { _ in },
  options: (EtcdNodes) throws -> [String] = { _ in [] }, environment: [String] = [],
  body: (ClusterMachines) throws -> Void
) async throws {
  try await withWorld(environment: environment) { one in
    let others = try (1..<count).map { _ in try World(environment: environment) }
    defer { for other in others { other.remove() } }
    // Its thread has a copy of all descriptors that are open when it begins.
    _ = Spawner.shared
    var settings = EtcdNodes.Options()
    settings.count = 1
    adjust(&settings)
    let nodes = try EtcdNodes(settings)
    defer { nodes.stop() }
    let machines = try ClusterMachines(nodes, [one] + others, options: try options(nodes))
    defer { machines.cleanUp() }
    try await withTaskCancellationHandler {
      try body(machines)
    } onCancel: {
      machines.abort()
    }
  }
}

/// The same; both machines belong to the store, and have mounted it.
func withTwoClusterMounts(
  servers count: Int = 1, _ body: (ClusterMachines, MountedKeyhole, MountedKeyhole) throws -> Void
) async throws {
  try await withClusterMachines {
    $0.count = count
  } body: { machines in
    try machines.create()
    let one = try machines.mount(machines.one)
    try machines.join()
    try body(machines, one, machines.mount(machines.other))
  }
}
