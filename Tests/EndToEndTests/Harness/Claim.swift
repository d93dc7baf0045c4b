import Synchronization

/// Something that can be taken once.
final class Claim: Sendable {
  private let taken = Atomic(false)

  /// True for the first caller, false for every other.
  func take() -> Bool {
    !taken.exchange(true, ordering: .acquiringAndReleasing)
  }
}
