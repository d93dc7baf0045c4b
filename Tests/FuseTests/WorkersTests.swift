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

      override func open(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {
        if isBlocking(node) {
          arrived.happen()
          if !gate.wait() { Issue.record("others were held up until the blocked one gave up") }
        }
        super.open(node, flags: flags, request: request, reply: reply)
      }

      private func isBlocking(_ node: NodeID) -> Bool {
        state.withLock { state in
          state.names.contains { $0.value == node.rawValue && $0.key.starts(with: Array("block".utf8)) }
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
        let workers = try #require(session.state.withLock { $0.workers })
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
