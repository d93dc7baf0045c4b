import Synchronization

/// A waiting reply that several may answer: the decision, the deadline, the interrupt.
///
/// Exactly one of them gets it from ``claim()``. Dropped unclaimed, the reply answers EIO.
public final class Parked<Answer: ~Copyable & Sendable>: Sendable {
  private let place: Mutex<Reply<Answer>?>

  init(_ reply: consuming Reply<Answer>) {
    place = Mutex(consume reply)
  }

  /// The reply, for the first who asks; nil for all others.
  public func claim() -> Reply<Answer>? {
    place.withLock { $0.take() }
  }
}

extension Reply where Answer: ~Copyable & Sendable {
  /// Puts the reply where it can be claimed later, and has `handler` called if the caller is interrupted meanwhile.
  ///
  /// The handler runs at most once, on one of the session's threads or right here, gets the parked reply and usually
  /// claims it and answers EINTR. It must be quick, and need no lock that is held while parking or claiming. Every
  /// parked reply needs a deadline too: its caller can't even be killed before the answer.
  public consuming func park(
    onInterrupt handler: @escaping @Sendable (Parked<Answer>) -> Void
  ) -> Parked<Answer> {
    let parked = Parked(self)
    parked.watch(handler)
    return parked
  }
}

extension Parked where Answer: ~Copyable & Sendable {
  fileprivate func watch(_ handler: @escaping @Sendable (Parked<Answer>) -> Void) {
    // Weak: the table of handlers must not keep a reply alive that all others have dropped.
    let interrupted: @Sendable () -> Void = { [weak self] in
      if let self { handler(self) }
    }
    let ticket = place.withLock { reply in reply?.pending.watchInterrupt(interrupted) ?? 0 }
    // Outside the lock: the handler may run now, and claims.
    Interrupts.start(ticket)
  }
}
