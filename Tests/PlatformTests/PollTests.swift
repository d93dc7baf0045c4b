import Glibc
import Platform
import Testing

@Suite(.timeLimit(.minutes(1))) struct PollTests {
  @Test func readyOnesAreNamed() throws {
    let one = try PipeEnds()
    let other = try PipeEnds()
    let entries = [
      Poll.Entry(one.reader.number), Poll.Entry(nil), Poll.Entry(other.reader.number),
      Poll.Entry(one.writer.number, .output),
    ]
    #expect(try Poll.wait(for: entries, until: nil) == [false, false, false, true])
    try other.writer.write([1])
    #expect(try Poll.wait(for: entries, until: nil) == [false, false, true, true])
    #expect(Poll.isReady(other.reader.number) && !Poll.isReady(one.reader.number))
  }

  @Test func noneIsReadyByThen() throws {
    let pipe = try PipeEnds()
    let start = ContinuousClock.now
    #expect(try Poll.wait(for: [Poll.Entry(pipe.reader.number)], until: start + .milliseconds(30)) == [false])
    #expect(ContinuousClock.now - start >= .milliseconds(30))
  }

  /// A peer that always has another byte must not get more time than its message may take.
  @Test func momentThatHasPassedIsLateForOneThatIsReady() throws {
    let pipe = try PipeEnds()
    try pipe.writer.write([1])
    #expect(try !Poll.wait(for: pipe.reader.number, until: .now - .seconds(1)))
    #expect(try Poll.wait(for: [Poll.Entry(pipe.reader.number)], until: .now - .seconds(1)) == [true])
  }

  @Test func closedOtherEndIsReady() throws {
    let reader = try PipeEnds().readerOnly()
    #expect(try Poll.wait(for: reader.number, until: nil))
    // No such descriptor.
    #expect(try Poll.wait(for: 1_000_000, until: nil))
  }

  /// Sent to the thread that waits: it goes on waiting, no longer than before.
  @Test func signalDoesNotEndIt() throws {
    signal(SIGUSR2) { _ in }
    let (pipe, isDone) = (try WakePipe(), Promise<Bool>())
    let (threads, thread) = (WaitingThreads(), Promise<pthread_t>())
    let isTaken = threads.run {
      thread.fulfill(pthread_self())
      isDone.fulfill(pipe.wait(until: .now + .milliseconds(200)))
    }
    #expect(isTaken)
    let waiting = thread.wait()
    while isDone.wait(within: .zero) == nil { pthread_kill(waiting, SIGUSR2) }
    #expect(isDone.wait() == false)
    threads.finish()
  }
}

@Suite(.timeLimit(.minutes(1))) struct WakePipeTests {
  @Test func wakingMakesItReadableUntilItIsCleared() throws {
    let pipe = try WakePipe()
    #expect(!pipe.wait(until: .now))
    for _ in 0..<100_000 { pipe.wake() }
    #expect(pipe.wait(until: nil))
    pipe.clear()
    #expect(!pipe.wait(until: .now))
    pipe.wake()
    #expect(pipe.wait(until: nil))
  }

  @Test func anotherThreadWakesIt() throws {
    let pipe = try WakePipe()
    let threads = WaitingThreads()
    #expect(threads.run { pipe.wake() })
    #expect(pipe.wait(until: nil))
    threads.finish()
  }
}

@Suite(.timeLimit(.minutes(1))) struct PromiseTests {
  @Test func everyThreadThatWaitsGetsTheFirstValue() {
    let (promise, threads) = (Promise<Int>(), WaitingThreads())
    let seen = (0..<4).map { _ in Promise<Int>() }
    for seen in seen { #expect(threads.run { seen.fulfill(promise.wait()) }) }
    promise.fulfill(1)
    promise.fulfill(2)
    #expect(seen.map { $0.wait() } == [1, 1, 1, 1])
    #expect(promise.wait(within: .zero) == 1)
    threads.finish()
  }

  @Test func lateValueIsNone() {
    let (gate, promise) = (Promise<Void>(), Promise<Int>())
    #expect(promise.wait(within: .milliseconds(10)) == nil)
    #expect(Background.result(within: .milliseconds(10)) { gate.wait() } == nil)
    gate.fulfill(())
    #expect(Background.result(within: .seconds(10)) { 3 } == 3)
  }
}
