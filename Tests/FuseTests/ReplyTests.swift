import Glibc
import Platform
import Synchronization
import Testing

@testable import Fuse

extension AllTests {
  @Suite struct ReplyTests {
    /// Drops what it should answer.
    private final class DroppingFileSystem: MemoryFileSystem, @unchecked Sendable {
      override func open(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {}
    }

    @Test func droppedReplyIsAnInputOutputError() throws {
      try withMount(DroppingFileSystem("a")) { path, _ in
        #expect(throws: Errno.EIO) { try Client.open(path + "/a") }
      }
    }

    @Test func waitingOpensHoldUpNobody() throws {
      let names = (0..<50).map { "wait\($0)" }
      let fileSystem = WaitingFileSystem("free")
      for name in names { _ = fileSystem.add(Array(name.utf8)) }
      try withMount(fileSystem, threads: 2) { path, _ in
        let outcomes = names.map { name in openOnThread(path + "/" + name) }
        #expect(fileSystem.arrived.wait(times: 50))
        let contents = try Client.contents(path + "/free")
        #expect(contents.isEmpty)
        for (index, parked) in fileSystem.takeParked().enumerated() {
          parked.claim()?.succeed(FileHandle(rawValue: UInt64(index)))
        }
        for outcome in outcomes { _ = try #require(outcome.take()).get() }
      }
    }

    @Test func droppedParkedReplyIsAnInputOutputError() throws {
      let fileSystem = WaitingFileSystem("wait")
      try withMount(fileSystem) { path, _ in
        let outcome = openOnThread(path + "/wait")
        #expect(fileSystem.arrived.wait())
        _ = fileSystem.takeParked()
        #expect(outcome.take() == .failure(.EIO))
      }
      #expect(Interrupts.count == 0)
    }

    @Test func answerAfterUnmountReachesNobody() throws {
      let fileSystem = WaitingFileSystem("wait")
      let outcome = try withMount(fileSystem) { path, _ in
        let outcome = openOnThread(path + "/wait")
        #expect(fileSystem.arrived.wait())
        return outcome
      }
      #expect(outcome.take() != nil)
      for parked in fileSystem.takeParked() { parked.claim()?.succeed(FileHandle(rawValue: 1)) }
      #expect(Interrupts.count == 0)
    }

    @Test func readsOfSecretMemoryGoThroughTheBounceBuffer() throws {
      let fileSystem = try SecretFileSystem(byteCount: 1 << 20)
      try withMount(fileSystem) { path, _ in
        let descriptor = try Client.open(path + "/bounced")
        defer { try? Client.close(descriptor) }
        let bytes = try Client.read(descriptor, 1 << 20)
        #expect(bytes == [UInt8](repeating: 0x5A, count: 1 << 20))
      }
    }

    @Test func memoryThatTheKernelCanNotReadIsAnError() throws {
      let fileSystem = try SecretFileSystem(byteCount: 4096)
      try withMount(fileSystem) { path, _ in
        let descriptor = try Client.open(path + "/direct")
        defer { try? Client.close(descriptor) }
        #expect(throws: Errno.EIO) { try Client.read(descriptor, 4096) }
      }
    }

    @Test func writtenBytesAreZeroedWhenTheWriterGoesOn() throws {
      let fileSystem = RememberingFileSystem("a")
      try withMount(fileSystem) { path, _ in
        let descriptor = try Client.open(path + "/a", O_WRONLY)
        defer { try? Client.close(descriptor) }
        #expect(try Client.write(descriptor, [UInt8](repeating: 0x5A, count: 8192)) == 8192)
        #expect(fileSystem.tail == [UInt8](repeating: 0, count: 4096))
      }
    }

    @Test func writtenBytesAreZeroedWhenTheAnswerWaits() throws {
      let fileSystem = RememberingFileSystem("later")
      try withMount(fileSystem, threads: 1) { path, _ in
        let outcome = Outcome<Int?>()
        ThreadID.start {
          let descriptor = try? Client.open(path + "/later", O_WRONLY)
          let written = descriptor.flatMap { try? Client.write($0, [UInt8](repeating: 0x5A, count: 8192)) }
          // fusermount3, which unmounts for users, would inherit it: exec closes it, and the session, which waits for
          // fusermount3, can't answer the flush.
          if let descriptor { try? Client.close(descriptor) }
          outcome.leave(written)
        }
        #expect(fileSystem.arrived.wait())
        // With one thread, an answered request proves that the write's operation has returned.
        _ = try? Client.size(path + "/other")
        #expect(fileSystem.tail == [UInt8](repeating: 0, count: 4096))
        fileSystem.later.withLock { $0.take() }?.claim()?.succeed(written: 8192)
        #expect(outcome.take() == 8192)
      }
    }

    @Test func notificationMakesTheNextLookAskAgain() throws {
      let fileSystem = MemoryFileSystem("a")
      try withMount(fileSystem) { path, session in
        for _ in 0..<3 { _ = try Client.size(path + "/a") }
        let before = fileSystem.state.withLock { $0.getattrs }
        #expect(session.invalidator.invalidateAttributes(of: NodeID(rawValue: 2)) == nil)
        for _ in 0..<3 { _ = try Client.size(path + "/a") }
        #expect(fileSystem.state.withLock { $0.getattrs } == before + 1)
        #expect(session.invalidator.invalidateNode(NodeID(rawValue: 99)) == .ENOENT)
      }
    }

    @Test func prunedNodesAreForgottenUnlessTheyAreInUse() throws {
      let fileSystem = MemoryFileSystem("a", "b", "c")
      try withMount(fileSystem) { path, session in
        for name in ["/a", "/b", "/c"] { _ = try Client.size(path + name) }
        let open = try Client.open(path + "/b")
        let watch = inotify_init1(Int32(IN_CLOEXEC))
        #expect(unsafe inotify_add_watch(watch, path + "/c", UInt32(IN_ATTRIB)) >= 0)
        defer { close(watch) }
        let nodes = [2, 3, 4, 99].map { NodeID(rawValue: $0) }
        let error = session.invalidator.prune(nodes)
        guard error != .EINVAL else { return try Client.close(open) }
        #expect(error == nil)
        try Client.close(open)
        // Each look at it is a request, and the FORGET is among those that come before one of them.
        while fileSystem.state.withLock({ $0.forgotten[2] == nil }) { _ = try? Client.size(path + "/none") }
        #expect(fileSystem.state.withLock { $0.forgotten[3] == nil && $0.forgotten[4] == nil })
        let before = fileSystem.state.withLock { $0.lookups.count }
        _ = try Client.size(path + "/b")
        #expect(fileSystem.state.withLock { $0.lookups.count } == before)
      }
    }

    @Test func expiredAndDroppedNamesAreLookedUpAgain() throws {
      let fileSystem = MemoryFileSystem("a")
      try withMount(fileSystem) { path, session in
        let name = Array("a".utf8)
        _ = try Client.size(path + "/a")
        #expect(session.invalidator.expireEntry(name.span, in: .root) == nil)
        _ = try Client.size(path + "/a")
        #expect(session.invalidator.deleteEntry(name.span, of: NodeID(rawValue: 2), in: .root) == nil)
        _ = try Client.size(path + "/a")
        #expect(fileSystem.state.withLock { $0.lookups.filter { $0 == name }.count } == 3)
      }
    }
  }
}

/// Opens on a thread of its own, and leaves the descriptor, which is closed, or the error.
func openOnThread(_ path: String, thread: Outcome<pthread_t>? = nil) -> Outcome<Result<Int32, Errno>> {
  let outcome = Outcome<Result<Int32, Errno>>()
  ThreadID.start {
    unblockSignals()
    thread?.leave(pthread_self())
    let result = Result { () throws(Errno) in try Client.open(path) }
    if case .success(let descriptor) = result { try? Client.close(descriptor) }
    outcome.leave(result)
  }
  return outcome
}

/// Lets signals reach the calling thread, which has those of Dispatch's threads blocked: all.
private func unblockSignals() {
  var none = sigset_t()
  unsafe sigemptyset(&none)
  unsafe pthread_sigmask(SIG_SETMASK, &none, nil)
}
