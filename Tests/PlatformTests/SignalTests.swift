import Glibc
import Platform
import Testing

@Suite(.timeLimit(.minutes(1))) struct SignalTests {
  /// On a thread of its own, whose mask ends with it.
  @Test func blockedSignalWaitsUntilItIsRead() throws {
    let signals = Promise<[Signals.Signal?]>()
    let threads = WaitingThreads()
    let isTaken = threads.run {
      Signals.block([.hangUp])
      guard let descriptor = try? SignalDescriptor([.hangUp]) else { return signals.fulfill([]) }
      let before = descriptor.next()
      pthread_kill(pthread_self(), SIGHUP)
      let isReady = (try? Poll.wait(for: descriptor.number, until: .now + .seconds(10))) == true
      signals.fulfill([before, isReady ? descriptor.next() : nil, descriptor.next()])
    }
    #expect(isTaken)
    #expect(signals.wait() == [nil, .hangUp, nil])
    threads.finish()
  }

  @Test func programKeepsBlockedSignalsOnlyWhereItIsToldTo() throws {
    let masks = Promise<[String]>()
    let threads = WaitingThreads()
    let isTaken = threads.run {
      Signals.block([.hangUp])
      masks.fulfill([false, true].map { (try? Self.blockedSignals(keepingSignalMask: $0)) ?? "" })
    }
    #expect(isTaken)
    // SIGHUP is 1.
    #expect(masks.wait().map { UInt64($0, radix: 16).map { $0 & 1 } } == [0, 1])
    threads.finish()
  }

  /// The blocked signals of a program, as its status has them.
  private static func blockedSignals(keepingSignalMask keeps: Bool) throws -> String {
    let pipe = try PipeEnds()
    let process = try spawn(
      "grep", ["grep", "SigBlk", "/proc/self/status"], streams: [.descriptor(pipe.writer.number, as: 1)],
      keepingSignalMask: keeps)
    let text = String(decoding: try pipe.readerOnly().readToEnd(limit: 1000), as: UTF8.self)
    waitForChild(process)
    return text.split(whereSeparator: \.isWhitespace).last.map(String.init) ?? ""
  }

  @Test func programInASessionOfItsOwn() throws {
    for (group, same) in [(SpawnGroup.ours, true), (.own, false), (.ownSession, false)] {
      let pipe = try PipeEnds()
      let script = "exec 2>/dev/null; ps -o pgid= -o sess= -p $$"
      let process = try spawn(
        "/bin/sh", ["/bin/sh", "-c", script], streams: [.descriptor(pipe.writer.number, as: 1)], in: group)
      let text = String(decoding: try pipe.readerOnly().readToEnd(limit: 1000), as: UTF8.self)
      waitForChild(process)
      let numbers = text.split(whereSeparator: \.isWhitespace).compactMap { Int32($0) }
      try #require(numbers.count == 2)
      #expect((numbers[0] == getpgrp()) == same, "\(group)")
      #expect((numbers[1] == process) == (group == .ownSession), "\(group)")
    }
  }

  @Test func outputOfAProgramHasALimitOfTimeAndLength() throws {
    let hello = try Child(["sh", "-c", "cat; echo hello; echo no >&2"], input: .nothing, errors: .discarded)
    #expect(hello.readOutput(limit: 6, until: .now + .seconds(20)) == Array("hello\n".utf8))
    hello.end()
    let long = try Child(["echo", "hello"], input: .nothing)
    #expect(long.readOutput(limit: 5, until: .now + .seconds(20)) == nil)
    long.end()
    let silent = try Child(["sleep", "1000"], input: .nothing)
    #expect(silent.readOutput(limit: 5, until: .now + .milliseconds(10)) == nil)
    silent.end()
  }

  @Test func programThatHasEndedAndIsNotWaitedForIsAZombie() throws {
    let child = try Child(["true"], input: .nothing)
    #expect(child.waitForEnd(seconds: 20))
    #expect(ProcessFiles(child.process).status?.state == "Z")
    #expect(ProcessFiles(child.process).isWithoutMemory)
    #expect(!ProcessFiles(CurrentProcess.number).isWithoutMemory && !ProcessFiles(-1).isWithoutMemory)
    #expect(!ProcessNumber.isTaken(-1) && ProcessNumber.isTaken(child.process))
    child.end()
    #expect(ProcessFiles(child.process).status == nil)
  }
}
