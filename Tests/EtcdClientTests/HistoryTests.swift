import EtcdHarness
import Platform
import Synchronization
import TestSupport
import Testing

@testable import EtcdClient

/// Four clients read and write three keys while servers are killed and stopped. What each has seen must fit together.
///
/// ETCD_FAULT_SECONDS sets how long; else 60 where CI is set, and 8.
@Suite(.timeLimit(.minutes(30))) struct HistoryTests {
  private static let seconds =
    Environment.value("ETCD_FAULT_SECONDS").flatMap { Int($0) } ?? (Environment.value("CI") == nil ? 8 : 60)

  @Test func everyHistoryIsLinearizableAndWatched() throws {
    let nodes = try EtcdNodes()
    let end = ContinuousClock.now + .seconds(Self.seconds)
    let recorder = Recorder()
    let watching = nodes.client { $0.watchSilence = .seconds(1) }
    let reports = Collector<WatchReport>()
    let watch = watching.watch(KeyRange(prefix: Array("h/".utf8)), from: 1) { reports.add($0) }
    defer { watch.cancel() }

    onThreads(5) { thread in
      if thread < 4 {
        // One reads and writes at one server only, with other deadlines.
        let cluster = nodes.client { if thread == 3 { $0.deadline = .seconds(2) } }
        recorder.run(cluster, client: thread, until: end)
      } else {
        faults(nodes, until: end)
      }
    }
    for index in 0..<3 { nodes.resume(index) }
    let final = nodes.client()
    for key in 0..<3 { recorder.finish(final, key) }

    let counts = recorder.counts
    #expect(counts.done > 20 * Self.seconds, "\(counts)")
    for key in 0..<3 {
      let history = recorder.histories[key]
      #expect(history.violation == nil, "key \(key) of \(counts)")
    }
    try compare(reports, with: recorder, until: try #require(final.mark).revision)
    print("history: \(counts) in \(Self.seconds) s, \(reports.all.count) reports of the watch")
  }

  /// Each event is one of a write that was acknowledged or unknown, in the order of revisions; no acknowledged one is missing.
  private func compare(_ reports: Collector<WatchReport>, with recorder: Recorder, until revision: Int64)
    throws
  {
    var values: [Int] = []
    var revisions: [Int64] = []
    #expect(
      reports.wait { _ in reports.lastRevision >= revision || recorder.lastRevision <= reports.lastRevision })
    for case .changes(let changes, let revision) in reports.all {
      revisions.append(revision)
      for case .put(let value) in changes {
        values.append(Int(String(decoding: value.value, as: UTF8.self)) ?? -1)
      }
    }
    #expect(revisions == Set(revisions).sorted())
    #expect(values.count == Set(values).count)
    let (acknowledged, unknown) = recorder.written
    #expect(acknowledged.isSubset(of: values))
    #expect(Set(values).isSubset(of: acknowledged.union(unknown)))
  }

  private func faults(_ nodes: EtcdNodes, until end: ContinuousClock.Instant) {
    var random = SplitMix64(seed: .random(in: 0...(.max)))
    while end > .now {
      let victim = Int.random(in: 0..<3, using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0:
        nodes.kill(victim)
        pause(300...1500, &random)
        try? nodes.start(victim)
      case 1:
        nodes.terminate(victim)
        pause(100...1000, &random)
        try? nodes.start(victim)
      case 2:
        nodes.pause(victim)
        pause(300...3000, &random)
        nodes.resume(victim)
      default:
        // No quorum for a while.
        nodes.pause(victim)
        nodes.pause((victim + 1) % 3)
        pause(300...2000, &random)
        nodes.resume(victim)
        nodes.resume((victim + 1) % 3)
      }
      pause(500...2000, &random)
    }
  }

  private func pause(_ milliseconds: ClosedRange<UInt32>, _ random: inout SplitMix64) {
    Pause.microseconds(UInt32.random(in: milliseconds, using: &random) * 1000)
  }
}

/// The calls of all clients, by keys.
private final class Recorder: Sendable {
  private struct State {
    var histories = [RegisterHistory](repeating: RegisterHistory([]), count: 3)
    var acknowledged: Set<Int> = []
    var unknown: Set<Int> = []
    var refused = 0
    var done = 0
    var lastRevision: Int64 = 0
  }

  private let state = Mutex(State())
  private let next = Atomic<Int>(1)
  private let start = ContinuousClock.now

