import EtcdHarness
import Glibc
import Synchronization
import Testing

/// Documentation/CLUSTER.md: the commands of the page itself, in their order.
@Suite(.timeLimit(.minutes(3))) struct ClusterPageTests {
  /// The blocks of the page, with the servers of this test in the place of its own.
  private struct Page {
    var commands: [String] = []
    /// The file of the first server.
    var server = ""
    private let ports: [UInt16]

    init(_ ports: [UInt16]) throws {
      self.ports = ports
      var block: (language: Substring, lines: [Substring])?
      let text = try System.text(Products.documentation + "/CLUSTER.md")
      for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
        guard line.hasPrefix("```") else {
          block?.lines.append(line)
          continue
        }
        if let done = block {
          let text = placed(done.lines.joined(separator: "\n") + "\n")
          if done.language == "sh" { commands.append(text) } else { server = text }
          block = nil
        } else {
          block = (line.dropFirst(3), [])
        }
      }
    }

    private func placed(_ text: String) -> String {
      var text = text
      for number in 1...3 {
        text = text.replacing("DNS:etcd\(number).example.com", with: "DNS:localhost,IP:127.0.0.1")
        for (index, port) in ["2379", "2380"].enumerated() {
          text = text.replacing(
            "etcd\(number).example.com:\(port)", with: "localhost:\(ports[2 * (number - 1) + index])")
        }
      }
      return text
    }

    /// The file of a server, as the page says how the others differ; its paths are below a folder.
    func file(_ number: Int, in folder: String) -> String {
      let (client, peer) = (ports[2 * (number - 1)], ports[2 * (number - 1) + 1])
      let lines = server.split(separator: "\n").map { line -> String in
        let line = String(line)
        if line.hasPrefix("ETCD_INITIAL_CLUSTER=") { return line }
        return line.replacing("etcd1", with: "etcd\(number)")
          .replacing("https://0.0.0.0:2379", with: "https://127.0.0.1:\(client)")
          .replacing("https://0.0.0.0:2380", with: "https://127.0.0.1:\(peer)")
          .replacing("localhost:\(ports[0])", with: "localhost:\(client)")
          .replacing("localhost:\(ports[1])", with: "localhost:\(peer)")
          .replacing("/etc/etcd/", with: "\(folder)/")
          .replacing("/var/lib/etcd/keyhole", with: "\(folder)/data\(number)")
      }
      return lines.joined(separator: "\n") + "\n"
    }
  }

  /// Runs a block that has to succeed.
  private static func run(
    _ block: String, _ lines: String..., on world: World, sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Output {
    let output = try world.sh(
      "set -e\n\(block)", sending: Array(lines.map { $0 + "\n" }.joined().utf8), within: .seconds(40))
    try #require(output.status == 0, "\(block): \(output)", sourceLocation: sourceLocation)
    return output
  }

  private static func unmount(_ world: World) { _ = try? world.sh("keyhole unmount") }

  @Test func theCommandsOfThePage() async throws {
    try await withWorld { one in
      let other = try World()
      defer { other.remove() }
      let page = try Page(FreePorts.find(6))
      try #require(page.commands.count == 14)
      _ = try Self.run(page.commands[0], on: one)
      for number in Servers.numbers {
        try System.write("\(one.outside)/etcd\(number).env", page.file(number, in: one.outside))
      }
      let servers = Servers(one)
      for number in Servers.numbers { try servers.start(number) }
      defer { servers.kill() }
      defer { for world in [one, other] { Self.unmount(world) } }
      try await withTaskCancellationHandler {
        try Self.follow(page, one, other)
        try Self.restore(page, servers, one, other)
        try Self.upgrade(page, servers, one)
      } onCancel: {
        servers.kill()
        for world in [one, other] { Self.unmount(world) }
      }
    }
  }

  /// The three servers.
  private final class Servers: Sendable {
    static let numbers = 1...3
    private let world: World
    private let programs = Mutex<[Int: Program]>([:])

    init(_ world: World) { self.world = world }

    /// It ends with this process, however that ends.
    func start(_ number: Int) throws {
      let program = try world.launch(
        "set -a; . ./etcd\(number).env; exec setpriv --pdeathsig KILL '\(EtcdNodes.program)' >> etcd\(number).log 2>&1 < /dev/null"
      )
      programs.withLock { $0[number] = program }
    }

    func stop(_ number: Int) throws {
      let program = try #require(programs.withLock { $0[number] })
      program.kill(SIGTERM)
      _ = try program.waitForEnd(until: Deadline(in: .seconds(20)))
    }

    func kill() { for program in programs.withLock({ $0.values.map { $0 } }) { program.kill() } }
  }

  /// The variables of etcdctl.
  private static func variables(_ page: Page) -> String {
    page.commands[1].split(separator: "\n").filter { $0.hasPrefix("export ") }.joined(separator: "\n")
  }

  private static func waitForServers(_ page: Page, _ world: World) throws {
    let isReady = try holds(within: .seconds(40)) {
      try world.sh("\(variables(page))\netcdctl endpoint health").status == 0
    }
    let logs = try world.sh("tail -n 5 *.log")
    try #require(isReady, "\(logs)")
  }

  /// The cluster goes back to the snapshot that `follow` has made.
  private static func restore(_ page: Page, _ servers: Servers, _ one: World, _ other: World) throws {
    let (passphrase, second) = (ClusterMachines.passphrase, ClusterMachines.otherPassphrase)
    try one.check("keyhole set defaults/app/volume 43")
    for number in Servers.numbers { try servers.stop(number) }
    for number in Servers.numbers {
      let block = page.commands[10].replacing("/etc/default/etcd", with: "./etcd\(number).env")
      _ = try run("\(variables(page))\n\(block)", on: one)
    }
    for number in Servers.numbers { try servers.start(number) }
    try waitForServers(page, one)
    let isNoticed = try holds { try one.sh("keyhole doctor").text.contains("`keyhole cluster accept`") }
    let doctor = try one.sh("keyhole doctor; keyhole status")
    #expect(isNoticed, "\(doctor)")
    let refused = try one.sh("keyhole set defaults/app/volume 44")
    #expect(refused.status != 0 && refused.error.contains("another cluster answers"), "\(refused)")
    for (world, phrase) in [(one, passphrase), (other, second)] {
      _ = try run(page.commands[11], phrase, on: world)
      try world.check("keyhole unmount")
      _ = try run(page.commands[3], phrase, on: world)
      try world.check("keyhole get defaults/app/volume", prints: "42\n")
    }
    try one.check("keyhole set defaults/app/volume 45")
    let isThere = try holds { try other.sh("keyhole get defaults/app/volume").text == "45\n" }
    #expect(isThere)
  }

  /// In the place of systemctl and apt-get the test stops and starts the server; meanwhile the others serve.
  private static func upgrade(_ page: Page, _ servers: Servers, _ one: World) throws {
    let table = try run("\(variables(page))\n\(page.commands[12])", on: one)
    #expect(table.lines.filter { $0.contains(" 3.") }.count == 3, "\(table)")
    #expect(
      page.commands[13]
        == "systemctl stop etcd\napt-get install --only-upgrade etcd-server\nsystemctl start etcd\n")
    for number in Servers.numbers {
      try servers.stop(number)
      // The one that leads may have been stopped.
      let isStored = try holds { try one.sh("keyhole set defaults/app/volume 5\(number)").status == 0 }
      #expect(isStored)
      try one.check("keyhole get defaults/app/volume", prints: "5\(number)\n")
      try servers.start(number)
      try waitForServers(page, one)
    }
    let isConnected = try holds { try one.sh("keyhole status").text.contains("cluster      connected") }
    #expect(isConnected)
  }

  private static func follow(_ page: Page, _ one: World, _ other: World) throws {
    let commands = page.commands
    try waitForServers(page, one)
    _ = try run(commands[1], on: one)
    let (passphrase, second) = (ClusterMachines.passphrase, ClusterMachines.otherPassphrase)
    try one.check("keyhole set defaults/before/it 1")
    let made = try run(commands[2], passphrase, on: one)
    #expect(made.lines.count == 1)
    let status = try run(commands[3], passphrase, on: one)
    #expect(status.text.contains("cluster      connected"), "\(status)")
    try one.check("cp ca.pem team.pem team.key '\(other.outside)'; keyhole set defaults/app/volume 42")
    let moved = try run(commands[4], on: one)
    #expect(moved.text == "moved 1 suite from files to cluster\nmoved 0 items from vault to cluster\n")
    let asked = try run(commands[5], second, on: other)
    let approved = try run(commands[6], passphrase, try #require(asked.lines.first), on: one)
    _ = try run(commands[7], second, try #require(approved.lines.first), on: other)
    _ = try run(commands[3], second, on: other)
    let isThere = try holds {
      try other.sh("keyhole get defaults/app/volume; keyhole get defaults/before/it").text == "42\n1\n"
    }
    #expect(isThere)
    let day = try one.sh(commands[8])
    #expect(day.lines.filter { $0.hasPrefix("server   ") && $0.contains("etcd 3.") }.count == 3, "\(day)")
    #expect(day.text.contains("  this device") && day.text.contains("members  3"), "\(day)")
    _ = try run("\(variables(page))\n\(commands[9])", on: one)
  }
}
