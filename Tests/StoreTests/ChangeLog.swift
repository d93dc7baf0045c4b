import Model

@testable import Store

/// The changes that a feed published, read without waiting: a mark is published behind them.
struct ChangeLog {
  private static let mark = Change(.modified, .suite("mark"), origin: .external)

  private let feed: ChangeFeed
  private var iterator: AsyncStream<Change>.Iterator

  init(_ feed: ChangeFeed) {
    self.feed = feed
    iterator = feed.watch().makeAsyncIterator()
  }

  /// Every change since the last call.
  mutating func next() async -> [Change] {
    feed.publish([Self.mark])
    var changes: [Change] = []
    while let change = await iterator.next(isolation: nil), change != Self.mark { changes.append(change) }
    return changes
  }
}

extension Change {
  /// A change of a key of the suite `s`.
  static func key(_ kind: Kind, _ key: ExactString, _ origin: Origin) -> Change {
    Change(kind, .key(suite: "s", key: key), origin: origin)
  }
}

extension SuiteStore {
  nonisolated func set(_ key: ExactString, _ value: SettingValue?) throws(StoreError) {
    try update { $0.settings[key] = value.map { Setting($0) } }
  }

  nonisolated var values: [ExactString: SettingValue]? {
    (snapshot?.entries).map { Dictionary(uniqueKeysWithValues: $0.map { ($0.key, $0.value.value) }) }
  }
}
