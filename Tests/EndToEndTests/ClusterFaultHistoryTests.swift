// The tests of the failure table, by its rows, each on three real servers but for those in parentheses:
//
// | row | failure | tests |
// |---|---|---|
// | 1 | time-out of a write | `ClusterWriteFaultTests.writeWhoseReplyIsLostIsMadeOnce`; `FaultTests.connectionThatEndsDuringAWriteLeavesItUnknown` |
// | 2 | watch behind a compaction | `ClusterWatchFaultTests.changesThatWereCompactedAreFound`; `WatchTests.watchBehindACompactionSaysSo` |
// | 3 | quiet watch, then a compaction | `ClusterWatchFaultTests.quietWatchGoesOnBehindACompaction`; `WatchTests.watchThatWasCompactedWhileItWasDisconnectedSaysSo`, `.quietWatchNoticesThatTheServerIsGone` |
// | 4 | removal whose event is lost | `ClusterWatchFaultTests.removalWhoseEventIsLostIsFound` |
// | 5 | watch that goes back | `ClusterWatchFaultTests.settingsNeverGoBackAfterAPartitionAsRoot`; `PartitionTests` (`WatchHistoryTests.whatIsNotNewerIsDropped`) |
// | 6 | progress ahead of events | (`WatchHistoryTests.progressOfTheStreamCountsOnlyWhereItIsInOrder`, `.progressIsInOrderFromSomeVersionsOn`) |
// | 7 | many watches on one stream | none: a mount has two, each with a connection |
// | 8 | read after a pause | `ClusterWatchFaultTests.mountThatWasStoppedShowsNoSecretOfBefore`, `.serverThatWasStoppedShowsNoSecretOfBefore` |
// | 9 | watch beyond what is there | `ClusterChangeTests.restoredSnapshotIsRefusedBeforeAnythingIsWritten` (`EndpointTests.majorityIsNeverBehindWhatWasSeen`) |
// | 10 | member without a leader | `WatchTests.memberWithoutALeaderEndsTheWatch`; `PartitionTests.leaderThatIsCutOffIsReplacedAsRoot` |
// | 11 | another cluster, a restored snapshot | `ClusterIdentityFaultTests.anotherClusterIsReadOnly`, `.restoredSnapshotIsReadOnlyUntilItIsAccepted`; `ClusterPageTests`; `ClusterChangeTests`; `EtcdctlAttackTests` |
// | 12 | no space, too large, too many operations | `ClusterRefusalTests.quotaThatIsUsedUpIsSaid`; `CallTests`; `RealJournalTests` (`ClusterStateTests.largeValueIsRefusedWhenItIsWritten`: one server) |
// | 13 | token that expired, rights that change | `ClusterIdentityFaultTests.tokenThatTheServersForgotIsReplaced`; `SecurityTests` (`ClusterSecurityTests.usersAndPasswords`, `ClusterRefusalTests.missingRightToChangeIsSaid`: one server) |
// | 14 | server killed or stopped, no majority | `ClusterWriteFaultTests.leaderThatFailsIsReplaced`, `.withoutAQuorumCallsEndInTimeAndLaterWork`, `.valueStaysAsItWasWhileAWriteFails`; `ClusterStateTests`; `RealOfflineTests`; `FaultTests` |
// | 15 | put that is there when the majority is back | `ClusterWriteFaultTests.writeOfALeaderWithoutAQuorumIsThereOnceOrNever`; `FaultTests.putThatTimedOutIsThereWhereItsLeaderStays` |
// | | clocks that jump | `ClusterClockTests.machineWhoseClockJumpsGoesOn` |
// | | GOAWAY during a write | `ClusterWriteFaultTests.serversThatEndInOrderLoseNoWrite`; `FaultTests.serverThatEndsInOrderLosesNoWrite` |
// | | histories | this suite; `HistoryTests`; `RealClusterTests.countersLoseNoStepWhileServersAreKilled` |

