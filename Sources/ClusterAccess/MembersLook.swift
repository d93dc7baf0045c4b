import Platform
import Synchronization

/// Looks at the list of members and the keys after they have changed, on a thread of its own. Many changes make one look.
final class MembersLook: Sendable {
  private let look = Mutex<(@Sendable () -> Void)?>(nil)
  private let turns = SerialTurns()
  private let isWaiting = Atomic(false)

  /// From now on `body` is called after `take`.
  func follow(_ body: @escaping @Sendable () -> Void) { look.withLock { $0 = body } }

  /// Returns at once.
  func take() {
    guard !isWaiting.exchange(true, ordering: .acquiringAndReleasing) else { return }
    let isTaken = turns.run { [self] in
      isWaiting.store(false, ordering: .releasing)
      look.withLock { $0 }?()
    }
    if !isTaken { isWaiting.store(false, ordering: .releasing) }
  }
}
