import Dispatch
import Glibc
import Platform
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct WaitingThreadsTests {
  /// Calls that wait for each other have a thread each, whatever threads of earlier calls there are.
  @Test func eachCallThatRunsHasAThread() {
    let threads = WaitingThreads()
    for _ in 0..<20 {
      let (arrived, go) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      for _ in 0..<8 {
        #expect(
          threads.run {
            arrived.signal()
            go.wait()
          })
      }
      for _ in 0..<8 { arrived.wait() }
      for _ in 0..<8 { go.signal() }
      threads.finish()
    }
  }

  private static var thread: String {
    guard let path = unsafe realpath("/proc/thread-self", nil) else { return "" }
    defer { unsafe free(path) }
    return unsafe String(cString: path)
  }

  @Test func aThreadIsUsedAgain() {
    let threads = WaitingThreads()
    let seen = Mutex<Set<String>>([])
    for _ in 0..<50 {
      let done = DispatchSemaphore(value: 0)
      _ = threads.run {
        seen.withLock { _ = $0.insert(Self.thread) }
        done.signal()
      }
      done.wait()
      threads.finish()
    }
    #expect(seen.withLock { $0.count } < 50)
  }

  private final class Held: Sendable {}

  /// A thread that waits for more calls has nothing of those before, the one that it was started for too: it may have held a secret.
  @Test func aCallIsGoneWhenItIsDone() {
    let threads = WaitingThreads()
    var held: Held? = Held()
    weak let watched = held
    let isOver = DispatchSemaphore(value: 0)
    if let held {
      #expect(
        threads.run {
          _ = held
          isOver.signal()
        })
    }
    held = nil
    isOver.wait()
    // Further calls keep the thread.
    let end = ContinuousClock.now + .seconds(10)
    while watched != nil, end > .now {
      let done = DispatchSemaphore(value: 0)
      #expect(threads.run { done.signal() })
      done.wait()
    }
    #expect(watched == nil)
  }

  /// Many callers at once, some of whose calls begin others: none is lost.
  @Test func noCallIsLost() {
    let threads = WaitingThreads()
    let count = Atomic(0)
    let group = DispatchGroup()
    for _ in 0..<8 {
      group.enter()
      _ = ThreadID.start {
        for _ in 0..<500 {
          while !threads.run({ count.add(1, ordering: .relaxed) }) {}
        }
        group.leave()
      }
    }
    group.wait()
    threads.finish()
    #expect(count.load(ordering: .relaxed) == 4000)
  }

  @Test func tooManyAreRefused() {
    let threads = WaitingThreads()
    let go = DispatchSemaphore(value: 0)
    let taken = (0..<WaitingThreads.limit + 5).filter { _ in threads.run { go.wait() } }.count
    #expect(taken == WaitingThreads.limit)
    for _ in 0..<taken { go.signal() }
    threads.finish()
    #expect(threads.run {})
    threads.finish()
  }
}
