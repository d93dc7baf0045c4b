import Dispatch
import Platform
import Synchronization
import Testing

@testable import Mount

/// Which operations wait on the thread that has read their request.
@Suite struct WaitingOperationsTests {
  private let waiting = WaitingOperations()

  /// Without a spare that could read on, unless one is given.
  private func isRunHere(
    ofSecrets: Bool = false, hasOthers: Bool = false, handOver: () -> Bool = { false }
  ) -> Bool {
    var hasRun = false
    let isTaken = waiting.runHere(
      ofSecrets: ofSecrets, hasOthers: { hasOthers }, handOver: handOver
    ) { hasRun = true }
    #expect(isTaken == hasRun)
    return isTaken
  }

  @Test func oneAtATime() {
    #expect(isRunHere())
    let isTaken = waiting.runHere(ofSecrets: false, hasOthers: { false }, handOver: { false }) {
      #expect(!isRunHere() && !isRunHere(ofSecrets: true))
    }
    #expect(isTaken && isRunHere())
  }

  @Test func noneOfAKindThatTookLong() {
    waiting.note(.milliseconds(2), ofSecrets: true)
    #expect(isRunHere() && !isRunHere(ofSecrets: true))
    waiting.note(.seconds(20), ofSecrets: false)
    #expect(!isRunHere())
    waiting.note(.microseconds(300), ofSecrets: true)
    #expect(!isRunHere() && isRunHere(ofSecrets: true))
  }

  /// The spare reads on where others wait, or the last one took long; and not where it is not needed.
  @Test func handsOverBeforeItWaitsForLong() {
    var count = 0
    let handOver = {
      count += 1
      return true
    }
    #expect(isRunHere(handOver: handOver) && count == 0)
    #expect(isRunHere(hasOthers: true, handOver: handOver) && count == 1)
    #expect(!isRunHere(hasOthers: true))
    waiting.note(.milliseconds(2), ofSecrets: false)
    #expect(isRunHere(handOver: handOver) && count == 2)
    // One that was refused has left nothing behind.
    #expect(!isRunHere() && isRunHere(handOver: handOver) && count == 3)
    // While one waits, no second one hands over.
    let isTaken = waiting.runHere(ofSecrets: false, hasOthers: { true }, handOver: handOver) {
      #expect(!isRunHere(handOver: handOver))
    }
    #expect(isTaken && count == 4)
  }

  private final class Flag: Sendable {
    let value = Mutex(false)
  }

  @Test func finishWaitsForIt() {
    let (began, mayEnd, isDone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), Flag())
    Background.run { [waiting] in
      _ = waiting.runHere(ofSecrets: false, hasOthers: { false }, handOver: { false }) {
        began.signal()
        mayEnd.wait()
        isDone.value.withLock { $0 = true }
      }
    }
    began.wait()
    Background.run { mayEnd.signal() }
    waiting.finish()
    #expect(isDone.value.withLock { $0 })
  }
}
