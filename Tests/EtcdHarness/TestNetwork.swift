import Glibc
import Platform

/// A network of its own for some servers and their clients, which can be cut between any two of them: network namespaces, joined by a
/// bridge (network_namespaces(7)). Needs root. It goes with the processes that keep it.
public final class TestNetwork: Sendable {
  /// Where clients are, and the bridge.
  private let hub: pid_t
  /// Where each server is.
  private let hosts: [pid_t]
  private let guardian: Guardian

  public init(hosts count: Int) throws {
    let guardian = try Guardian()
    self.guardian = guardian
    let keepers = try (0...count).map { _ in try Self.keep(guardian) }
    (hub, hosts) = (keepers[0], Array(keepers[1...]))
    // The bridge does not look for loops: that would take seconds before the first packet.
    var script = """
      set -e
      ip link set lo up
      ip link add bridge0 type bridge stp_state 0 forward_delay 0
      ip address add 10.99.0.254/24 dev bridge0
      ip link set bridge0 up

      """
    for (index, host) in hosts.enumerated() {
      script += """
        ip link add host\(index) type veth peer name eth0 netns \(host)
        ip link set host\(index) master bridge0 up
        nsenter --target \(host) --net sh -ec 'ip link set lo up
          ip address add \(Self.address(index))/24 dev eth0
          ip link set eth0 up'

        """
    }
    try inHub(script)
  }

  deinit {
    for process in [hub] + hosts {
      kill(process, SIGKILL)
      Program.waitForEnd(process)
      guardian.remove(process)
    }
  }

  static func address(_ index: Int) -> String { "10.99.0.\(index + 1)" }

  /// The beginning of a command that runs where a server is.
  func command(for index: Int) -> [String] { ["nsenter", "--target", "\(hosts[index])", "--net", "--"] }

  /// A process that does nothing in a namespace of its own.
  private static func keep(_ guardian: Guardian) throws -> pid_t {
    let process = try Program.start(["unshare", "--net", "sleep", "infinity"], output: "/dev/null")
    guardian.add(process)
    let own = try Program.run(["readlink", "/proc/self/ns/net"])
    let deadline = ContinuousClock.now + .seconds(20)
    // nil: it has ended.
    while (try? Program.run(["readlink", "/proc/\(process)/ns/net"])) ?? own == own {
      guard deadline > .now, !Program.hasEnded(process) else {
        throw EtcdNodes.Failure(description: "there is no network namespace: is this root?")
      }
    }
    return process
  }

  private func inHub(_ script: String) throws {
    try Program.run(commandOfClients + ["sh", "-c", "(\(script)) 2>&1"])
  }

  /// The beginning of a command that runs where clients are.
  var commandOfClients: [String] { ["nsenter", "--target", "\(hub)", "--net", "--"] }

  /// Runs `body` on a thread in the namespace of clients; threads and programs that it starts are there too.
  public func run(_ body: @escaping @Sendable () throws -> Void) throws {
    let errors = Collector<any Error>()
    onThreads(1) { [self] _ in
      do {
        try enter()
        try body()
      } catch {
        errors.add(error)
      }
    }
    if let error = errors.all.first { throw error }
  }

  /// setns(2), which Glibc's module does not show.
  func enter() throws {
    let file = unsafe open("/proc/\(hub)/ns/net", O_RDONLY | O_CLOEXEC)
    defer { close(file) }
    guard let symbol = unsafe dlsym(nil, "setns") else { throw EtcdNodes.Failure(description: "no setns") }
    // SAFETY: the signature of setns(2).
    let setns = unsafe unsafeBitCast(symbol, to: (@convention(c) (Int32, Int32) -> Int32).self)
    guard setns(file, 0) == 0 else { throw EtcdNodes.Failure(description: "setns: \(errno)") }
  }
}

// MARK: - Partitions

extension TestNetwork {
  /// Nothing passes between two servers any more, in either direction; packets are lost.
  public func cut(_ one: Int, _ other: Int) throws {
    try inHub(route("add", one, other) + route("add", other, one))
  }

  public func join(_ one: Int, _ other: Int) throws {
    try inHub(route("del", one, other) + route("del", other, one))
  }

  /// Nothing passes between clients and a server any more.
  public func cutClients(from index: Int) throws {
    try inHub("ip route add blackhole \(Self.address(index))/32")
  }

  public func joinClients(to index: Int) throws {
    try inHub("ip route del blackhole \(Self.address(index))/32")
  }

  private func route(_ verb: String, _ from: Int, _ to: Int) -> String {
    "nsenter --target \(hosts[from]) --net ip route \(verb) blackhole \(Self.address(to))/32 || exit 1\n"
  }
}
