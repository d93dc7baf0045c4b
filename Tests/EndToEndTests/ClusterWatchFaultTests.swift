import EtcdHarness
import Glibc
import Testing

/// Mounts that miss changes of other machines: how they find out what has changed, and say so.
@Suite(.timeLimit(.minutes(3))) struct ClusterWatchFaultTests {
  private static let secret = "keychain/generic/service/me/value"

  /// Two mounts; the second one reaches the servers through relays only.
  private static func withRelayedMount(
    _ body: (ClusterMachines, MountedKeyhole, MountedKeyhole, [Relay]) throws -> Void
  ) async throws {
    try await withClusterMachines {
      $0.count = 3
    } body: { machines in
      try machines.create()
      try machines.join()
      let relays = try machines.nodes.relays()
      defer { relays.stop() }
      let one = try machines.mount(machines.one)
      let other = try machines.mount(machines.other, endpoints: relays.map(\.endpoint))
      try one.check(
        """
        mkdir defaults/app; echo 1 > defaults/app/volume; echo 1 > defaults/app/size; echo 1 > defaults/app/name
        mkdir -p keychain/generic/service/me; printf 1 > \(secret)
        """)
      try other.shows("1\n", at: "defaults/app/name")
      try other.shows("1", at: secret)
      try body(machines, one, other, relays)
    }
  }

  /// Ends the connections that have lost bytes, which no network does without that.
  private static func reconnect(_ relays: [Relay]) {
    relays.set(.closed)
    relays.set(.open)
  }

  /// Reads lines until each of some words was in one, or one says that changes were left out.
  private static func expect(
    _ events: Watcher, have words: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    var missing = Set(words)
    do {
      try events.until { line in
        missing = missing.filter { !line.contains($0) }
        return missing.isEmpty || line.contains("\"overflow\"")
      }
    } catch {
      Issue.record("no event of \(missing): \(events.lines)", sourceLocation: sourceLocation)
    }
  }

  /// The servers have forgotten what was changed while the mount had no answer of them.
  @Test func changesThatWereCompactedAreFound() async throws {
    try await Self.withRelayedMount { machines, one, other, relays in
      let events = try other.events()
      relays.set(.silent)
      try one.check(
        """
        echo 2 > defaults/app/volume; rm defaults/app/size; echo 1 > defaults/app/new; echo 3 > defaults/app/volume
        mkdir defaults/late; echo 1 > defaults/late/key; printf 2 > \(Self.secret)
        mkdir keychain/generic/service/you; printf 1 > keychain/generic/service/you/value
        """)
      try machines.nodes.compact()
      Self.reconnect(relays)
      try other.shows("3\n", at: "defaults/app/volume", within: .seconds(40))
      #expect(holds { !System.exists(other / "defaults/app/size") })
      try other.shows("1\n", at: "defaults/app/new")
      try other.shows("1\n", at: "defaults/app/name")
      try other.shows("1\n", at: "defaults/late/key")
      try other.shows("2", at: Self.secret)
      try other.shows("1", at: "keychain/generic/service/you/value")
      try Self.expect(
        events,
        have: [
          #""modified","path":"defaults/app/volume""#, #""deleted","path":"defaults/app/size""#,
          #""created","path":"defaults/app/new""#, #""path":"defaults/late"#,
          #""path":"keychain/generic/service/me"#,
          #""path":"keychain/generic/service/you"#,
        ])
      // The watch goes on.
      try one.check("echo 4 > defaults/app/volume; printf 3 > \(Self.secret)")
      try other.shows("4\n", at: "defaults/app/volume")
      try other.shows("3", at: Self.secret)
      #expect(try other.status("cluster").first?.contains(" connected") == true)
    }
  }

  /// The keychain is quiet while settings change: its watch is behind a compaction without a change of its own.
  @Test func quietWatchGoesOnBehindACompaction() async throws {
    try await Self.withRelayedMount { machines, one, other, relays in
      for value in 2..<12 { try one.check("echo \(value) > defaults/app/volume") }
      try other.shows("11\n", at: "defaults/app/volume")
      let events = try other.events()
      relays.set(.closed)
      try machines.nodes.compact()
      relays.set(.open)
      #expect(try holds { try other.status("cluster").first?.contains(" connected") == true })
      try one.check("printf 2 > \(Self.secret)")
      try Self.expect(events, have: [#""path":"keychain/generic/service/me"#])
      try other.shows("2", at: Self.secret)
    }
  }

  /// A server that compacts the revision of a removal has no event of it any more for a watch from there on (etcd #19179): the sum over the
  /// settings does not fit, and all is read.
  @Test func removalWhoseEventIsLostIsFound() async throws {
    try await Self.withRelayedMount { machines, one, other, relays in
      var attempts = 0
      var isExact = false
      while !isExact, attempts < 5 {
        attempts += 1
        // The watch has everything up to the revision before.
        try one.check("echo 1 > defaults/app/size; echo \(attempts)0 > defaults/app/volume")
        try other.shows("\(attempts)0\n", at: "defaults/app/volume")
        let before = try machines.nodes.revision()
        let events = try other.events()
        relays.set(.silent)
        try one.check("rm defaults/app/size")
        let revision = try machines.nodes.revision()
        // Else something was stored that is no setting: the watch is behind the compaction then.
        isExact = revision == before + 1
        try machines.nodes.compact(revision)
        Self.reconnect(relays)
        #expect(holds(within: .seconds(40)) { !System.exists(other / "defaults/app/size") })
        try Self.expect(events, have: [#""deleted","path":"defaults/app/size""#])
        try one.check("echo \(attempts)1 > defaults/app/volume")
        try other.shows("\(attempts)1\n", at: "defaults/app/volume")
        #expect(try !other.world.sh("keyhole doctor").text.contains("something else than Keyhole"))
      }
      #expect(isExact)
    }
  }

  /// The mount's process stands still while others write: its first answer has what they have written.
  @Test func mountThatWasStoppedShowsNoSecretOfBefore() async throws {
    try await Self.withRelayedMount { machines, one, other, _ in
      let path = other / Self.secret
      let (apart, nodes) = (ThreadApart(), machines.nodes)
      for number in 2..<7 {
        // One that was opened before, and is closed later: on a value that is not there any more.
        let file = try OpenFile(path, O_WRONLY | O_TRUNC)
        let program = try other.program
        program.signal(SIGSTOP)
        defer { program.signal(SIGCONT) }
        try one.check("printf \(number) > \(Self.secret); echo \(number) > defaults/app/volume")
        if number == 4 { try apart.run { try nodes.compact() } }
        let answers = Collector<String>()
        let reader = Thread { answers.add((try? System.text(path)) ?? "none") }
        program.signal(SIGCONT)
        reader.join()
        #expect(answers.all == ["\(number)"])
        #expect(try other.cat(Self.secret) == "\(number)")
        try other.shows("\(number)\n", at: "defaults/app/volume")
        try file.write("other \(number)")
        try file.close()
        // The one that was stored last holds; what it has replaced is kept.
        for keyhole in [one, other] {
          try keyhole.shows("other \(number)", at: Self.secret)
          let history = try keyhole.sh("cat .keyhole/history/keychain/generic/service/me/*")
          #expect(history.text.contains("\(number)"), "\(history)")
        }
      }
    }
  }

  /// A server that leads stands still, and goes on when the others have another leader: it has no secret of before.
  @Test func serverThatWasStoppedShowsNoSecretOfBefore() async throws {
    try await withClusterMachines {
      $0.count = 3
    } body: { machines in
      let nodes = machines.nodes
      try machines.create()
      try machines.join()
      let old = try nodes.leader()
      let others = [0, 1, 2].filter { $0 != old }
      let one = try machines.mount(machines.one, endpoints: others.map { nodes.endpoints[$0] })
      let other = try machines.mount(machines.other, endpoints: [nodes.endpoints[old]])
      try one.check("mkdir -p keychain/generic/service/me; printf 1 > \(Self.secret)")
      try other.shows("1", at: Self.secret)
      nodes.pause(old)
      #expect(holds(within: .seconds(40)) { failure { try System.write(one / Self.secret, "2") } == nil })
      let answers = Collector<String>()
      let reader = Thread {
        repeat {
          answers.add((try? System.text(other / Self.secret)) ?? "none")
        } while answers.all.last == "none"
      }
      nodes.resume(old)
      reader.join()
      #expect(
        answers.all.allSatisfy { $0 == "none" } == false && Set(answers.all).isSubset(of: ["none", "2"]),
        "\(answers.all)")
    }
  }

  /// A leader that is cut off, and comes back behind: what a mount has shown it never takes back.
  @Test func settingsNeverGoBackAfterAPartitionAsRoot() async throws {
    let network = try TestNetwork(hosts: 3)
    try await withClusterMachines {
      ($0.count, $0.network) = (3, network)
    } body: { machines in
      let nodes = machines.nodes
      try machines.create()
      try machines.join()
      let old = try nodes.leader()
      let others = [0, 1, 2].filter { $0 != old }
      let relays = try nodes.relays()
      defer { relays.stop() }
      let one = try machines.mount(machines.one, endpoints: others.map { relays[$0].endpoint })
      // The one that is cut off, and another one.
      let other = try machines.mount(
        machines.other, endpoints: [relays[old].endpoint, relays[others[0]].endpoint])
      try one.check(
        "mkdir defaults/app; echo 1 > defaults/app/volume; mkdir -p keychain/generic/service/me; printf 1 > \(Self.secret)"
      )
      try other.shows("1\n", at: "defaults/app/volume")
      let values = Collector<Int>()
      let isOver = Collector<Bool>()
      onThreads(2) { thread in
        if thread == 1 {
          // Each value once.
          while isOver.all.isEmpty {
            guard let value = Int((try? other.cat("defaults/app/volume"))?.dropLast() ?? "") else { continue }
            if values.all.last != value { values.add(value) }
          }
          return
        }
        defer { isOver.add(true) }
        do {
          var value = 1
          for _ in 0..<2 {
            for node in others { try network.cut(old, node) }
            for _ in 0..<5 {
              value += 1
              let text = "\(value)\n"
              #expect(
                holds(within: .seconds(40)) {
                  failure { try System.write(one / "defaults/app/volume", text) } == nil
                })
              #expect(
                holds(within: .seconds(40)) {
                  failure { try System.write(one / Self.secret, "\(value)") } == nil
                })
            }
            #expect(holds(within: .seconds(40)) { values.all.last == value })
            for node in others { try network.join(old, node) }
            #expect(holds(within: .seconds(40)) { (try? other.cat(Self.secret)) == "\(value)" })
            value += 1
            let text = "\(value)\n"
            #expect(
              holds(within: .seconds(40)) {
                failure { try System.write(one / "defaults/app/volume", text) } == nil
              })
            #expect(holds(within: .seconds(40)) { values.all.last == value })
          }
        } catch { Issue.record(error) }
      }
      #expect(values.all == values.all.sorted() && values.all.count == Set(values.all).count, "\(values.all)")
    }
  }
}