import EtcdHarness
import Glibc
import Synchronization
import TestSupport
import Testing

/// Four machines with a mount each read and write the same settings and one secret while servers, connections and mounts fail. What each
/// has read must fit together.
///
/// ETCD_FAULT_SECONDS sets how long; else 20 where CI is set, and 6.
@Suite(.timeLimit(.minutes(30))) struct ClusterFaultHistoryTests {
  private static let seconds =
    variable("ETCD_FAULT_SECONDS").flatMap { Int($0) } ?? (variable("CI") == nil ? 6 : 20)

  private static func variable(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }

  @Test func everyHistoryFitsWhileServersFail() async throws {
    try await Self.run(in: nil)
  }

  @Test func everyHistoryFitsInAPartitionedNetworkAsRoot() async throws {
    try await Self.run(in: try TestNetwork(hosts: 3))
  }

  private static func run(in network: TestNetwork?) async throws {
    try await withClusterMachines(4) {
      ($0.count, $0.network) = (3, network)
    } body: { machines in
      try machines.create()
      for world in machines.worlds.dropFirst() { try machines.join(world) }
      let ways = try machines.worlds.map { _ in try machines.nodes.relays() }
      defer { for relays in ways { relays.stop() } }
      let mounts = try zip(machines.worlds, ways).map { world, relays in
        try machines.mount(world, endpoints: relays.map(\.endpoint))
      }
      let run = FaultRun(machines.nodes, network, mounts, ways)
      try run.prepare()
      let events = try mounts[0].events()
      let inotify = try mounts[1].inotify("defaults")
      defer { for watcher in [events, inotify] { watcher.program.kill() } }
      let (lines, names) = (events.program, inotify.program)
      let end = ContinuousClock.now + .seconds(seconds)
      onThreads(3) { thread in
        switch thread {
        case 0:
          onThreads(9) { thread in
            switch thread {
            case 0..<4: run.useSettings(thread, until: end)
            case 4..<8: run.useSecret(thread - 4, until: end)
            default: run.fail(until: end)
            }
          }
          run.settle()
        case 1: run.follow(lines, of: 0)
        default: run.follow(names, of: 1)
        }
      }
      run.judge()
    }
  }
}

/// The mounts while they are used, and all that was read and written.
private final class FaultRun: Sendable {
  private static let settings = ["volume", "balance"]
  private static let secret = "keychain/generic/service/me/value"
  /// A call ends within five seconds; a mount's process may have been stopped for three, and the machine may be busy.
  private static let longest = Duration.seconds(15)

  private struct State {
    var settings = FaultRun.settings.map { _ in FollowedHistory() }
    var secret = RegisterHistory([])
    var counts: [String: Int] = [:]
    /// The settings at the end; nil: that is not known yet.
    var last: [Int]?
    var isGivenUp = false
    var slowest = Duration.zero
  }

  private let nodes: EtcdNodes
  private let network: TestNetwork?
  private let mounts: [MountedKeyhole]
  private let ways: [[Relay]]
  private let state = Mutex(State())
  private let apart = ThreadApart()
  /// A process has the size of its own writes before they are stored, also for another of its threads that reads: the threads of a mount
  /// take turns with its settings.
  private let turns: [Turn]
  /// Threads belong to no test, so that they do not record issues.
  private let problems = Collector<String>()
  private let next = Atomic<Int>(1)
  private let start = ContinuousClock.now
  private let seed = UInt64.random(in: 0...(.max))

  init(_ nodes: EtcdNodes, _ network: TestNetwork?, _ mounts: [MountedKeyhole], _ ways: [[Relay]]) {
    (self.nodes, self.network, self.mounts, self.ways) = (nodes, network, mounts, ways)
    turns = mounts.map { _ in Turn() }
  }

  private static func path(_ setting: Int) -> String { "defaults/app/\(settings[setting])" }

