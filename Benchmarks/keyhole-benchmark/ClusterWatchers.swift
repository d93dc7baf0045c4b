import EtcdClient
import Glibc
import Synchronization

/// So many clients that watch one suite, each with a connection of its own: the cost of a change to the servers and to a client.
///
/// This process has the first of them, and further processes the others, as each has a limit of open files.
/// Lines `watchers<tab>OPERATION<tab>COUNT<tab>SECONDS` are added to a file.
struct ClusterWatchers {
  private static let prefix = "/watchers/"
  /// Each has a connection, and a pipe that wakes its thread.
  private static let mostInProcess = 2_500

  private let endpoint: String
  private let servers: [Int]
  private let count: Int
  private let changes: Int
  private let output: String

  init(_ arguments: Arguments) throws(Failure) {
    endpoint = try arguments.required("endpoint")
    servers = try arguments.required("servers").split(separator: ",").compactMap { Int($0) }
    count = try arguments.number("count", default: 100)
    changes = try arguments.number("changes", default: 20)
    output = try arguments.required("output")
  }

  /// Watches until it is killed, after "ready" in its output.
  static func hold(_ arguments: Arguments) throws(Failure) {
    let cluster = try RawCluster(arguments.required("endpoint"))
    let count = try arguments.number("count", default: 100)
    let connected = Counter()
    let watches = (0..<count).map { _ in
      cluster.watch(Self.prefix, ready: { connected.add() }, changed: {})
    }
    try connected.wait(for: count, "connections")
    print("ready")
    fflush(nil)
    pause()
    for watch in watches { watch.cancel() }
  }

  func measure() throws(Failure) {
    var holders: [Program.Running] = []
    defer {
      for holder in holders {
        kill(holder.process, SIGKILL)
        try? holder.wait()
      }
    }
    let own = min(count, Self.mostInProcess)
    var others = count - own
    while others > 0 {
      let held = min(others, Self.mostInProcess)
      let file = "\(output).held-\(others)"
      holders.append(
        try Program(
          path: "/proc/self/exe", arguments: ["hold", "--endpoint", endpoint, "--count", String(held)]
        ).start(output: file))
      try wait(for: "ready", in: file) { $0[...] }
      others -= held
    }
    try measure(own)
  }

  private func measure(_ own: Int) throws(Failure) {
    let cluster = try RawCluster(endpoint)
    defer { cluster.close() }
    let (connected, seen) = (Counter(), Counter())
    let watches = (0..<own).map { _ in
      cluster.watch(Self.prefix, ready: { connected.add() }, changed: { seen.add() })
    }
    defer { for watch in watches { watch.cancel() } }
    try connected.wait(for: own, "connections")
    var delays = Samples()
    let before = (server: try serverSeconds(), client: try Self.processorSeconds(of: Int(getpid())))
    for change in 1...changes {
      let began = now()
      try cluster.put(Self.prefix + "key", "\(change)")
      try seen.wait(for: change * own, "reports")
      delays.append([now() - began])
    }
    let after = (server: try serverSeconds(), client: try Self.processorSeconds(of: Int(getpid())))
    try add("change to the last watcher of this process", delays.median)
    try add("processor time of the servers, a change", (after.server - before.server) / Double(changes))
    try add("processor time of a client, a change", (after.client - before.client) / Double(changes * own))
  }

  private func serverSeconds() throws(Failure) -> Double {
    var sum = 0.0
    for server in servers { sum += try Self.processorSeconds(of: server) }
    return sum
  }

  /// utime and stime of proc(5), which count in hundredths of a second.
  private static func processorSeconds(of process: Int) throws(Failure) -> Double {
    let path = "/proc/\(process)/stat"
    let text = try text(of: path)
    guard let name = text.lastIndex(of: ")") else { throw Failure("\(path): malformed") }
    let fields = text[name...].split(separator: " ")
    guard fields.count > 13, let user = Double(fields[12]), let system = Double(fields[13]) else {
      throw Failure("\(path): malformed")
    }
    return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  private func add(_ operation: String, _ seconds: Double) throws(Failure) {
    let line = "watchers\t\(operation)\t\(count)\t\(seconds)\n"
    try appendText(line, to: output)
    print(line, terminator: "")
  }
}

/// Counts what other threads report.
private final class Counter: Sendable {
  private let value = Atomic<Int>(0)

  func add() { value.wrappingAdd(1, ordering: .relaxed) }

  /// Looks each 100 µs: it is the clock of what is measured.
  func wait(for count: Int, _ what: String) throws(Failure) {
    let end = now() + 120
    while value.load(ordering: .relaxed) < count {
      guard now() < end else {
        throw Failure("\(value.load(ordering: .relaxed)) \(what) of \(count) within two minutes")
      }
      usleep(100)
    }
  }
}
