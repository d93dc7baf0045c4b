import EtcdHarness
import Testing

@testable import EtcdClient

/// Watches of three servers.
@Suite(.timeLimit(.minutes(3))) struct WatchTests {
  private let prefix = KeyRange(prefix: Array("w/".utf8))

  @Test func changesComeInOrderFromARevisionOn() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    try cluster.put("w/before", "0")
    let first = try cluster.put("w/a", "1")
    try cluster.put("elsewhere", "1")
    try cluster.delete("w/a")
    let reports = Collector<WatchReport>()
    let watch = cluster.watch(prefix, from: first) { reports.add($0) }
    defer { watch.cancel() }
    let puts = ["b", "c"].map { KeyOperation.put(key: Array("w/\($0)".utf8), value: [0x78], lease: 0) }
    let last = try cluster.commit(ClusterTransaction(puts)).header.revision
    #expect(reports.wait { _ in reports.changes.count == 3 })
    #expect(reports.texts.first == "connected")
    #expect(reports.changes == ["\(first): w/a=1", "\(first + 2): -w/a", "\(last): w/b=x w/c=x"])
  }

  @Test func watchFromThePresentReportsWhatFollows() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    try cluster.put("w/a", "1")
    let reports = Collector<WatchReport>()
    let watch = cluster.watch(prefix, from: 0) { reports.add($0) }
    defer { watch.cancel() }
    #expect(reports.wait { !$0.isEmpty })
    let next = try cluster.put("w/a", "2")
    #expect(reports.wait { _ in !reports.changes.isEmpty })
    #expect(reports.changes == ["\(next): w/a=2"])
  }

  @Test func cancelledWatchReportsNothingMore() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    let reports = Collector<WatchReport>()
    let watch = cluster.watch(prefix, from: 0) { reports.add($0) }
    #expect(reports.wait { !$0.isEmpty })
    watch.cancel()
    let count = reports.all.count
    let other = Collector<WatchReport>()
    let second = cluster.watch(prefix, from: 0) { other.add($0) }
    defer { second.cancel() }
    #expect(other.wait { !$0.isEmpty })
    try cluster.put("w/a", "1")
    #expect(other.wait { _ in !other.changes.isEmpty })
    #expect(reports.all.count == count)
    #expect(elapsed { cluster.close() } < .seconds(2))
  }

  /// The reports go on behind the last change, on another server.
  @Test(arguments: [true, false])
  func watchGoesOnAtAnotherServer(_ isKilled: Bool) throws {
    let nodes = try EtcdNodes()
    let writer = nodes.client()
    let first = try writer.put("w/a", "0")
    // The watch is at the server that fails: the other one is named behind it, and asked only later.
    let failing = try (nodes.leader() + 1) % 3
    let watching = nodes.client([nodes.endpoints[failing]]) { $0.watchSilence = .milliseconds(500) }
    let alone = Collector<WatchReport>()
    let both = Collector<WatchReport>()
    let pair = nodes.client([nodes.endpoints[failing], nodes.endpoints[(failing + 1) % 3]]) {
      $0.watchSilence = .milliseconds(500)
    }
    let watches = [
      watching.watch(prefix, from: first) { alone.add($0) }, pair.watch(prefix, from: first) { both.add($0) },
    ]
    defer { for watch in watches { watch.cancel() } }
    for reports in [alone, both] { #expect(reports.wait { _ in reports.changes.count == 1 }) }

    if isKilled { nodes.kill(failing) } else { nodes.pause(failing) }
    #expect(alone.wait { _ in alone.texts.contains("disconnected") })
    let other = nodes.client([nodes.endpoints[(failing + 1) % 3]])
    for number in 1...5 { try retry { () throws(ClusterError) in try other.put("w/a", "\(number)") } }
    #expect(both.wait { _ in both.changes.last?.hasSuffix("w/a=5") == true })
    if isKilled { try nodes.start(failing) } else { nodes.resume(failing) }
    #expect(alone.wait { _ in alone.changes.last?.hasSuffix("w/a=5") == true })
    // Everything once, in order; a put of which the outcome was unknown may be there twice.
    #expect(alone.changes == both.changes)
    #expect(alone.texts.filter { $0 == "disconnected" }.count == 1)
    #expect(alone.texts.filter { $0 == "connected" }.count >= 2)
    let revisions = alone.changes.compactMap { $0.split(separator: ":").first.flatMap { Int($0) } }
    #expect(revisions == Set(revisions).sorted())
    #expect(
      Set(alone.changes.compactMap { $0.split(separator: "=").last }) == ["0", "1", "2", "3", "4", "5"])
  }

  @Test func watchBehindACompactionSaysSo() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    let first = try cluster.put("w/a", "1")
    let last = try cluster.put("w/a", "2")
    try cluster.compact(before: last)
    let reports = Collector<WatchReport>()
    let watch = cluster.watch(prefix, from: first) { reports.add($0) }
    defer { watch.cancel() }
    #expect(reports.wait { _ in reports.texts.contains("compacted \(last)") })
    #expect(reports.texts.last == "compacted \(last)")
  }

  /// Rule: list at the header's revision, and watch from there + 1.
  @Test func watchThatWasCompactedWhileItWasDisconnectedSaysSo() throws {
    let nodes = try EtcdNodes()
    let writer = nodes.client()
    let relay = try Relay(to: nodes.clientPorts[0])
    defer { relay.stop() }
    let cluster = nodes.client([relay.endpoint])
    let first = try writer.put("w/a", "1")
    let reports = Collector<WatchReport>()
    let watch = cluster.watch(prefix, from: first) { reports.add($0) }
    defer { watch.cancel() }
    #expect(reports.wait { _ in reports.changes.count == 1 })
    relay.set(.closed)
    #expect(reports.wait { _ in reports.texts.last == "disconnected" })
    for number in 2...4 { try writer.put("w/a", "\(number)") }
    let last = try #require(writer.mark).revision
    try writer.compact(before: last)
    relay.set(.open)
    #expect(reports.wait { _ in reports.texts.last == "compacted \(last)" })
    let list = try cluster.read(RangeRequest(prefix))
    let again = Collector<WatchReport>()
    let second = cluster.watch(prefix, from: list.header.revision + 1) { again.add($0) }
    defer { second.cancel() }
    try writer.put("w/a", "5")
    #expect(again.wait { _ in again.changes == ["\(last + 1): w/a=5"] })
  }

  @Test func largeChangesArePutTogether() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    let value = String(repeating: "v", count: 1_000_000)
    let first = try cluster.put("w/0", value)
    for number in 1..<8 { try cluster.put("w/\(number)", value) }
    let reports = Collector<WatchReport>()
    let watch = cluster.watch(prefix, from: first) { reports.add($0) }
    defer { watch.cancel() }
    #expect(reports.wait { _ in reports.changes.count == 8 })
    #expect(reports.changes.map(\.utf8.count).min() ?? 0 > 1_000_000)
  }

  @Test func quietWatchNoticesThatTheServerIsGone() throws {
    let nodes = try EtcdNodes()
    let relay = try Relay(to: nodes.clientPorts[0])
    defer { relay.stop() }
    let cluster = nodes.client([relay.endpoint]) {
      $0.watchSilence = .milliseconds(300)
      $0.deadline = .seconds(2)
    }
    let reports = Collector<WatchReport>()
    let watch = cluster.watch(prefix, from: 0) { reports.add($0) }
    defer { watch.cancel() }
    #expect(reports.wait { !$0.isEmpty })
    // Some requests for progress are answered.
    #expect(!reports.wait(.seconds(1)) { _ in reports.texts.contains("disconnected") })
    relay.set(.silent)
    #expect(reports.wait(.seconds(10)) { _ in reports.texts.last == "disconnected" })
    relay.set(.open)
    #expect(reports.wait { _ in reports.texts.last == "connected" })
  }

  @Test func watchAsksAtOnceWhereACallWasNotAnswered() throws {
    let nodes = try EtcdNodes()
    let relay = try Relay(to: nodes.clientPorts[0])
    defer { relay.stop() }
    // By itself it would ask after an hour.
    let cluster = nodes.client([relay.endpoint]) {
      $0.watchSilence = .seconds(3600)
      $0.deadline = .seconds(2)
    }
    let reports = Collector<WatchReport>()
    let watch = cluster.watch(prefix, from: 0) { reports.add($0) }
    defer { watch.cancel() }
    #expect(reports.wait { !$0.isEmpty })
    relay.set(.silent)
    #expect(error { () throws(ClusterError) in _ = try cluster.get("w/a") }?.isUnavailable == true)
    #expect(reports.wait { _ in reports.texts.last == "disconnected" })
  }

  @Test func memberWithoutALeaderEndsTheWatch() throws {
    let nodes = try EtcdNodes()
    let leader = try nodes.leader()
    let cluster = nodes.client([nodes.endpoints[leader]])
    let reports = Collector<WatchReport>()
    let watch = cluster.watch(prefix, from: 0) { reports.add($0) }
    defer { watch.cancel() }
    #expect(reports.wait { !$0.isEmpty })
    for other in [0, 1, 2] where other != leader { nodes.kill(other) }
    #expect(reports.wait { _ in reports.texts.last == "disconnected" })
    guard case .disconnected(let error) = reports.all.last else { return }
    #expect("\(error)".contains("no leader"), "\(error)")
    for other in [0, 1, 2] where other != leader { try nodes.start(other) }
    #expect(reports.wait(.seconds(40)) { _ in reports.texts.last == "connected" })
  }

  private func retry(_ body: () throws(ClusterError) -> Void) throws {
    let deadline = ContinuousClock.now + .seconds(30)
    while let error = error(body) {
      if deadline < .now { throw error }
    }
  }
}
