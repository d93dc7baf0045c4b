import Glibc
import Platform
import Synchronization
import Testing

@testable import Fuse

/// Replies if no other thread has; returns whether it did.
private func answer(_ parked: Parked<OpenAnswer>) -> Bool {
  guard let reply = parked.claim() else { return false }
  reply.succeed(FileHandle(rawValue: 1))
  return true
}

extension AllTests {
  @Suite struct InterruptTests {
    init() {
      var action = sigaction()
      unsafe action.__sigaction_handler.sa_handler = { _ in }
      // Without SA_RESTART: the system call ends with EINTR.
      unsafe sigaction(SIGUSR1, &action, nil)
    }

    @Test func signalReachesTheHandlerAndTheCallerGoesOn() throws {
      let fileSystem = WaitingFileSystem("wait")
      try withMount(fileSystem) { path, _ in
        let thread = Outcome<pthread_t>()
        let outcome = openOnThread(path + "/wait", thread: thread)
        #expect(fileSystem.arrived.wait())
        pthread_kill(try #require(thread.take()), SIGUSR1)
        #expect(fileSystem.interrupted.wait())
        #expect(outcome.take() == .failure(.EINTR))
        // The deadline comes too late: there is nothing left to claim.
        for parked in fileSystem.takeParked() {
          if parked.claim() != nil { Issue.record("claimed twice") }
        }
      }
      #expect(Interrupts.count == 0)
    }

    @Test func killedCallerIsFree() throws {
      let fileSystem = WaitingFileSystem("wait")
      try withMount(fileSystem) { path, _ in
        let process = try start(["cat", path + "/wait"])
        #expect(fileSystem.arrived.wait())
        kill(process, SIGKILL)
        #expect(fileSystem.interrupted.wait())
        var status: Int32 = 0
        #expect(unsafe waitpid(process, &status, 0) == process)
        #expect(status & 0x7F == SIGKILL)
      }
    }

    @Test func interruptAndAnswerAtTheSameMoment() throws {
      let fileSystem = WaitingFileSystem("wait")
      let answered = Atomic<Int>(0)
      let rounds = 1000
      try withMount(fileSystem) { path, _ in
        for round in 0..<rounds {
          let thread = Outcome<pthread_t>()
          let outcome = openOnThread(path + "/wait", thread: thread)
          let caller = try #require(thread.take())
          try #require(fileSystem.arrived.wait())
          let parked = fileSystem.takeParked()
          let start = Event()
          let ended = Event()
          // By turns, so that each side wins at times.
          if round.isMultiple(of: 2) { pthread_kill(caller, SIGUSR1) }
          ThreadID.start {
            start.happen()
            for parked in parked where answer(parked) { answered.add(1, ordering: .relaxed) }
            ended.happen()
          }
          try #require(start.wait())
          if !round.isMultiple(of: 2) { pthread_kill(caller, SIGUSR1) }
          try #require(ended.wait())
          _ = try #require(outcome.take())
        }
      }
      let interrupted = fileSystem.interrupts.load(ordering: .relaxed)
      #expect(answered.load(ordering: .relaxed) + interrupted == rounds)
      #expect(interrupted > 0 && interrupted < rounds, "one side never won, so nothing was tried")
      #expect(Interrupts.count == 0)
    }

    private func start(_ words: [String]) throws -> pid_t {
      var arguments = unsafe words.map { unsafe strdup($0) } + [nil]
      defer { unsafe arguments.forEach { unsafe free($0) } }
      var process: pid_t = 0
      // SAFETY: the list is terminated, and its strings are alive until the call returns.
      let status = unsafe posix_spawnp(&process, words[0], nil, nil, &arguments, environ)
      try #require(status == 0)
      return process
    }
  }
}
