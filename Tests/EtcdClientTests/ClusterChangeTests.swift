import EtcdHarness
import Testing

@testable import EtcdClient

/// Another cluster at the same addresses, and one that was set back.
@Suite(.timeLimit(.minutes(2))) struct ClusterChangeTests {
  @Test func anotherClusterIsRefusedBeforeAnythingIsWritten() throws {
    let nodes = try EtcdNodes()
    // It is ahead, so that its revisions say nothing.
    let other = try EtcdNodes()
    let ahead = other.client()
    for number in 0..<20 { try ahead.put("other", "\(number)") }
    let relay = try Relay(to: nodes.clientPorts[0])
    defer { relay.stop() }
    let cluster = nodes.client([relay.endpoint])
    let first = try cluster.put("k", "1")
    let reports = Collector<WatchReport>()
    let watch = cluster.watch(KeyRange(key: [0x6B]), from: first) { reports.add($0) }
    defer { watch.cancel() }
    #expect(reports.wait { _ in reports.changes.count == 1 })

    relay.set(.closed)
    relay.redirect(to: other.clientPorts[0])
    relay.set(.open)
    #expect(error { () throws(ClusterError) in try cluster.put("k", "2") }?.isWrongCluster == true)
    #expect(error { () throws(ClusterError) in _ = try cluster.get("k") }?.isWrongCluster == true)
    #expect(reports.wait { _ in reports.texts.last == "refused" })
    #expect(try other.etcdctl("get k --print-value-only") == "")
    // Also for a process that only remembers.
    let later = other.client { $0.seen = cluster.mark }
    #expect(error { () throws(ClusterError) in try later.put("k", "2") }?.isWrongCluster == true)
    #expect(try other.etcdctl("get k --print-value-only") == "")
  }

  @Test func restoredSnapshotIsRefusedBeforeAnythingIsWritten() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    let first = try cluster.put("k", "1")
    try nodes.etcdctl("snapshot save $0/snapshot", at: [0])
    for number in 2..<12 { try cluster.put("k", "\(number)") }
    let mark = try #require(cluster.mark)
    let reports = Collector<WatchReport>()
    let watch = cluster.watch(KeyRange(key: [0x6B]), from: mark.revision + 1) { reports.add($0) }
    defer { watch.cancel() }
    #expect(reports.wait { !$0.isEmpty })

    // The same names and addresses, and so the same cluster by its number.
    try nodes.restore("\(nodes.folder)/snapshot")
    #expect(error { () throws(ClusterError) in try cluster.put("k", "new") }?.isWrongCluster == true)
    #expect(error { () throws(ClusterError) in _ = try cluster.get("k") }?.isWrongCluster == true)
    #expect(reports.wait { _ in reports.texts.last == "refused" })
    #expect(try nodes.etcdctl("get k --print-value-only") == "1\n")
    let later = nodes.client { $0.seen = mark }
    #expect(error { () throws(ClusterError) in try later.put("k", "new") }?.isWrongCluster == true)
    // A watch from behind what was seen, of a process that remembers only that.
    let other = Collector<WatchReport>()
    let second = nodes.client().watch(KeyRange(key: [0x6B]), from: mark.revision + 1) { other.add($0) }
    defer { second.cancel() }
    #expect(other.wait { _ in other.texts.last == "refused" })

    // A client that accepts it.
    let accepting = nodes.client()
    #expect(try accepting.get("k") == "1")
    try accepting.put("k", "again")
    #expect(try #require(accepting.mark).revision == first + 1)
  }
}
