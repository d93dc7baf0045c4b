import EtcdHarness
import Glibc
import Testing

/// Documentation/CLUSTER.md: the commands of the page itself, in their order.
@Suite(.timeLimit(.minutes(2))) struct ClusterPageTests {
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
      try #require(page.commands.count == 11)
      _ = try Self.run(page.commands[0], on: one)
      // It ends with this process, however that ends.
      let servers = try (1...3).map { number in
        try System.write("\(one.outside)/etcd\(number).env", page.file(number, in: one.outside))
        return try one.launch(
          "set -a; . ./etcd\(number).env; exec setpriv --pdeathsig KILL '\(EtcdNodes.program)' > etcd\(number).log 2>&1 < /dev/null"
        )
      }
      defer { for server in servers { server.kill() } }
      try await withTaskCancellationHandler {
        try Self.follow(page, one, other)
      } onCancel: {
        for server in servers { server.kill() }
        for world in [one, other] { Self.unmount(world) }
      }
    }
  }

  private static func follow(_ page: Page, _ one: World, _ other: World) throws {
    let commands = page.commands
    let variables = commands[1].split(separator: "\n").filter { $0.hasPrefix("export ") }.joined(
      separator: "\n")
    let isReady = try holds(within: .seconds(40)) {
      try one.sh("\(variables)\netcdctl endpoint health").status == 0
    }
    let logs = try one.sh("tail -n 5 *.log")
    try #require(isReady, "\(logs)")
    _ = try run(commands[1], on: one)
    let (passphrase, second) = (ClusterMachines.passphrase, ClusterMachines.otherPassphrase)
    defer { for world in [one, other] { unmount(world) } }
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
    _ = try run("\(variables)\n\(commands[9])", on: one)
    _ = try run(commands[10], passphrase, on: one)
  }
}
