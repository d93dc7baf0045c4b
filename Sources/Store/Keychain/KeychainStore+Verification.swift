import Dispatch
import Model
import Platform
import Synchronization

// Comparing all that a keychain holds, where changes were read by name only.
extension KeychainStore {
  /// When the keychain is compared next.
  struct VerificationSchedule: Sendable {
    fileprivate var isUnderWay = false
    fileprivate var earliest = ContinuousClock.now
  }

  /// Has everything compared in the background where something was changed: a second later, and at most a twentieth of the
  /// time is spent on it.
  nonisolated func verifyLater() {
    guard engine.verification != nil else { return }
    let delay: Duration? = verification.withLock { schedule in
      guard !schedule.isUnderWay else { return nil }
      schedule.isUnderWay = true
      return max(.seconds(1), ContinuousClock.now.duration(to: schedule.earliest))
    }
    guard let delay else { return }
    Background.run(after: .milliseconds(Int(delay / .milliseconds(1)))) { [weak self] in self?.verify() }
  }

  /// Compares everything now, and publishes what that finds.
  nonisolated func verify() {
    let began = ContinuousClock.now
    // After an error everything is still to be compared.
    try? engine.verification?.verify()
    verification.withLock { schedule in
      schedule.isUnderWay = false
      schedule.earliest = .now + began.duration(to: .now) * 19
    }
    CurrentProcess.returnUnusedMemory()
    try? refresh()
  }
}
