import Dispatch
import Platform
import Synchronization
import Testing

@testable import Mount

/// Which operations wait on the thread that has read their request.
@Suite struct WaitingOperationsTests {
  private let waiting = WaitingOperations()

  private func isRunHere(ofSecrets: Bool = false) -> Bool {
    var hasRun = false
    let isTaken = waiting.runHere(ofSecrets: ofSecrets, nil) { hasRun = true }
    #expect(isTaken == hasRun)
    return isTaken
  }

  @Test func oneAtATime() {
    #expect(isRunHere())
    let isTaken = waiting.runHere(ofSecrets: false, nil) {
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

  private final class Flag: Sendable {
    let value = Mutex(false)
  }

  @Test func finishWaitsForIt() {
    let (began, mayEnd, isDone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), Flag())
    Background.run { [waiting] in
      _ = waiting.runHere(ofSecrets: false, nil) {
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