  private var now: Int64 { Int64(start.duration(to: .now) / .nanoseconds(1)) }

  private func count(_ name: String) { state.withLock { $0.counts[name, default: 0] += 1 } }

  func prepare() throws {
    try mounts[0].check(
      """
      mkdir defaults/app; echo 0 > \(Self.path(0)); echo 0 > \(Self.path(1)); echo 0 > defaults/app/end
      mkdir -p keychain/generic/service/me; printf 0 > \(Self.secret)
      """)
    for mount in mounts {
      try mount.shows("0\n", at: "defaults/app/end")
      try mount.shows("0", at: Self.secret)
    }
  }
}

/// Held by the thread that uses the settings of a mount.
private final class Turn: Sendable {
  let lock = Mutex(())
}

// MARK: - Calls

extension FaultRun {
  /// Errors of calls while servers fail: there was no answer.
  private static let expected: [Errno] = [.io, .timedOut]

  private func timed<Result>(_ body: () throws(Errno) -> Result) throws(Errno) -> Result {
    let begin = ContinuousClock.now
    defer {
      let time = begin.duration(to: .now)
      state.withLock { $0.slowest = max($0.slowest, time) }
    }
    return try body()
  }

  /// Writes a value to a file. - Returns: when it began and, if it was acknowledged, when it ended; nil: nothing was sent.
  private func write(_ text: String, to path: String, _ what: String) -> (begin: Int64, end: Int64?)? {
    let begin = now
    let file: OpenFile
    do throws(Errno) {
      file = try timed { () throws(Errno) in try OpenFile(path, O_WRONLY | O_TRUNC) }
    } catch {
      if !Self.expected.contains(error) { problems.add("\(what) can't be opened to be written: \(error)") }
      count("\(what) refused")
      return nil
    }
    do throws(Errno) {
      try timed { () throws(Errno) in _ = try file.write(Array(text.utf8), at: 0) }
      try timed { () throws(Errno) in try file.close() }
      count("\(what) written")
      return (begin, now)
    } catch {
      if !Self.expected.contains(error) { problems.add("\(what) can't be written: \(error)") }
      count("\(what) unknown")
      return (begin, nil)
    }
  }

  func useSettings(_ mount: Int, until end: ContinuousClock.Instant) {
    var random = SplitMix64(seed: seed &+ UInt64(mount))
    while end > .now {
      let setting = Int.random(in: Self.settings.indices, using: &random)
      if Int.random(in: 0..<4, using: &random) > 0 {
        _ = read(setting, at: mount)
      } else {
        let value = next.add(1, ordering: .relaxed).newValue
        let times = turns[mount].lock.withLock { _ in
          write("\(value)\n", to: mounts[mount] / Self.path(setting), "setting")
        }
        guard let times else { continue }
        add(setting, .init(client: mount, .write(value), begin: times.begin, end: times.end))
      }
      // So that there are not more values than can be compared.
      usleep(UInt32.random(in: 0..<20_000, using: &random))
    }
  }

  private func add(_ setting: Int, _ operation: FollowedHistory.Operation) {
    state.withLock { $0.settings[setting].add(operation) }
  }

  /// Settings are read without the servers: that never fails.
  private func read(_ setting: Int, at mount: Int) -> Int? {
    turns[mount].lock.withLock { _ in readInTurn(setting, at: mount) }
  }

  private func readInTurn(_ setting: Int, at mount: Int) -> Int? {
    let begin = now
    do throws(Errno) {
      let text = try timed { () throws(Errno) in try System.text(mounts[mount] / Self.path(setting)) }
      guard let value = Int(text.dropLast()), text.last == "\n" else {
        problems.add(
          "\(Self.settings[setting]) of mount \(mount) was read as \(text.debugDescription) at \(begin)")
        return nil
      }
      add(setting, .init(client: mount, .read(value), begin: begin, end: now))
      count("setting read")
      return value
    } catch {
      problems.add("a setting can't be read: \(error)")
      return nil
    }
  }

