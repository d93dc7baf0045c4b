import EtcdHarness
import Glibc
import Testing

/// Writes through a mount while the servers fail: those that were acknowledged are there, and the others are there once or not at all.
@Suite(.timeLimit(.minutes(3))) struct ClusterWriteFaultTests {
  private static let volume = "defaults/app/volume"
  private static let secret = "keychain/generic/service/me/value"
  /// A call ends within five seconds, and the machine may be busy.
  private static let longest = Duration.milliseconds(6500)

  private static func prepare(_ one: MountedKeyhole, _ others: MountedKeyhole...) throws {
    try one.check(
      """
      mkdir defaults/app; echo 0 > \(volume); mkdir -p keychain/generic/service/me; printf 0 > \(secret)
      """)
    for other in others {
      try other.shows("0\n", at: volume)
      try other.shows("0", at: secret)
    }
  }

  /// Writes until that is acknowledged.
  private static func untilItWorks(
    _ text: String, at path: String, _ keyhole: MountedKeyhole,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let isStored = holds(within: .seconds(40)) { failure { try System.write(keyhole / path, text) } == nil }
    #expect(isStored, sourceLocation: sourceLocation)
  }

  private static func elapsed(_ body: () throws -> Void) rethrows -> Duration {
    let begin = ContinuousClock.now
    try body()
    return begin.duration(to: .now)
  }

  /// The server has made the change, and its reply is lost: the mount reads back, and says that it is stored.
  @Test(arguments: [(volume, "1\n", "s/set/", "s/head/"), (secret, "1", "k/item/", "k/items")])
  func writeWhoseReplyIsLostIsMadeOnce(_ path: String, _ text: String, _ entries: String, _ head: String)
    async throws
  {
    try await withClusterMachines {
      $0.count = 3
    } body: { machines in
      try machines.create()
      try machines.join()
      let relays = try machines.nodes.relays()
      defer { relays.stop() }
      let one = try machines.mount(machines.one, endpoints: relays.map(\.endpoint))
      let other = try machines.mount(machines.other)
      try Self.prepare(one, other)
      let store = "/keyhole/1/team/"
      let before = try machines.nodes.versions(store + head)
      let lost = LostReply(toRequestWith: store + entries)
      for relay in relays { relay.lose(lost) }
      let time = try Self.elapsed { try System.write(one / path, text) }
      #expect(lost.isLost)
      #expect(time < Self.longest)
      try one.shows(text, at: path, within: .zero)
      #expect(try machines.nodes.versions(store + head) == before + 1)
      try other.shows(text, at: path)
      try one.check("echo 2 > \(Self.volume)")
      try other.shows("2\n", at: Self.volume)
    }
  }

  /// The leader alone has a change when the other servers are gone: the mount can't say what becomes of it. It is there afterwards where the
  /// leader goes on with one of them, and is not where those two go on without it; also for a mount that was killed meanwhile.
  @Test(arguments: [true, false]) func writeOfALeaderWithoutAQuorumIsThereOnceOrNever(_ isKept: Bool)
    async throws
  {
    try await withTwoClusterMounts(servers: 3) { machines, one, other in
      let nodes = machines.nodes
      try Self.prepare(one, other)
      let heads = "/keyhole/1/team/s/head/"
      let before = try nodes.versions(heads)
      let apart = ThreadApart()
      var leader = 0
      var isTaken = false
      // A leader that has found before that it is alone takes nothing.
      for _ in 0..<5 where !isTaken {
        leader = try nodes.leader()
        for node in 0..<3 where node != leader { nodes.kill(node) }
        let results = Collector<Errno?>()
        let alone = leader
        let time = try Self.elapsed {
          let writer = Thread { results.add(failure { try System.write(one / Self.volume, "1\n") }) }
          isTaken = try apart.run { nodes.waitUntilPending(alone) }
          writer.join()
        }
        #expect(results.all == [.io])
        // Opening and closing are two calls.
        #expect(time < Self.longest * 2)
        guard !isTaken else { break }
        for node in 0..<3 where node != leader { try nodes.start(node) }
        try nodes.waitUntilReady()
        // The mount refuses writes at once for some seconds.
        Self.untilItWorks("0\n", at: Self.volume, one)
      }
      #expect(isTaken)
      try one.crash()
      let (first, second) = ((leader + 1) % 3, (leader + 2) % 3)
      if !isKept { nodes.kill(leader) }
      try nodes.start(first)
      if !isKept { try nodes.start(second) }
      #expect(
        holds(within: .seconds(40)) {
          (try? nodes.etcdctl("put back 1", at: isKept ? [leader, first] : [first, second])) != nil
        })
      try nodes.start(isKept ? second : leader)
      try nodes.waitUntilReady()
      try machines.unlock(one)
      for keyhole in [one, other] { try keyhole.shows(isKept ? "1\n" : "0\n", at: Self.volume) }
      #expect(try nodes.versions(heads) == before + (isKept ? 1 : 0))
      Self.untilItWorks("2\n", at: Self.volume, one)
      try other.shows("2\n", at: Self.volume)
    }
  }

  /// A server that ends in order says so to its clients (GOAWAY), and answers what it has begun.
  @Test func serversThatEndInOrderLoseNoWrite() async throws {
    try await withTwoClusterMounts(servers: 3) { machines, one, other in
      let nodes = machines.nodes
      try Self.prepare(one, other)
      let apart = ThreadApart()
      let results = Collector<(name: String, isOpened: Bool, error: Errno?)>()
      let isOver = Collector<Bool>()
      onThreads(3) { thread in
        if thread == 2 {
          for node in 0..<3 {
            let count = results.all.count
            _ = results.wait { $0.count > count + 10 }
            nodes.terminate(node)
            let after = results.all.count
            _ = results.wait { $0.count > after + 5 }
            // Without it, the end of the next one would leave no majority.
            let isBack: Void? = try? apart.run {
              try nodes.start(node)
              try nodes.waitUntilReady()
            }
            #expect(isBack != nil)
          }
          return isOver.add(true)
        }
        var number = 0
        while isOver.all.isEmpty {
          number += 1
          let name = thread == 0 ? "k\(number)" : "keychain/generic/service/i\(number)"
          var isOpened = false
          let error = failure {
            if thread == 1 { try System.mkdir(one / name) }
            let path = thread == 0 ? "defaults/app/\(name)" : "\(name)/value"
            let file = try OpenFile(one / path, O_WRONLY | O_CREAT | O_TRUNC)
            isOpened = true
            try file.write("x")
            try file.close()
          }
          results.add((thread == 0 ? "defaults/app/\(name)" : "\(name)/value", isOpened, error))
        }
      }
      try one.check("echo 1 > defaults/app/end")
      try other.shows("1\n", at: "defaults/app/end")
      for result in results.all {
        let isThere = System.exists(other / result.name)
        switch (result.error, result.isOpened) {
        case (nil, _): #expect(isThere, "\(result.name) was acknowledged")
        case (.io?, true): break
        case (.io?, false): #expect(!isThere, "\(result.name) was refused")
        default: Issue.record("\(result.name): \(String(describing: result.error))")
        }
      }
      #expect(results.all.contains { $0.error == nil })
    }
  }

  /// Writes go on with the other servers.
  @Test(arguments: [true, false]) func leaderThatFailsIsReplaced(_ isKilled: Bool) async throws {
    try await withTwoClusterMounts(servers: 3) { machines, one, other in
      let nodes = machines.nodes
      try Self.prepare(one, other)
      let leader = try nodes.leader()
      if isKilled { nodes.kill(leader) } else { nodes.pause(leader) }
      var slowest = Duration.zero
      for (path, text) in [(Self.volume, "1\n"), (Self.secret, "1")] {
        let isStored = holds(within: .seconds(40)) {
          var error: Errno?
          slowest = max(slowest, Self.elapsed { error = failure { try System.write(one / path, text) } })
          #expect(error == nil || error == .io, "\(path)")
          return error == nil
        }
        #expect(isStored)
        try other.shows(text, at: path)
      }
      // Opening and closing are two calls.
      #expect(slowest < Self.longest * 2)
      if isKilled { try nodes.start(leader) } else { nodes.resume(leader) }
      try nodes.waitUntilReady()
      try other.check("echo 2 > \(Self.volume); printf 2 > \(Self.secret)")
      try one.shows("2\n", at: Self.volume)
      try one.shows("2", at: Self.secret)
    }
  }

  /// Until a write is acknowledged, other programs on the same machine read the value of before: while it waits for the servers, and when it
  /// has failed.
  @Test func valueStaysAsItWasWhileAWriteFails() async throws {
    try await withClusterMachines {
      $0.count = 3
    } body: { machines in
      try machines.create()
      let one = try machines.mount(machines.one)
      try Self.prepare(one)
      let reader = try one.world.launch("while :; do echo \"<$(cat \"$MOUNT/\(Self.volume)\")>\"; done")
      defer { reader.kill() }
      machines.nodes.pauseAll()
      defer { machines.nodes.resumeAll() }
      let errors = Collector<Errno?>()
      let writer = Thread { errors.add(failure { try System.write(one / Self.volume, "1234\n") }) }
      defer { writer.join() }
      var lines: [String?] = []
      // Some more reads see what the kernel keeps of it.
      var rest = 20
      while rest > 0 {
        lines.append(try reader.line())
        if !errors.all.isEmpty { rest -= 1 }
      }
      #expect(errors.all == [.io])
      #expect(Set(lines) == ["<0>"])
    }
  }

  /// Each call ends in time; settings are read on; what was refused is never there, and all mounts show the same of the rest.
  @Test func withoutAQuorumCallsEndInTimeAndLaterWork() async throws {
    try await withTwoClusterMounts(servers: 3) { machines, one, other in
      let nodes = machines.nodes
      try Self.prepare(one, other)
      let leader = try nodes.leader()
      let file = try OpenFile(one / Self.volume, O_WRONLY | O_TRUNC)
      try file.write("1\n")
      let gone = [0, 1, 2].filter { $0 != leader }
      for node in gone { nodes.kill(node) }
      var unknown: Errno?
      #expect(Self.elapsed { unknown = failure { try file.close() } } < Self.longest)
      #expect(unknown == .io)
      var errors: [Errno?] = []
      for _ in 0..<2 {
        #expect(
          Self.elapsed { errors.append(failure { _ = try System.text(one / Self.secret) }) } < Self.longest)
      }
      #expect(errors == [.io, .io])
      try one.shows("0\n", at: Self.volume, within: .zero)
      let refused = failure { _ = try OpenFile(one / "defaults/app/never", O_WRONLY | O_CREAT) }
      #expect(refused == .io)
      #expect(try one.status("cluster").first?.contains(" reconnecting since 20") == true)

      for node in gone { try nodes.start(node) }
      try nodes.waitUntilReady()
      Self.untilItWorks("1", at: Self.secret, one)
      #expect(try holds { try one.status("cluster").first?.contains(" connected") == true })
      try other.shows("1", at: Self.secret)
      Self.untilItWorks("1\n", at: "defaults/app/end", one)
      try other.shows("1\n", at: "defaults/app/end")
      for keyhole in [one, other] { #expect(!System.exists(keyhole / "defaults/app/never")) }
      let values = [try one.cat(Self.volume), try other.cat(Self.volume)]
      #expect(values == ["0\n", "0\n"] || values == ["1\n", "1\n"], "\(values)")
    }
  }
}
