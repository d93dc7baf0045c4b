/// Which servers answered, and in which order they are asked.
struct EndpointHealth {
  private struct Member {
    var backoff = Backoff(first: .milliseconds(500), longest: .seconds(15))
    /// nil: it answered last time.
    var unhealthyUntil: ContinuousClock.Instant?
  }

  private var members: [Member]
  /// The one that is asked first.
  private var preferred: Int

  /// `first`: which one of `count` is asked first.
  init(count: Int, first: Int) {
    members = Array(repeating: Member(), count: count)
    preferred = count > 0 ? first % count : 0
  }

  /// All of them, those last that failed a short time ago.
  func order(at now: ContinuousClock.Instant = .now) -> [Int] {
    let turns = members.indices.map { (preferred + $0) % members.count }
    let failed = turns.filter { index in members[index].unhealthyUntil.map { $0 > now } ?? false }
    return turns.filter { !failed.contains($0) } + failed
  }

  mutating func succeeded(_ index: Int) {
    members[index].unhealthyUntil = nil
    members[index].backoff.reset()
  }

  /// Another one is asked first from now on.
  mutating func failed(_ index: Int, at now: ContinuousClock.Instant = .now) {
    members[index].unhealthyUntil = now + members[index].backoff.pause()
    if preferred == index { preferred = (index + 1) % members.count }
  }
}
