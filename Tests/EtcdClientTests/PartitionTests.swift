import EtcdHarness
import Testing

@testable import EtcdClient

/// Servers and clients between which packets are lost.
@Suite(.timeLimit(.minutes(3))) struct PartitionTests {
  private func inNetwork(_ body: @escaping @Sendable (TestNetwork, EtcdNodes) throws -> Void) throws {
    let network = try TestNetwork(hosts: 3)
    var options = EtcdNodes.Options()
    options.network = network
    let chosen = options
    try network.run { try body(network, try EtcdNodes(chosen)) }
  }

  /// Calls until one succeeds.
  private func untilItWorks(_ body: () throws(ClusterError) -> Void) throws {
    let deadline = ContinuousClock.now + .seconds(40)
    while let error = error(body) {
      if deadline < .now { throw error }
    }
  }

  @Test func leaderThatIsCutOffIsReplacedAsRoot() throws {
    try inNetwork { network, nodes in
      let old = try nodes.leader()
      let others = [0, 1, 2].filter { $0 != old }
      // At the server that is cut off, and beside it.
      let cluster = nodes.client([nodes.endpoints[old]])
      let first = try cluster.put("p/k", "1")
      let watching = nodes.client([nodes.endpoints[old], nodes.endpoints[others[0]]])
      let reports = Collector<WatchReport>()
      let watch = watching.watch(KeyRange(prefix: Array("p/".utf8)), from: first) { reports.add($0) }
      defer { watch.cancel() }
      #expect(reports.wait { _ in reports.changes.count == 1 })

      for other in others { try network.cut(old, other) }
      var lost: ClusterError?
      #expect(
        elapsed { lost = error { () throws(ClusterError) in try cluster.put("p/k", "lost") } }
          < .milliseconds(6500))
      #expect(lost?.isUnknown == true || lost?.isUnavailable == true)
      // Never what the majority may have replaced.
      let read = error { () throws(ClusterError) in _ = try cluster.get("p/k") }
      #expect(read?.isUnavailable == true)
      #expect(try cluster.get("p/k", isLinearizable: false) == "1")

      let majority = nodes.client(others.map { nodes.endpoints[$0] })
      try untilItWorks { () throws(ClusterError) in try majority.put("p/k", "2") }
      #expect(try majority.get("p/k") == "2")
      // The watch is not held by the server without a leader.
      #expect(reports.wait(.seconds(40)) { _ in reports.changes.last?.hasSuffix("p/k=2") == true })

      for other in others { try network.join(old, other) }
      try untilItWorks { () throws(ClusterError) in _ = try cluster.get("p/k") }
      // It is lost: the majority did not have it.
      #expect(try cluster.get("p/k") == "2")
      #expect(!reports.changes.contains { $0.hasSuffix("=lost") })
    }
  }

  @Test func serverThatClientsCantReachIsLeftAsRoot() throws {
    try inNetwork { network, nodes in
      let cluster = nodes.client([nodes.endpoints[0], nodes.endpoints[1]])
      for _ in 0..<4 { try cluster.put("p/k", "0") }
      let alone = nodes.client([nodes.endpoints[0]])
      let writer = nodes.client([nodes.endpoints[2]])
      let both = nodes.client([nodes.endpoints[0], nodes.endpoints[1]]) { $0.watchSilence = .seconds(1) }
      let reports = Collector<WatchReport>()
      let watch = both.watch(KeyRange(prefix: Array("p/".utf8)), from: 0) { reports.add($0) }
      defer { watch.cancel() }
      #expect(reports.wait { !$0.isEmpty })

      try network.cutClients(from: 0)
      let unreachable = error { () throws(ClusterError) in try alone.put("p/k", "never") }
      #expect(unreachable?.isUnavailable == true)
      let time = try elapsed { _ = try cluster.get("p/k") }
      #expect(time < .seconds(5))
      try writer.put("p/k", "1")
      #expect(reports.wait { _ in reports.changes.last?.hasSuffix("p/k=1") == true })
      #expect(try cluster.get("p/k") == "1")

      try network.joinClients(to: 0)
      try untilItWorks { () throws(ClusterError) in try alone.put("p/k", "2") }
      #expect(reports.wait { _ in reports.changes.last?.hasSuffix("p/k=2") == true })
      #expect(!reports.changes.contains { $0.hasSuffix("=never") })
    }
  }
}
