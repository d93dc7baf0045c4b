import Glibc
import Synchronization

/// A cluster of real etcd servers on loopback, for one test: each with a folder, and a process that ends with this value.
public final class EtcdNodes: Sendable {
  public struct Failure: Error, CustomStringConvertible {
    public let description: String

    public init(description: String) {
      self.description = description
    }
  }

  public struct Options: Sendable {
    public var count = 3
    /// TLS with certificates of a new authority, for clients too.
    public var isSecure = false
    /// Others than those of this harness, for each server.
    public var arguments: [String] = []
    /// Each server has an address there.
    public var network: TestNetwork?

    public init() {}
  }

  struct Node: Sendable {
    let name: String
    let address: String
    var clientPort: UInt16
    var peerPort: UInt16
    var process: pid_t = 0
  }

  public let folder: String
  public let options: Options
  let nodes: Mutex<[Node]>
  private let guardian: Guardian

  /// Starts the servers, and returns when they have a leader.
  public init(_ options: Options = Options()) throws {
    self.options = options
    folder = try Self.makeFolder()
    nodes = Mutex([])
    guardian = try Guardian()
    do {
      if options.isSecure { try TestAuthority.make(in: folder, clients: ["client", "root", "fleet"]) }
      try startAll()
    } catch {
      stop()
      throw error
    }
  }

  deinit { stop() }

  /// Ends all servers, and removes their data.
  public func stop() {
    for index in 0..<count { kill(index) }
    _ = try? Program.run(["/bin/rm", "-rf", "--", folder])
  }

  /// The package's program, or where mount-helpers/test has unpacked it, since the package starts a server by itself.
  public static let program: String = {
    let project = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    return ["/usr/bin/etcd", "\(project)/.build/etcd/usr/bin/etcd"].first { unsafe access($0, X_OK) == 0 }
      ?? "etcd"
  }()

  private static func makeFolder() throws -> String {
    let parent = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/etcd.XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw Failure(description: "no folder in \(parent)") }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  public var count: Int { nodes.withLock { $0.count } }

  /// `HOST:PORT` of each server's clients.
  public var endpoints: [String] { nodes.withLock { $0.map { "\($0.address):\($0.clientPort)" } } }

  public var clientPorts: [UInt16] { nodes.withLock { $0.map(\.clientPort) } }
}

// MARK: - Starting

extension EtcdNodes {
  /// A port that was free may be taken before a server has it: then all begin again with others.
  private func startAll() throws {
    for attempt in 1... {
      try Program.run(["/bin/sh", "-c", "rm -rf \"$0\"/n[0-9]*", folder])
      let ports = try FreePorts.find(2 * options.count)
      let all = (0..<options.count).map { index in
        let address = options.network == nil ? "127.0.0.1" : TestNetwork.address(index)
        return Node(
          name: "n\(index)", address: address, clientPort: ports[2 * index], peerPort: ports[2 * index + 1])
      }
      nodes.withLock { $0 = all }
      do {
        for index in all.indices { try launch(index, isNew: true) }
        return try waitUntilReady()
      } catch {
        for index in all.indices { kill(index) }
        if attempt == 5 { throw error }
      }
    }
  }

  /// Starts a server that was killed, with the data that it had.
  public func start(_ index: Int) throws {
    try launch(index, isNew: false)
  }

  private func launch(_ index: Int, isNew: Bool) throws {
    let all = nodes.withLock { $0 }
    let node = all[index]
    let scheme = options.isSecure ? "https" : "http"
    let client = "\(scheme)://\(node.address):\(node.clientPort)"
    var words = [
      Self.program, "--name", node.name, "--data-dir", "\(folder)/\(node.name)", "--log-level", "warn",
      "--listen-client-urls", client, "--advertise-client-urls", client,
      "--listen-peer-urls", "http://\(node.address):\(node.peerPort)",
      "--initial-advertise-peer-urls", "http://\(node.address):\(node.peerPort)",
      "--initial-cluster",
      all.map { "\($0.name)=http://\($0.address):\($0.peerPort)" }.joined(separator: ","),
      "--initial-cluster-state", isNew ? "new" : "existing",
    ]
    if options.isSecure {
      words += [
        "--cert-file", "\(folder)/server.pem", "--key-file", "\(folder)/server.key",
        "--trusted-ca-file", "\(folder)/ca.pem", "--client-cert-auth",
      ]
    }
    words = (options.network?.command(for: index) ?? []) + words
    let process = try Program.start(words + options.arguments, output: "\(folder)/\(node.name).log")
    guardian.add(process)
    nodes.withLock { $0[index].process = process }
  }

  /// Returns when all servers answer, and know a leader.
  public func waitUntilReady() throws {
    let deadline = ContinuousClock.now + .seconds(30)
    while true {
      if nodes.withLock({ $0.contains { $0.process > 0 && Program.hasEnded($0.process) } }) {
        throw Failure(description: "a server ended: \(logs)")
      }
      if (try? etcdctl("endpoint health --command-timeout=2s")) != nil { return }
      if deadline <= .now { throw Failure(description: "the servers are not ready: \(logs)") }
    }
  }

  /// The last lines of each log.
  public var logs: String {
    let files = nodes.withLock { $0.map { "\(folder)/\($0.name).log" } }
    return (try? Program.run(["/usr/bin/tail", "-n", "3"] + files)) ?? ""
  }
}

// MARK: - Backups

