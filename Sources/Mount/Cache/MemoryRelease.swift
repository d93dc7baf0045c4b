import Dispatch
import Platform
import Synchronization

/// Gives memory back to the system some time after it was used, once for many uses: by a timer that is set by a use, and by
/// no other.
final class MemoryRelease: Sendable {
  private static let delay = DispatchTimeInterval.seconds(2)
  /// It costs some milliseconds, so there is one in this time at most.
  private static let interval = Duration.seconds(5)

  private struct State {
    var isPlanned = false
    var last: ContinuousClock.Instant?
  }

  private let state = Mutex(State())

  /// Something large has been freed.
  func plan() {
    let delay: DispatchTimeInterval? = state.withLock { state in
      guard !state.isPlanned else { return nil }
      state.isPlanned = true
      guard let last = state.last, .now - last < Self.interval else { return Self.delay }
      return .seconds(Int(Self.interval.components.seconds))
    }
    guard let delay else { return }
    Background.run(after: delay) { [self] in
      state.withLock { $0 = State(isPlanned: false, last: .now) }
      CurrentProcess.returnUnusedMemory()
      CurrentProcess.forgetCode()
    }
  }
}
