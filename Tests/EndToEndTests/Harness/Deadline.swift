/// A moment after which waiting is a failure.
struct Deadline: Sendable {
  private let end: ContinuousClock.Instant

  init(in duration: Duration) {
    end = .now + duration
  }

  var hasPassed: Bool { ContinuousClock.now >= end }

  /// The time left, as poll(2) takes it: never negative.
  var milliseconds: Int32 {
    let left = end - .now
    return left <= .zero
      ? 0
      : Int32(
        clamping: left.components.seconds * 1000 + left.components.attoseconds / 1_000_000_000_000_000 + 1)
  }
}

struct TimedOut: Error, CustomStringConvertible {
  let what: String
  var description: String { "Timed out: \(what)" }
}

/// Asks again and again, without a pause, until `condition` holds or the time is over.
func holds(within duration: Duration = .seconds(30), _ condition: () throws -> Bool) rethrows -> Bool {
  let deadline = Deadline(in: duration)
  while try !condition() {
    if deadline.hasPassed { return try condition() }
  }
  return true
}
