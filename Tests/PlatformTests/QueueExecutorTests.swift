import Dispatch
import Model
import Synchronization
import Testing

@testable import Platform

/// An actor as the stores are: entered by tasks, and by plain threads.
private actor Counter {
  private nonisolated let executor = QueueExecutor(label: "keyhole.test")
  private(set) var count = 0
  private(set) var isInside = false

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  func step() {
    precondition(!isInside, "two are inside")
    isInside = true
    count += 1
    isInside = false
  }

  nonisolated func stepNow() {
    executor.run { assumeIsolated { $0.step() } }
  }

  nonisolated func fail() throws(StoreError) {
    try executor.run { () throws(StoreError) in throw .noSpace }
  }

  nonisolated func value() -> Int {
    executor.run { assumeIsolated { $0.count } }
  }
}

@Suite(.timeLimit(.minutes(1))) struct QueueExecutorTests {
  @Test func threadsAndTasksAreInsideOneAtATime() async {
    let counter = Counter()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<50 {
        group.addTask { for _ in 0..<20 { await counter.step() } }
        group.addTask { for _ in 0..<20 { counter.stepNow() } }
      }
    }
    #expect(counter.value() == 2000)
    #expect(await counter.count == 2000)
  }

  @Test func plainThreadsEnter() {
    let counter = Counter()
    DispatchQueue.concurrentPerform(iterations: 4) { _ in
      for _ in 0..<250 { counter.stepNow() }
    }
    #expect(counter.value() == 1000)
  }

  @Test func errorsComeOutAsTheyAre() {
    #expect(throws: StoreError.noSpace) { try Counter().fail() }
  }
}