extension EtcdNodes {
  /// Ends all servers, and starts them with what a snapshot has.
  public func restore(_ snapshot: String) throws {
    for index in 0..<count { kill(index) }
    let all = nodes.withLock { $0 }
    let cluster = all.map { "\($0.name)=http://\($0.address):\($0.peerPort)" }.joined(separator: ",")
    for node in all {
      let peer = "http://\(node.address):\(node.peerPort)"
      try Program.run(["/bin/rm", "-rf", "--", "\(folder)/\(node.name)"])
      try etcdctl(
        "snapshot restore \(snapshot) --name \(node.name) --data-dir $0/\(node.name) --initial-cluster \(cluster) "
          + "--initial-advertise-peer-urls \(peer)")
    }
    for index in all.indices { try start(index) }
    try waitUntilReady()
  }
}

// MARK: - Faults

extension EtcdNodes {
  public func signal(_ index: Int, _ number: Int32) {
    let process = nodes.withLock { $0[index].process }
    if process > 0 { Glibc.kill(process, number) }
  }

  /// SIGKILL; returns when the process is gone.
  public func kill(_ index: Int) {
    let process = nodes.withLock { nodes in
      defer { nodes[index].process = 0 }
      return nodes[index].process
    }
    guard process > 0 else { return }
    guardian.remove(process)
    Glibc.kill(process, SIGKILL)
    Program.waitForEnd(process)
  }

  /// SIGTERM: it ends its connections in order (GOAWAY of HTTP/2). Returns when the process is gone.
  public func terminate(_ index: Int) {
    let process = nodes.withLock { nodes in
      defer { nodes[index].process = 0 }
      return nodes[index].process
    }
    guard process > 0 else { return }
    Glibc.kill(process, SIGTERM)
    Program.waitForEnd(process)
    guardian.remove(process)
  }

  /// SIGSTOP: its connections stay, and nothing answers.
  public func pause(_ index: Int) { signal(index, SIGSTOP) }

  public func resume(_ index: Int) { signal(index, SIGCONT) }
  /// All of them.
  public func pauseAll() { for index in 0..<count { pause(index) } }
  /// All of them.
  public func resumeAll() { for index in 0..<count { resume(index) } }
  /// All of them.
  public func killAll() { for index in 0..<count { kill(index) } }

  /// The server that leads.
  public func leader() throws -> Int {
    let deadline = ContinuousClock.now + .seconds(20)
    repeat {
      for index in 0..<count where nodes.withLock({ $0[index].process }) > 0 {
        let text = try? etcdctl("endpoint status --command-timeout=2s", at: [index])
        let fields = text?.split(separator: ",").map { $0.drop { $0 == " " } } ?? []
        if fields.count > 4, fields[4] == "true" { return index }
      }
    } while deadline > .now
    throw Failure(description: "there is no leader")
  }

  /// Runs etcdctl with words that a shell splits, as the user root of the certificates. - Throws: with what it says.
  @discardableResult
  public func etcdctl(_ words: String, at indices: [Int]? = nil, input: String = "") throws -> String {
    let all = endpoints
    let chosen = (indices ?? Array(all.indices)).map { all[$0] }.joined(separator: ",")
    var common = "etcdctl --dial-timeout=2s --endpoints=\(chosen)"
    if options.isSecure {
      common += " --cacert=$0/ca.pem --cert=$0/root.pem --key=$0/root.key"
    }
    let place = options.network?.commandOfClients ?? []
    return try Program.run(
      place + ["/bin/sh", "-c", "ETCDCTL_API=3 \(common) \(words) 2>&1", folder], input: input)
  }

  /// A relay to each server, in their order; they stop with `stop`.
  public func relays() throws -> [Relay] {
    try nodes.withLock { $0 }.map { node in
      try Relay(to: node.clientPort, at: node.address, through: options.network)
    }
  }
}

// MARK: - Metrics

extension EtcdNodes {
  /// The sum of a server's counters whose names begin so, and have some text.
  public func metric(_ name: String, with text: String = "", of index: Int) throws -> Int {
    let place = options.network?.commandOfClients ?? []
    let page = try Program.run(place + ["curl", "-sS", "-m", "2", "http://\(endpoints[index])/metrics"])
    return page.split(separator: "\n").filter { $0.hasPrefix(name) && $0.contains(text) }
      .reduce(0) { $0 + (Int($1.split(separator: " ").last ?? "") ?? 0) }
  }

  /// Waits until a server has taken a change of which it does not know yet whether it is made. False: it has taken none within that time.
  public func waitUntilPending(_ index: Int, _ limit: Duration = .seconds(4)) -> Bool {
    let deadline = ContinuousClock.now + limit
    while deadline > .now {
      if let count = try? metric("etcd_server_proposals_pending ", of: index), count > 0 { return true }
    }
    return false
  }
}

// MARK: - History

extension EtcdNodes {
  /// The revision of the last change. - Throws: where there is no majority.
  public func revision() throws -> Int64 {
    // Any linearizable read has it, also of a key that is not there.
    let reply = try etcdctl("get revision -w fields")
    guard let line = reply.split(separator: "\n").first(where: { $0.hasPrefix("\"Revision\" : ") }),
      let revision = Int64(line.split(separator: " ").last ?? "")
    else { throw Failure(description: "no revision: \(reply)") }
    return revision
  }

  /// Forgets all that was replaced or removed up to a revision; nil: to the present one.
  public func compact(_ revision: Int64? = nil) throws {
    try etcdctl("compact --physical \(try revision ?? self.revision())")
  }

  /// How often the keys of a prefix that are there were changed, all together.
  public func versions(_ prefix: String) throws -> Int64 {
    let reply = try etcdctl("get --prefix '\(prefix)' -w fields")
    return reply.split(separator: "\n").filter { $0.hasPrefix("\"Version\" : ") }
      .reduce(0) { $0 + (Int64($1.split(separator: " ").last ?? "") ?? 0) }
  }
}
