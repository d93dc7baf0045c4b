/// How many things are removed in one transaction: more as long as it is quick. So a vault removes hundreds together, and a
/// keychain that deletes one after the other answers in time.
struct RemovalPace {
  /// The most in one transaction: the other changes of the store wait for it.
  static let most = 256
  private static let short = Duration.milliseconds(200)
  private static let long = Duration.seconds(1)

  private(set) var count = 1
  private let now: () -> ContinuousClock.Instant

  /// `now`: the present time.
  init(now: @escaping () -> ContinuousClock.Instant = { .now }) {
    self.now = now
  }

  /// Calls `body` with all elements in their order, so many at a time as it takes quickly.
  ///
  /// `body` returns false where it has removed none of several, because one of them may be at fault: then it gets fewer.
  mutating func run<Element>(
    _ all: [Element], _ body: (ArraySlice<Element>) throws -> Bool
  ) rethrows {
    var rest = all[...]
    while !rest.isEmpty {
      let part = rest.prefix(count)
      let start = now()
      guard try body(part) else {
        count = max(1, part.count / 2)
        continue
      }
      rest = rest.dropFirst(part.count)
      settle(now() - start)
    }
  }

  private mutating func settle(_ duration: Duration) {
    if duration < Self.short { count = min(count * 2, Self.most) }
    if duration > Self.long { count = max(1, count / 2) }
  }
}