  func useSecret(_ mount: Int, until end: ContinuousClock.Instant) {
    var random = SplitMix64(seed: seed &+ 100 &+ UInt64(mount))
    while end > .now {
      if Bool.random(using: &random) {
        readSecret(at: mount)
      } else {
        let value = next.add(1, ordering: .relaxed).newValue
        guard let times = write("\(value)", to: mounts[mount] / Self.secret, "secret") else { continue }
        let operation = RegisterHistory.Operation(
          client: mount, .write(value), begin: times.begin, end: times.end)
        state.withLock { $0.secret.add(operation) }
      }
      usleep(UInt32.random(in: 0..<20_000, using: &random))
    }
  }

  @discardableResult private func readSecret(at mount: Int) -> Bool {
    let begin = now
    do throws(Errno) {
      let text = try timed { () throws(Errno) in try System.text(mounts[mount] / Self.secret) }
      let value = Int(text) ?? -1
      // As the checker has it, the key is absent at the beginning.
      let operation = RegisterHistory.Operation(
        client: mount, .read(value == 0 ? nil : value), begin: begin, end: now)
      state.withLock { $0.secret.add(operation) }
      count("secret read")
      return true
    } catch {
      if !Self.expected.contains(error) { problems.add("a secret can't be read: \(error)") }
      count("secret not read")
      return false
    }
  }
}

// MARK: - Faults

extension FaultRun {
  private enum Fault: CaseIterable {
    case killed
    case terminated
    case paused
    case withoutAQuorum
    case compacted
    case replyLost
    case silent
    case closed
    case mountStopped
    case cutOff
    case unreachable
  }

  func fail(until end: ContinuousClock.Instant) {
    var random = SplitMix64(seed: seed &+ 1000)
    var faults: [Fault] = []
    while end > .now {
      // Each once, in another order each time; those of the network first, as others may take all of a short time.
      if faults.isEmpty {
        let ofNetwork: [Fault] = [.cutOff, .unreachable]
        faults = Fault.allCases.filter { !ofNetwork.contains($0) }.shuffled(using: &random)
        if network != nil { faults += ofNetwork.shuffled(using: &random) }
      }
      let fault = faults.removeLast()
      do { try make(fault, &random) } catch { problems.add("\(fault): \(error)") }
      pause(100...800, &random)
    }
  }

  private func pause(_ milliseconds: ClosedRange<UInt32>, _ random: inout SplitMix64) {
    usleep(UInt32.random(in: milliseconds, using: &random) * 1000)
  }

  /// Ends the connections that have lost bytes, which no network does without that.
  private func reconnect(_ mount: Int) {
    ways[mount].set(.closed)
    ways[mount].set(.open)
  }

  private func make(_ fault: Fault, _ random: inout SplitMix64) throws {
    count("\(fault)")
    let victim = Int.random(in: 0..<3, using: &random)
    let (next, last) = ((victim + 1) % 3, (victim + 2) % 3)
    let mount = Int.random(in: mounts.indices, using: &random)
    switch fault {
    case .killed:
      nodes.kill(victim)
      pause(300...1500, &random)
      try apart.run { [nodes] in try nodes.start(victim) }
    case .terminated:
      nodes.terminate(victim)
      pause(100...1000, &random)
      try apart.run { [nodes] in try nodes.start(victim) }
    case .paused:
      nodes.pause(victim)
      pause(300...3000, &random)
      nodes.resume(victim)
    case .withoutAQuorum:
      for node in [victim, next] { nodes.pause(node) }
      pause(300...2000, &random)
      for node in [victim, next] { nodes.resume(node) }
    case .compacted:
      // While one of the mounts does not see what follows.
      ways[mount].set(.silent)
      pause(100...1000, &random)
      // There may be no majority yet.
      try? apart.run { [nodes] in try nodes.compact() }
      reconnect(mount)
    case .replyLost:
      ways[mount].set(.cutAtReply)
      pause(10...300, &random)
      ways[mount].set(.open)
    case .silent:
      ways[mount].set(.silent)
      pause(300...3000, &random)
      reconnect(mount)
    case .closed:
      ways[mount].set(.closed)
      pause(10...1000, &random)
      ways[mount].set(.open)
    case .mountStopped:
      let program = try mounts[mount].program
      program.signal(SIGSTOP)
      pause(100...1500, &random)
      program.signal(SIGCONT)
    case .cutOff:
      try apart.run { [network] in for other in [next, last] { try network?.cut(victim, other) } }
      pause(500...3000, &random)
      try apart.run { [network] in for other in [next, last] { try network?.join(victim, other) } }
    case .unreachable:
      try apart.run { [network] in try network?.cutClients(from: victim) }
      pause(300...2000, &random)
      try apart.run { [network] in try network?.joinClients(to: victim) }
    }
  }
}

