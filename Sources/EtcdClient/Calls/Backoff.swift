/// Pauses between attempts: each about twice the one before, up to a limit, with a random part, so that many clients do not
/// come back at the same moment.
struct Backoff {
  private let first: Duration
  private let longest: Duration
  private var next: Duration

  init(first: Duration, longest: Duration) {
    (self.first, self.longest, next) = (first, longest, first)
  }

  /// The next pause: between half of it and all of it.
  mutating func pause(_ random: () -> Double = { Double.random(in: 0.5...1) }) -> Duration {
    defer { next = min(next * 2, longest) }
    return next * random()
  }

  /// Begins with the first pause again.
  mutating func reset() {
    next = first
  }
}
