import EtcdHarness
import Glibc
import Testing

@testable import EtcdClient

/// Servers that fail, one at a time or all of them.
@Suite(.timeLimit(.minutes(3))) struct FaultTests {
  /// The longest time of a call, with what a busy machine adds to it.
  private let longest: Duration = .milliseconds(6500)

  /// Calls until one succeeds. - Returns: the time until then.
  private func untilItWorks(_ body: () throws(ClusterError) -> Void) throws -> Duration {
    let begin = ContinuousClock.now
    while begin.duration(to: .now) < .seconds(40) {
      var result: ClusterError?
      let time = elapsed { result = error(body) }
      #expect(time < longest)
      if result == nil { return begin.duration(to: .now) }
    }
    throw EtcdNodes.Failure(description: "it did not work again")
  }

  @Test(arguments: [true, false])
  func serverThatIsKilledIsReplacedByOthers(_ isLeader: Bool) throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    for _ in 0..<6 { try cluster.put("k", "1") }
    let leader = try nodes.leader()
    nodes.kill(isLeader ? leader : (leader + 1) % 3)
    _ = try untilItWorks { () throws(ClusterError) in try cluster.put("k", "2") }
    #expect(try cluster.get("k") == "2")
    // The others answer as fast as before.
    let time = try elapsed { for _ in 0..<10 { _ = try cluster.get("k") } }
    #expect(time < longest)
  }

  @Test(arguments: [true, false])
  func serverThatIsStoppedIsReplacedByOthers(_ isLeader: Bool) throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    try cluster.put("k", "1")
    let leader = try nodes.leader()
    let stopped = isLeader ? leader : (leader + 1) % 3
    nodes.pause(stopped)
    _ = try untilItWorks { () throws(ClusterError) in _ = try cluster.get("k") }
    _ = try untilItWorks { () throws(ClusterError) in try cluster.put("k", "2") }
    nodes.resume(stopped)
    #expect(try cluster.get("k") == "2")
  }

  @Test func readsGoOnWhileAServerIsStopped() throws {
    let nodes = try EtcdNodes()
    let leader = try nodes.leader()
    let stopped = (leader + 1) % 3
    // A client that has its connections to the server that will stop.
    let endpoints = [nodes.endpoints[stopped], nodes.endpoints[leader]]
    for _ in 0..<2 {
      let cluster = nodes.client(endpoints)
      _ = try cluster.get("k")
      nodes.pause(stopped)
      let time = try elapsed { _ = try cluster.get("k") }
      #expect(time < .seconds(5))
      nodes.resume(stopped)
    }
  }

  @Test func withoutAQuorumCallsEndInTimeAndLaterWork() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    try cluster.put("k", "1")
    let leader = try nodes.leader()
    let others = [0, 1, 2].filter { $0 != leader }
    for other in others { nodes.kill(other) }

    // Until the last one notices, it takes what is written, and can't say what becomes of it.
    var written: ClusterError?
    #expect(elapsed { written = error { () throws(ClusterError) in try cluster.put("k", "2") } } < longest)
    #expect(written?.isUnknown == true || written?.isUnavailable == true)
    for _ in 0..<2 {
      var read: ClusterError?
      #expect(elapsed { read = error { () throws(ClusterError) in _ = try cluster.get("k") } } < longest)
      #expect(read?.isUnavailable == true)
    }
    // One server alone still has what it had.
    #expect(try cluster.get("k", isLinearizable: false) == "1")
    // By now it knows that it does not lead: nothing is sent to where it might be done later.
    let refused = error { () throws(ClusterError) in try cluster.put("never", "1") }
    #expect(refused?.isUnavailable == true)

    for other in others { try nodes.start(other) }
    _ = try untilItWorks { () throws(ClusterError) in try cluster.put("back", "1") }
    #expect(try cluster.get("never") == nil)
    // A read says how the put ended.
    let now = try cluster.get("k")
    #expect(now == "1" || now == "2" && written?.isUnknown == true)
  }

  /// The leader alone has a put when the others are gone. It is made where the leader goes on with one of them, whose log is shorter; and never,
  /// where those two go on without it.
  @Test(arguments: [true, false])
  func putThatTimedOutIsThereWhereItsLeaderStays(_ stays: Bool) throws {
    let nodes = try EtcdNodes()
    try nodes.client().put("k", "1")
    var leader = 0
    var late: ClusterError?
    // A leader that has found before that it is alone takes nothing.
    for _ in 0..<5 where late?.isUnknown != true {
      leader = try nodes.leader()
      let cluster = nodes.client([nodes.endpoints[leader]])
      _ = try cluster.get("k")
      for other in 0..<3 where other != leader { nodes.kill(other) }
      late = error { () throws(ClusterError) in try cluster.put("k", "2") }
      guard late?.isUnknown != true else { break }
      for other in 0..<3 where other != leader { try nodes.start(other) }
      try nodes.waitUntilReady()
    }
    #expect(late?.isUnknown == true)
    let (first, second) = ((leader + 1) % 3, (leader + 2) % 3)
    if !stays { nodes.kill(leader) }
    try nodes.start(first)
    if !stays { try nodes.start(second) }
    let majority = nodes.client((stays ? [leader, first] : [first, second]).map { nodes.endpoints[$0] })
    _ = try untilItWorks { () throws(ClusterError) in try majority.put("other", "1") }
    #expect(try majority.get("k") == (stays ? "2" : "1"))
    try nodes.start(stays ? second : leader)
    try nodes.waitUntilReady()
    for endpoint in nodes.endpoints {
      #expect(try nodes.client([endpoint]).get("k") == (stays ? "2" : "1"))
    }
  }

  @Test func noServerIsUnavailableWithinTheDeadline() throws {
    let ports = try FreePorts.find(3)
    let cluster = EtcdCluster(
      .init(endpoints: ports.compactMap { EtcdEndpoint("127.0.0.1:\($0)", isSecure: false) }))
    for isChange in [true, false] {
      var result: ClusterError?
      let time = elapsed {
        result = error { () throws(ClusterError) in
          if isChange { try cluster.put("k", "1") } else { _ = try cluster.get("k") }
        }
      }
      #expect(result?.isUnavailable == true)
      #expect(time < longest)
    }
  }

  @Test func serverThatNeverAnswersIsLeftInTime() throws {
    let nodes = try EtcdNodes()
    let relay = try Relay(to: nodes.clientPorts[0])
    defer { relay.stop() }
    let cluster = nodes.client([relay.endpoint]) { $0.deadline = .seconds(2) }
    try cluster.put("k", "1")

    relay.set(.silent)
    var result: ClusterError?
    var time = elapsed { result = error { () throws(ClusterError) in try cluster.put("k", "2") } }
    #expect(result?.isUnknown == true)
    #expect(time > .seconds(1) && time < .seconds(4))
    // A new connection gets no answer either: then nothing was sent.
    time = elapsed { result = error { () throws(ClusterError) in try cluster.put("k", "3") } }
    #expect(result?.isUnavailable == true)
    #expect(time < .seconds(4))

    let other = nodes.client([relay.endpoint, nodes.endpoints[1]])
    for _ in 0..<4 {
      var value: String?
      time = try elapsed { value = try other.get("k") }
      #expect(value == "1")
      #expect(time < .seconds(4))
    }
  }

  @Test func connectionThatEndsDuringAWriteLeavesItUnknown() throws {
    let nodes = try EtcdNodes()
    let relay = try Relay(to: nodes.clientPorts[0])
    defer { relay.stop() }
    let cluster = nodes.client([relay.endpoint])
    for number in 1...5 {
      try cluster.put("k", "before \(number)")
      relay.set(.cutAtReply)
      let cut = relay.cuts
      let lost = error { () throws(ClusterError) in try cluster.put("k", "\(number)") }
      relay.set(.open)
      #expect(lost?.isUnknown == true, "\(String(describing: lost))")
      #expect(relay.cuts > cut)
      let value = try #require(
        try cluster.read(RangeRequest(KeyRange(key: Array("k".utf8)))).values.first)
      // Once at most: libcurl would send it again by itself over a new connection.
      #expect(value.version == 2 * Int64(number) || value.version == 2 * Int64(number) - 1)
      try cluster.delete("k")
      for _ in 0..<2 * number { try cluster.put("k", "x") }
    }
  }

  @Test func readWhoseConnectionEndsIsDoneByAnother() throws {
    let nodes = try EtcdNodes()
    let relay = try Relay(to: nodes.clientPorts[0])
    defer { relay.stop() }
    let cluster = nodes.client([relay.endpoint, nodes.endpoints[1]])
    try cluster.put("k", "1")
    for _ in 0..<4 {
      relay.set(.cutAtReply)
      #expect(try cluster.get("k") == "1")
      relay.set(.closed)
      #expect(try cluster.get("k") == "1")
      relay.set(.open)
    }
  }

  /// A server that is ended in order sends GOAWAY, and answers what it has begun.
  @Test func serverThatEndsInOrderLosesNoWrite() throws {
    let nodes = try EtcdNodes()
    let writer = nodes.client([nodes.endpoints[0]]) { $0.deadline = .seconds(2) }
    try writer.put("k", "0")
    let results = Collector<(Int, ClusterError?)>()
    let isEnding = Collector<Bool>()
    onThreads(2) { thread in
      if thread == 1 {
        _ = results.wait { $0.count > 20 }
        nodes.terminate(0)
        isEnding.add(true)
        return
      }
      var number = 0
      repeat {
        number += 1
        results.add((number, error { () throws(ClusterError) in try writer.put("k\(number)", "x") }))
      } while isEnding.all.isEmpty
    }
    let reader = nodes.client([nodes.endpoints[1], nodes.endpoints[2]])
    for (number, error) in results.all {
      let isThere = try reader.get("k\(number)") != nil
      switch error {
      case nil: #expect(isThere)
      case .outcomeUnknown: break
      default: #expect(!isThere && error?.isUnavailable == true, "\(String(describing: error))")
      }
    }
    #expect(results.all.contains { $0.1 != nil })
  }

  @Test func idleConnectionThatEndedIsReplacedBeforeAWrite() throws {
    let nodes = try EtcdNodes()
    let cluster = nodes.client()
    try cluster.put("k", "1")
    for index in 0..<3 { nodes.kill(index) }
    for index in 0..<3 { try nodes.start(index) }
    try nodes.waitUntilReady()
    // Each of its connections is gone; the first call over one of them is not sent, and so not unknown.
    #expect(error { () throws(ClusterError) in try cluster.put("k", "2") } == nil)
  }

  @Test func callIsInterruptedAtOnce() throws {
    let nodes = try EtcdNodes()
    let relay = try Relay(to: nodes.clientPorts[0])
    defer { relay.stop() }
    let cluster = nodes.client([relay.endpoint])
    try cluster.put("k", "1")
    relay.set(.silent)
    for isChange in [true, false] {
      let interruption = CallInterruption()
      let results = Collector<ClusterError?>()
      let began = ContinuousClock.now
      onThreads(2) { thread in
        guard thread == 0 else {
          // When the relay has swallowed the request, or some time later: both have to end the call.
          usleep(100_000)
          return interruption.interrupt()
        }
        results.add(
          error { () throws(ClusterError) in
            let read = RangeRequest(KeyRange(key: [1]))
            if isChange {
              let put = KeyOperation.put(key: [1], value: [], lease: 0)
              _ = try cluster.commit(ClusterTransaction([put]), interruption: interruption)
            } else {
              _ = try cluster.read(read, interruption: interruption)
            }
          })
      }
      #expect(began.duration(to: .now) < .seconds(2))
      let result = results.all.first ?? nil
      #expect(isChange ? result?.isUnknown == true : result?.isUnavailable == true)
    }
    // Before it begins.
    let interruption = CallInterruption()
    interruption.interrupt()
    let put = ClusterTransaction([.put(key: [1], value: [], lease: 0)])
    let result = error { () throws(ClusterError) in _ = try cluster.commit(put, interruption: interruption) }
    #expect(result?.isUnavailable == true)
  }

  @Test func closingInterruptsCalls() throws {
    let nodes = try EtcdNodes()
    let relay = try Relay(to: nodes.clientPorts[0])
    defer { relay.stop() }
    let cluster = nodes.client([relay.endpoint])
    _ = try cluster.get("k")
    relay.set(.silent)
    let began = ContinuousClock.now
    onThreads(2) { thread in
      if thread == 1 {
        usleep(100_000)
        cluster.close()
      } else {
        #expect(error { () throws(ClusterError) in _ = try cluster.get("k") }?.isUnavailable == true)
      }
    }
    #expect(began.duration(to: .now) < .seconds(2))
  }
}
