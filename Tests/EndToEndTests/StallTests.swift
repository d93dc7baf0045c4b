import Glibc
import Synchronization
import Testing

/// While another process keeps a suite's lock, only those wait who change that suite.
@Suite(.timeLimit(.minutes(2)), .serialized) struct StallTests {
  private typealias Flock = @convention(c) (Int32, Int32) -> Int32

  /// Holds flock(2) on a file, as another process that uses the suite does.
  private func lock(_ path: String) throws -> OpenFile {
    let flock = System.function("flock", as: Flock.self)
    let file = try OpenFile(path, O_RDONLY)
    _ = try System.check { flock(file.descriptor, LOCK_EX) }
    return file
  }

  /// Runs `body` while a writer's close(2) waits for the lock of a suite; then the lock is given back.
  private func whileWaiting(_ keyhole: MountedKeyhole, _ body: () throws -> Void) throws {
    try keyhole.check(
      "mkdir defaults/s defaults/other; echo old | tee defaults/s/k > defaults/other/k; sync defaults/s")
    let holder = try lock(keyhole.world.config + "/s.plist")
    let writer = BlockedWriter(keyhole / "defaults/s/k")
    #expect(holds { writer.isBlocked })
    let result = Result { try body() }
    #expect(writer.isBlocked, "the lock was not waited for")
    try holder.close()
    #expect(writer.finish() == nil)
    try result.get()
    #expect(try keyhole.cat("defaults/s/k") == "new\n")
  }

  @Test func twentyLooksAtTheKeyAnswerAtOnce() async throws {
    try await withKeyhole { keyhole in
      try whileWaiting(keyhole) {
        let path = keyhole / "defaults/s/k"
        let answers = Atomic(0)
        let threads = (0..<20).map { _ in
          Thread {
            if (try? System.status(path)) != nil { answers.add(1, ordering: .sequentiallyConsistent) }
          }
        }
        for thread in threads { thread.join() }
        let count = answers.load(ordering: .sequentiallyConsistent)
        #expect(count == 20)
        // So do all other operations on it but those that change the suite, and everything else.
        #expect(try keyhole.size("defaults/s/k") == 4)
        #expect(try keyhole.cat("defaults/s/k") == "old\n")
        #expect(try System.attribute(path, "user.keyhole.type") == "string")
        try keyhole.check(
          """
          ls defaults/s; cat defaults/s/k; echo 2 > defaults/other/k; cat defaults/other/k; mkdir defaults/third
          mkdir -p keychain/generic/s/a; echo secret > keychain/generic/s/a/value; cat keychain/generic/s/a/value
          """, prints: "k\nold\n2\nsecret")
      }
    }
  }

  /// Values that a program without locks writes meanwhile are seen: a read of the suite must not wait for its writer.
  @Test func outsideChangeIsSeenMeanwhile() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/s; echo old > defaults/s/k; sync defaults/s")
      let path = keyhole.world.config + "/s.plist"
      let holder = try lock(path)
      let writer = BlockedWriter(keyhole / "defaults/s/k")
      #expect(holds { writer.isBlocked })
      // In place, so that the lock stays where it is.
      let list = "<dict><key>l</key><string>outside</string></dict>"
      try System.write(path, "<plist version=\"1.0\">\(list)</plist>\n")
      #expect(holds { (try? keyhole.cat("defaults/s/l")) == "outside\n" })
      #expect(try System.names(keyhole / "defaults") == ["s"])
      #expect(writer.isBlocked)
      try holder.close()
      #expect(writer.finish() == nil)
      try keyhole.check("cat defaults/s/l defaults/s/k", prints: "outside\nnew\n")
    }
  }

  /// The vault's transaction, as another process holds it: readers of secrets may wait with its writers, all else not.
  @Test func otherTransactionOfTheVaultDelaysTheVaultOnly() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/s; for n in 1 2; do mkdir -p keychain/generic/s/$n; echo old > keychain/generic/s/$n/value; done"
      )
      let script = """
        import sqlite3, sys
        vault = sqlite3.connect(sys.argv[1], isolation_level=None)
        vault.execute("BEGIN IMMEDIATE")
        print("ready", flush=True)
        sys.stdin.read()
        """
      let holder = try Program(
        ["/usr/bin/python3", "-c", script, keyhole.world.data + "/keyhole/vault.db"],
        environment: keyhole.world.environment, directory: keyhole.world.outside)
      defer { holder.kill() }
      #expect(try holder.line() == "ready")
      let writer = BlockedWriter(keyhole / "keychain/generic/s/1/value")
      #expect(holds { writer.isBlocked })
      let path = keyhole / "keychain/generic/s/2/value"
      let readers = (0..<20).map { _ in Thread { _ = try? System.read(path) } }
      for _ in 0..<20 { _ = try System.status(keyhole / "keychain/generic/s/1/value") }
      try keyhole.check("ls keychain/generic/s; echo 1 > defaults/s/k; cat defaults/s/k", prints: "1\n2\n1\n")
      #expect(writer.isBlocked, "the transaction was not waited for")
      holder.kill()
      #expect(writer.finish() == nil)
      for reader in readers { reader.join() }
      #expect(try keyhole.cat("keychain/generic/s/1/value") == "new")
    }
  }

  @Test func manyWritersThatWaitDelayNothingElse() async throws {
    try await withKeyhole { keyhole in
      var writers: [BlockedWriter] = []
      try whileWaiting(keyhole) {
        let path = keyhole / "defaults/s"
        writers = (0..<60).map { BlockedWriter("\(path)/k\($0)") }
        #expect(holds { writers.allSatisfy(\.isBlocked) })
        try keyhole.check("echo 3 > defaults/other/k; cat defaults/other/k", prints: "3\n")
      }
      #expect(writers.allSatisfy { $0.finish() == nil })
    }
  }
}

/// A thread that writes a key and closes it.
private final class BlockedWriter: Sendable {
  private let state: State
  private let thread: Thread

  private final class State: Sendable {
    let number = Atomic<Int32>(0)
    let error = Mutex<Errno?>(nil)
    let isDone = Atomic(false)
  }

  init(_ path: String) {
    let state = State()
    self.state = state
    thread = Thread {
      do throws(Errno) {
        let file = try OpenFile(path, O_WRONLY | O_CREAT | O_TRUNC)
        try file.write("new\n")
        state.number.store(Self.threadNumber, ordering: .sequentiallyConsistent)
        try file.close()
      } catch {
        state.error.withLock { $0 = error }
      }
      state.isDone.store(true, ordering: .sequentiallyConsistent)
    }
  }

  private static var threadNumber: Int32 {
    let gettid = System.function("gettid", as: (@convention(c) () -> Int32).self)
    return gettid()
  }

  /// Whether its close(2) waits for an answer: the thread sleeps (field 3 of proc(5)'s stat).
  var isBlocked: Bool {
    let number = state.number.load(ordering: .sequentiallyConsistent)
    guard number != 0, !state.isDone.load(ordering: .sequentiallyConsistent) else { return false }
    guard let stat = try? System.text("/proc/self/task/\(number)/stat") else { return false }
    let fields = stat[(stat.lastIndex(of: ")") ?? stat.startIndex)...].split(separator: " ")
    return fields.count > 1 && ["S", "D"].contains(fields[1])
  }

  /// Waits for its end; its error.
  func finish() -> Errno? {
    thread.join()
    return state.error.withLock { $0 }
  }
}