  var histories: [RegisterHistory] { state.withLock { $0.histories } }
  var written: (acknowledged: Set<Int>, unknown: Set<Int>) {
    state.withLock { ($0.acknowledged, $0.unknown) }
  }
  var counts: (done: Int, unknown: Int, refused: Int) {
    state.withLock { ($0.done, $0.unknown.count, $0.refused) }
  }
  /// Of a change that was acknowledged.
  var lastRevision: Int64 { state.withLock { $0.lastRevision } }

  private var now: Int64 { Int64(start.duration(to: .now) / .nanoseconds(1)) }

  func run(_ cluster: EtcdCluster, client: Int, until end: ContinuousClock.Instant) {
    while end > .now {
      let key = Int.random(in: 0..<3)
      switch Int.random(in: 0..<3) {
      case 0: read(cluster, client, key)
      case 1: write(cluster, client, key)
      default: exchange(cluster, client, key)
      }
    }
  }

  /// Reads until it works.
  func finish(_ cluster: EtcdCluster, _ key: Int) {
    let before = counts.done
    let deadline = ContinuousClock.now + .seconds(60)
    while counts.done == before, deadline > .now { read(cluster, 9, key) }
  }

  private func name(_ key: Int) -> [UInt8] { Array("h/\(key)".utf8) }

  private func number(_ value: KeyValue?) -> Int? {
    value.map { Int(String(decoding: $0.value, as: UTF8.self)) ?? -1 }
  }

  private func read(_ cluster: EtcdCluster, _ client: Int, _ key: Int) {
    let begin = now
    do throws(ClusterError) {
      let value = number(try cluster.read(RangeRequest(KeyRange(key: name(key)))).values.first)
      add(key, .init(client: client, .read(value), begin: begin, end: now))
    } catch {
      refuse(error)
    }
  }

  private func write(_ cluster: EtcdCluster, _ client: Int, _ key: Int) {
    let value = next.add(1, ordering: .relaxed).newValue
    let begin = now
    do throws(ClusterError) {
      let reply = try cluster.commit(ClusterTransaction([put(key, value)]))
      add(key, .init(client: client, .write(value), begin: begin, end: now), reply.header.revision)
    } catch {
      lose(key, .init(client: client, .write(value), begin: begin, end: nil), error)
    }
  }

  /// Reads, and replaces what it has read if that is still there.
  private func exchange(_ cluster: EtcdCluster, _ client: Int, _ key: Int) {
    let name = name(key)
    guard let present = try? cluster.read(RangeRequest(KeyRange(key: name))).values.first else { return }
    let value = next.add(1, ordering: .relaxed).newValue
    let kind = RegisterHistory.Kind.exchange(number(present), value)
    let transaction = ClusterTransaction(
      [put(key, value)], if: [.modified(key: name, equals: present.modified)],
      otherwise: [.read(RangeRequest(KeyRange(key: name)))])
    let begin = now
    do throws(ClusterError) {
      let reply = try cluster.commit(transaction)
      if reply.didSucceed {
        add(key, .init(client: client, kind, begin: begin, end: now), reply.header.revision)
      } else {
        add(key, .init(client: client, .read(number(reply.values.first?.first)), begin: begin, end: now))
      }
    } catch {
      lose(key, .init(client: client, kind, begin: begin, end: nil), error)
    }
  }

  private func put(_ key: Int, _ value: Int) -> KeyOperation {
    .put(key: name(key), value: Array("\(value)".utf8), lease: 0)
  }

  private func add(_ key: Int, _ operation: RegisterHistory.Operation, _ revision: Int64 = 0) {
    state.withLock { state in
      state.histories[key].add(operation)
      state.done += 1
      state.lastRevision = max(state.lastRevision, revision)
      if let value = operation.kind.writtenValue { state.acknowledged.insert(value) }
    }
  }

  /// A change that certainly was not done is not recorded: its value must never be seen.
  private func lose(_ key: Int, _ operation: RegisterHistory.Operation, _ error: ClusterError) {
    guard error.isUnknown else { return refuse(error) }
    state.withLock { state in
      state.histories[key].add(operation)
      if let value = operation.kind.writtenValue { state.unknown.insert(value) }
    }
  }

  private func refuse(_ error: ClusterError) {
    if !error.isUnavailable { Issue.record(error) }
    state.withLock { $0.refused += 1 }
  }
}

extension RegisterHistory.Kind {
  var writtenValue: Int? {
    switch self {
    case .write(let value), .exchange(_, let value): value
    case .read: nil
    }
  }
}

extension Collector<WatchReport> {
  /// The last revision with changes.
  var lastRevision: Int64 {
    for case .changes(_, let revision) in all.reversed() { return revision }
    return 0
  }
}
