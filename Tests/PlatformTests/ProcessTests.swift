import Glibc
import Platform
import Testing

/// Signals, children, and what the system lets this process have.
@Suite(.timeLimit(.minutes(1))) struct ProcessTests {
  /// The disposition is the whole process's: tests of it must not run beside each other.
  @Test func ignoredSignalHasItsEffectAgainAfterwards() {
    func disposition() -> Bool {
      var action = sigaction()
      unsafe sigaction(SIGUSR2, nil, &action)
      return unsafe unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
        == unsafeBitCast(SIG_IGN, to: Int.self)
    }
    #expect(!disposition())
    let value = Signals.ignoring(.user2) {
      raise(SIGUSR2)
      return disposition()
    }
    #expect(value)
    #expect(!disposition())
  }

  @Test(arguments: [("exit 3", false), ("kill -KILL $$", true)])
  func signalThatEndedAChildIsKnownBeforeItIsWaitedFor(script: String, bySignal: Bool) throws {
    let child = try Child(["/bin/sh", "-c", script])
    defer { child.end() }
    #expect(child.waitForEnd(seconds: 30))
    #expect(ProcessNumber.wasEndedBySignal(child.process) == bySignal)
    #expect(child.wait() == (bySignal ? 137 : 3))
  }

  @Test func processThatRunsOrIsNoChildWasNotEnded() throws {
    let child = try Child(["/bin/sh", "-c", "read line"], input: .piped)
    #expect(!ProcessNumber.wasEndedBySignal(child.process))
    child.end()
    #expect(!ProcessNumber.wasEndedBySignal(child.process))
    #expect(!ProcessNumber.wasEndedBySignal(CurrentProcess.number))
  }

  @Test func lockableMemoryHasALimit() {
    let limit = ResourceLimit.lockedMemory.values
    #expect(limit.highest >= limit.current)
  }

  @Test func accountIsFoundByNameAndNumber() throws {
    let root = try #require(Account("root"))
    #expect((root.user, root.group, root.name) == (0, 0, "root"))
    #expect(root.home.hasPrefix("/"))
    #expect(Account("0")?.name == "root" && Account(number: 0)?.name == "root")
    #expect(Account("no such user") == nil && Account("4294967294") == nil && Account("-1") == nil)
    #expect(Account.group("root") == 0 && Account.group("4711") == 4711 && Account.group("no group") == nil)
  }

  @Test func variableIsSetAndRemoved() {
    Environment.set("KEYHOLE_TEST", to: "größe")
    #expect(Environment.value("KEYHOLE_TEST") == "größe")
    #expect(Environment.remove("KEYHOLE_TEST") == "größe")
    #expect(Environment.value("KEYHOLE_TEST") == nil)
    #expect(Environment.remove("KEYHOLE_TEST") == nil)
  }

  @Test func nothingIsUnmountedWhereNothingIsMounted() throws {
    try withFolder { folder in
      let error: Errno = User.isRoot ? .EINVAL : .EPERM
      #expect(throws: error) { try KernelMount.remove(folder, lazily: true) }
    }
  }

  @Test func processThatExecutesAProgramLosesItsMemory() throws {
    let child = try Child(["/bin/sh", "-c", "echo a; read line; exec /bin/cat"], input: .piped)
    defer { child.end() }
    var byte: UInt8 = 0
    func readLine() -> Bool { unsafe read(child.output, &byte, 1) == 1 && read(child.output, &byte, 1) == 1 }
    try #require(readLine())
    let shell = try #require(ObservedProcess(child.process))
    #expect(shell.hasItsMemory && shell.executable == FileID("/bin/sh") && shell.sharesMounts)
    // cat(1) prints the second line only.
    try #require(unsafe write(child.input, "b\nc\n", 4) == 4 && readLine())
    #expect(!shell.hasItsMemory && shell.executable == FileID("/bin/cat"))
    let cat = try #require(ObservedProcess(child.process))
    #expect(cat.hasItsMemory && cat.executable == FileID("/bin/cat"))
    child.end()
    #expect(!cat.hasItsMemory && cat.executable == nil && !cat.sharesMounts)
    #expect(ObservedProcess(child.process) == nil)
  }

  @Test func processWithoutMemoryIsNotObserved() {
    // A thread of the kernel.
    #expect(ObservedProcess(2) == nil)
    #expect(ObservedProcess(0) == nil && ObservedProcess(-1) == nil)
  }
}
