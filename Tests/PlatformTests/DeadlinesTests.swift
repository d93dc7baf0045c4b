import Dispatch
import Synchronization
import Testing

@testable import Platform

@Suite(.timeLimit(.minutes(1))) struct DeadlinesTests {
  private let deadlines = Deadlines()
  private let order = Order()

  private final class Order: Sendable {
    let numbers = Mutex<[Int]>([])
    let done = DispatchSemaphore(value: 0)

    func note(_ number: Int) {
      numbers.withLock { $0.append(number) }
      done.signal()
    }
  }

  @Test func actionsComeInTheOrderOfTheirTimes() {
    for (number, delay) in [(3, 90), (1, 30), (2, 60), (0, 0)] {
      deadlines.run(after: .milliseconds(delay)) { [order] in order.note(number) }
    }
    for _ in 0..<4 { order.done.wait() }
    #expect(order.numbers.withLock { $0 } == [0, 1, 2, 3])
  }

  @Test func noneComesTooEarly() {
    let start = ContinuousClock.now
    deadlines.run(after: .milliseconds(50)) { [order] in order.note(0) }
    order.done.wait()
    #expect(ContinuousClock.now - start >= .milliseconds(50))
  }

  /// The thread has ended meanwhile.
  @Test func theNextOneComesToo() {
    for number in 0..<3 {
      deadlines.run(after: .milliseconds(1)) { [order] in order.note(number) }
      order.done.wait()
    }
    #expect(order.numbers.withLock { $0 } == [0, 1, 2])
  }

  @Test func actionMayAddAnother() {
    deadlines.run(after: .zero) { [deadlines, order] in
      deadlines.run(after: .zero) { order.note(1) }
      order.note(0)
    }
    for _ in 0..<2 { order.done.wait() }
    #expect(order.numbers.withLock { $0 } == [0, 1])
  }
}