// MARK: - The end

extension FaultRun {
  /// All faults are over: waits until all mounts show the same, and reads it.
  func settle() {
    let isReady = (try? nodes.waitUntilReady()) != nil
    // Changes that a server has taken and not made yet are refused after this one, or come before it.
    let isStored = holds(within: .seconds(40)) {
      write("1\n", to: mounts[3] / "defaults/app/end", "end")?.end != nil
    }
    let isShown = holds(within: .seconds(40)) {
      mounts.allSatisfy { (try? $0.cat("defaults/app/end")) == "1\n" }
    }
    if !isReady || !isStored || !isShown { problems.add("the end: \(isReady) \(isStored) \(isShown)") }
    for mount in mounts.indices where !holds(within: .seconds(40), { readSecret(at: mount) }) {
      problems.add("mount \(mount): the secret can't be read")
    }
    var last: [Int] = []
    for setting in Self.settings.indices {
      let values = mounts.indices.map { read(setting, at: $0) }
      if Set(values).count > 1 { problems.add("\(Self.settings[setting]): \(values)") }
      last.append((values.first ?? nil) ?? -1)
    }
    let values = last
    state.withLock { ($0.last, $0.isGivenUp) = (values, !(isReady && isStored && isShown)) }
  }

  /// Reads each setting when an event names it, as a program does that follows them, until it has what is there at the end.
  func follow(_ program: Program, of mount: Int) {
    var values = Self.settings.map { _ in 0 }
    var quiet = ContinuousClock.now + .seconds(20)
    while true {
      let (last, isGivenUp) = state.withLock { ($0.last, $0.isGivenUp) }
      if isGivenUp || last == values { return }
      if last == nil { quiet = .now + .seconds(20) }
      if quiet < .now {
        problems.add("mount \(mount): the events end at \(values), not \(last ?? [])")
        return
      }
      guard let line = try? program.line(within: .milliseconds(200)) else { continue }
      let isLost = line.lowercased().contains("overflow")
      for (setting, name) in Self.settings.enumerated() where isLost || line.contains("app/\(name)") {
        values[setting] = read(setting, at: mount) ?? values[setting]
      }
    }
  }

  func judge() {
    let (settings, secret, counts, slowest) = state.withLock {
      ($0.settings, $0.secret, $0.counts, $0.slowest)
    }
    let text = counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    #expect(problems.all.isEmpty)
    let details = Comment(rawValue: "seed \(seed): \(text); slowest \(slowest)")
    for (name, history) in zip(Self.settings, settings) {
      let contradiction = history.contradiction
      #expect(contradiction == nil, "\(name)")
      #expect(!history.acknowledged.isEmpty, details)
    }
    #expect(secret.violation == nil, details)
    for name in ["setting read", "setting written", "secret read", "secret written"] {
      #expect(counts[name, default: 0] > 0, details)
    }
    #expect(slowest < Self.longest, details)
    print("faults: \(details)")
  }
}
