import EtcdHarness
import Testing

@testable import EtcdClient

/// Calls to three servers that work.
@Suite(.timeLimit(.minutes(2))) struct CallTests {
  @Test func keysAreWrittenReadAndDeleted() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    let first = try cluster.put("a/1", "one")
    try cluster.put("a/2", "two")
    try cluster.put("b/1", "other")
    #expect(try cluster.get("a/1") == "one")
    #expect(try cluster.get("a/3") == nil)

    var request = RangeRequest(KeyRange(prefix: Array("a/".utf8)))
    let all = try cluster.read(request)
    #expect(all.values.map(\.created) == [first, first + 1] && all.count == 2 && !all.hasMore)
    request.limit = 1
    request.isKeysOnly = true
    let page = try cluster.read(request)
    #expect(page.values.map(\.value) == [[]] && page.hasMore && page.count == 2)
    // Everything, by a range without an end.
    #expect(try cluster.read(RangeRequest(KeyRange(start: [], end: []))).count == 3)

    try cluster.put("a/1", "again")
    let value = try #require(try cluster.read(RangeRequest(KeyRange(key: Array("a/1".utf8)))).values.first)
    #expect(value.version == 2 && value.created == first && value.modified == first + 3)
    var past = RangeRequest(KeyRange(key: Array("a/1".utf8)))
    past.revision = first
    #expect(try cluster.read(past).values.first?.value == Array("one".utf8))

    try cluster.delete("a/1")
    #expect(try cluster.get("a/1") == nil)
    #expect(try cluster.get("a/2", isLinearizable: false) == "two")
    // An independent witness.
    #expect(try nodes.etcdctl("get a/2 --print-value-only") == "two\n")
    #expect(cluster.mark?.revision == first + 4)
  }

  @Test func transactionDoesOneOfTwoLists() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    let key = Array("k".utf8)
    func put(_ value: String) -> KeyOperation { .put(key: key, value: Array(value.utf8), lease: 0) }
    let read = KeyOperation.read(RangeRequest(KeyRange(key: key)))

    let made = try cluster.commit(
      ClusterTransaction([put("1")], if: [.created(key: key, equals: 0)], otherwise: [read]))
    #expect(made.didSucceed && made.values == [[]])
    let refused = try cluster.commit(
      ClusterTransaction([put("2")], if: [.created(key: key, equals: 0)], otherwise: [read, read]))
    #expect(!refused.didSucceed)
    #expect(refused.values.map { $0.map(\.value) } == [[[0x31]], [[0x31]]])
    let revision = made.header.revision
    let conditions: [KeyCondition] = [
      .created(key: key, equals: revision), .modified(key: key, equals: revision),
      .version(key: key, equals: 1),
      .value(key: key, equals: [0x31]),
    ]
    #expect(try cluster.commit(ClusterTransaction([put("3")], if: conditions)).didSucceed)
    for condition in conditions.dropFirst() {
      #expect(try !cluster.commit(ClusterTransaction([put("4")], if: [condition])).didSucceed)
    }
    #expect(
      try cluster.commit(ClusterTransaction([put("")], if: [.value(key: key, equals: [0x33])])).didSucceed)
    #expect(try cluster.commit(ClusterTransaction([read], if: [.value(key: key, equals: [])])).didSucceed)
  }

  @Test func transactionOfMoreThan128OperationsIsTooLarge() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    func puts(_ count: Int) -> [KeyOperation] {
      (0..<count).map { .put(key: Array("k\($0)".utf8), value: [], lease: 0) }
    }
    #expect(error { () throws(ClusterError) in _ = try cluster.commit(ClusterTransaction(puts(128))) } == nil)
    #expect(
      error { () throws(ClusterError) in _ = try cluster.commit(ClusterTransaction(puts(129))) }?.isTooLarge
        == true)
  }

  @Test func valueThatTheServersDontTakeIsTooLarge() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    let limit = 1_572_864
    func put(_ count: Int, _ cluster: EtcdCluster) -> ClusterError? {
      error { () throws(ClusterError) in
        _ = try cluster.commit(
          ClusterTransaction([.put(key: [1], value: [UInt8](repeating: 1, count: count), lease: 0)]))
      }
    }
    #expect(put(limit - 300, cluster) == nil)
    #expect(try cluster.read(RangeRequest(KeyRange(key: [1]))).values.first?.value.count == limit - 300)
    #expect(put(limit, cluster)?.isTooLarge == true)
    // The servers themselves.
    let eager = nodes.client { $0.largestRequest = .max }
    #expect(put(limit, eager)?.isTooLarge == true)
    #expect(put(10, eager) == nil)
  }

  @Test func whatTheServersRefuseIsAnErrorWithTheirMessage() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    let empty = error { () throws(ClusterError) in try cluster.put("", "x") }
    guard case .refused(let message) = empty else {
      Issue.record("\(String(describing: empty))")
      return
    }
    #expect(message.contains("key is not provided"))
    let twice = KeyOperation.put(key: [1], value: [], lease: 0)
    #expect(
      error { () throws(ClusterError) in _ = try cluster.commit(ClusterTransaction([twice, twice])) }?
        .isRefused == true)
    #expect(error { () throws(ClusterError) in try cluster.put("k", "x", lease: 77) }?.isRefused == true)
  }

  @Test func readBehindACompactionSaysSo() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    let first = try cluster.put("a", "1")
    try cluster.compact(before: try cluster.put("a", "2"))
    var past = RangeRequest(KeyRange(key: Array("a".utf8)))
    past.revision = first
    #expect(error { () throws(ClusterError) in _ = try cluster.read(past) } == .compacted(oldest: 0))
    past.revision = first + 100
    #expect(error { () throws(ClusterError) in _ = try cluster.read(past) }?.isRefused == true)
  }

  @Test func clusterWithoutSpaceReadsAndDeletesUntilItIsCompacted() throws {
    var options = EtcdNodes.Options()
    options.arguments = ["--quota-backend-bytes", "\(4 << 20)"]
    let nodes = try EtcdNodes(options)
    let cluster = nodes.client()
    let value = String(repeating: "x", count: 1 << 20)
    var refusal: ClusterError?
    for _ in 0..<20 where refusal == nil {
      refusal = error { () throws(ClusterError) in try cluster.put("big", value) }
    }
    #expect(refusal == .noSpace)
    #expect(try cluster.get("big")?.count == value.count)
    try cluster.delete("big")
    #expect(error { () throws(ClusterError) in try cluster.put("a", "1") } == .noSpace)
    #expect(
      cluster.memberStatus().contains { (try? $0.1.get().errors.contains { $0.contains("NOSPACE") }) == true }
    )

    try cluster.compact(before: try #require(cluster.mark).revision)
    try nodes.etcdctl("defrag --command-timeout=20s")
    try nodes.etcdctl("alarm disarm")
    #expect(error { () throws(ClusterError) in try cluster.put("a", "1") } == nil)
  }

  @Test func keysOfALeaseGoWithIt() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    let lease = try cluster.grantLease(seconds: 60)
    #expect(lease.seconds == 60)
    try cluster.put("here", "1", lease: lease.id)
    #expect(try cluster.keepAlive(lease: lease.id) == lease)
    try cluster.revoke(lease: lease.id)
    #expect(try cluster.get("here") == nil)
    #expect(try cluster.keepAlive(lease: lease.id) == nil)
    try cluster.revoke(lease: lease.id)

    let short = try cluster.grantLease(seconds: 1)
    let reports = Collector<WatchReport>()
    let watch = cluster.watch(KeyRange(key: Array("short".utf8)), from: 0) { reports.add($0) }
    defer { watch.cancel() }
    #expect(reports.wait { _ in reports.texts == ["connected"] })
    try cluster.put("short", "1", lease: short.id)
    #expect(reports.wait { _ in reports.changes.last?.hasSuffix("-short") == true })
  }

  @Test func manyCallsAtTheSameTime() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    let failures = Collector<String>()
    onThreads(24) { thread in
      for number in 0..<20 {
        do throws(ClusterError) {
          try cluster.put("k\(thread)", "\(number)")
          if try cluster.get("k\(thread)") != "\(number)" { failures.add("\(thread) \(number)") }
        } catch {
          failures.add("\(error)")
        }
      }
    }
    #expect(failures.all == [])
  }
}
