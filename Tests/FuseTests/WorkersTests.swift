import Dispatch
import Glibc
import Synchronization
import Testing

@testable import Fuse

extension AllTests {
  @Suite struct WorkersTests {
    /// Opens of names that begin with `block` hold their thread until the gate opens.
    private final class BlockingFileSystem: MemoryFileSystem, @unchecked Sendable {
      let arrived = Event()
      let gate = Event()
      /// Whether those with `over` in their names have handed over before.
      let handed = Mutex<[Bool]>([])

      override func open(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {
        if isNamed(node, "block-over") || isNamed(node, "over") {
          let isDone = reply.reading.handOver()
          handed.withLock { $0.append(isDone) }
        }
        if isBlocking(node) {
          arrived.happen()
          if !gate.wait() { Issue.record("others were held up until the blocked one gave up") }
        }
        super.open(node, flags: flags, request: request, reply: reply)
      }

      private func isBlocking(_ node: NodeID) -> Bool { isNamed(node, "block") }

      private func isNamed(_ node: NodeID, _ beginning: String) -> Bool {
        state.withLock { state in
          state.names.contains { $0.value == node.rawValue && $0.key.starts(with: Array(beginning.utf8)) }
        }
      }
    }

    @Test func blockedThreadsHoldUpTheOthersForAMoment() throws {
      let names = (0..<5).map { "block\($0)" }
      let fileSystem = BlockingFileSystem("free")
      for name in names { _ = fileSystem.add(Array(name.utf8)) }
      try withMount(fileSystem, threads: 6) { path, _ in
        for _ in 0..<3 {
          let outcomes = names.map { openOnThread(path + "/" + $0) }
          #expect(fileSystem.arrived.wait(times: 5))
          let contents = try Client.contents(path + "/free")
          #expect(contents.isEmpty)
          for _ in names { fileSystem.gate.happen() }
          for outcome in outcomes { _ = try #require(outcome.take()).get() }
        }
      }
    }

    @Test func sleepingSpareIsWokenByTheNextRequest() throws {
      let fileSystem = BlockingFileSystem("free", "block")
      try withMount(fileSystem, threads: 2) { path, session in
        let workers = try #require(session.connection.workers)
        for _ in 0..<5 {
          #expect(becomesTrue { workers.isAsleep.load(ordering: .relaxed) })
          let outcome = openOnThread(path + "/block")
          #expect(fileSystem.arrived.wait())
          let contents = try Client.contents(path + "/free")
          #expect(contents.isEmpty)
          fileSystem.gate.happen()
          _ = try #require(outcome.take()).get()
        }
      }
    }

    /// With two threads and no further one: the one that reads on is the spare of before, and the one that has handed over is its spare afterwards.
    @Test func readerThatHandsOverIsTheNextSpare() throws {
      let fileSystem = BlockingFileSystem("free", "block-over")
      try withMount(fileSystem, threads: 2) { path, session in
        let workers = try #require(session.connection.workers)
        for round in 0..<20 {
          let reader = workers.state.withLock { $0.reader }
          if round.isMultiple(of: 4) { #expect(becomesTrue { workers.isAsleep.load(ordering: .relaxed) }) }
          let outcome = openOnThread(path + "/block-over")
          #expect(fileSystem.arrived.wait())
          #expect(workers.state.withLock { $0.reader !== reader && $0.spare == nil && $0.count == 2 })
          let isAlone = workers.isAlone.load(ordering: .relaxed)
          #expect(isAlone)
          let contents = try Client.contents(path + "/free")
          #expect(contents.isEmpty)
          fileSystem.gate.happen()
          _ = try #require(outcome.take()).get()
          #expect(becomesTrue { workers.state.withLock { $0.spare === reader } })
        }
        #expect(fileSystem.handed.withLock { $0 } == Array(repeating: true, count: 20))
      }
    }

    /// The one that has handed over may be the spare before the one that is to read has woken: each has its own signal.
    @Test func sleepingSpareTakesOver() throws {
      let fileSystem = BlockingFileSystem("free", "over")
      try withMount(fileSystem, threads: 2) { path, session in
        let workers = try #require(session.connection.workers)
        for _ in 0..<20 {
          #expect(becomesTrue { workers.isAsleep.load(ordering: .relaxed) })
          for _ in 0..<3 {
            let contents = try Client.contents(path + "/over")
            #expect(contents.isEmpty)
          }
          let contents = try Client.contents(path + "/free")
          #expect(contents.isEmpty)
        }
        #expect(fileSystem.handed.withLock { $0.contains(true) })
      }
    }

    /// A request that blocks without handing over, right after one that has handed over: there is another spare for it. The threads stay three where no more
    /// are needed at once.
    @Test func readerThatGoesOnIsWatched() throws {
      let fileSystem = BlockingFileSystem("free", "block-over1", "block-over2", "block")
      try withMount(fileSystem, threads: 8) { path, session in
        let workers = try #require(session.connection.workers)
        for names in Array(repeating: ["/block-over1"], count: 5) + [
          ["/block-over1", "/block"], ["/block-over1", "/block-over2", "/block"],
          ["/block", "/block-over1"],
        ] {
          let outcomes = names.map { name in
            let outcome = openOnThread(path + name)
            #expect(fileSystem.arrived.wait())
            return outcome
          }
          let contents = try Client.contents(path + "/free")
          #expect(contents.isEmpty)
          for _ in outcomes { fileSystem.gate.happen() }
          for outcome in outcomes { _ = try #require(outcome.take()).get() }
          #expect(becomesTrue { workers.state.withLock { $0.count <= 3 } })
        }
        #expect(fileSystem.handed.withLock { $0.contains(true) })
      }
    }

    /// From another thread than the one that has read the request.
    @Test func onlyTheReaderHandsOver() throws {
      try withMount(MemoryFileSystem("free"), threads: 2) { path, session in
        let workers = try #require(session.connection.workers)
        #expect(!workers.handOver())
        let contents = try Client.contents(path + "/free")
        #expect(contents.isEmpty)
      }
    }

    @Test func manySessionsStartAndEnd() throws {
      for round in 0..<300 {
        try withMount(MemoryFileSystem("a"), threads: 1 + round % 3) { path, _ in
          let size = try Client.size(path + "/a")
          #expect(size == 0)
        }
      }
    }

    /// Looks again and again, for ten seconds at most.
    private func becomesTrue(_ condition: () -> Bool) -> Bool {
      let deadline = DispatchTime.now() + .seconds(10)
      while !condition() {
        if DispatchTime.now() > deadline { return false }
        sched_yield()
      }
      return true
    }
  }
}
