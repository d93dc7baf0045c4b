import Testing

@testable import EtcdClient

@Suite struct WatchHistoryTests {
  private func reply(
    _ changes: [(String, Int64)] = [], revision: Int64 = 100, watch: Int64 = 0, isFragment: Bool = false
  ) -> WatchReply {
    var reply = WatchReply()
    reply.header.revision = revision
    reply.watch = watch
    reply.isFragment = isFragment
    reply.changes = changes.map { .delete(key: Array($0.0.utf8), modified: $0.1) }
    return reply
  }

  private func created(at revision: Int64) -> WatchReply {
    var reply = reply(revision: revision)
    reply.isCreated = true
    return reply
  }

  /// The reports as text.
  private func take(_ history: inout WatchHistory, _ reply: WatchReply, isOrdered: Bool = true) throws
    -> [String]
  {
    try history.take(reply, isProgressOrdered: isOrdered).map { report in
      switch report {
      case .changes(let changes, let revision):
        "\(revision): " + changes.map(\.name).joined(separator: " ")
      case .progress(let revision): "progress \(revision)"
      default: "?"
      }
    }
  }

  @Test func changesAreReportedByRevision() throws {
    var history = WatchHistory(from: 5)
    #expect(try take(&history, reply([("a", 5), ("b", 5), ("a", 7)])) == ["5: a b", "7: a"])
    #expect(history.next == 8)
  }

  @Test func whatIsNotNewerIsDropped() throws {
    var history = WatchHistory(from: 5)
    #expect(try take(&history, reply([("old", 4), ("a", 5)])) == ["5: a"])
    #expect(try take(&history, reply([("a", 5), ("b", 6)])) == ["6: b"])
    #expect(try take(&history, reply([("a", 3)])) == [])
  }

  @Test func fragmentsArePutTogether() throws {
    var history = WatchHistory(from: 1)
    #expect(try take(&history, reply([("a", 5)], isFragment: true)) == [])
    #expect(try take(&history, reply([("b", 5)], isFragment: true)) == [])
    #expect(history.next == 1)
    #expect(try take(&history, reply([("c", 5), ("d", 6)])) == ["5: a b c", "6: d"])
  }

  @Test func fragmentsOfALostStreamAreDropped() throws {
    var history = WatchHistory(from: 1)
    _ = try take(&history, reply([("a", 5)], isFragment: true))
    history.reconnected()
    #expect(try take(&history, reply([("a", 5), ("b", 5)])) == ["5: a b"])
  }

  @Test func changesOutOfOrderAreRefused() {
    var history = WatchHistory(from: 1)
    #expect(throws: WireError.self) { try take(&history, reply([("a", 6), ("b", 5)])) }
    var other = WatchHistory(from: 1)
    #expect(throws: WireError.self) { try take(&other, reply([("a", 5), ("b", 6), ("c", 5)])) }
  }

  @Test func progressOfTheWatchIsReportedAndResumedFrom() throws {
    var history = WatchHistory(from: 5)
    #expect(try take(&history, reply(revision: 9), isOrdered: false) == ["progress 9"])
    #expect(history.next == 10)
    #expect(try take(&history, reply(revision: 9), isOrdered: false) == [])
    #expect(try take(&history, reply(revision: 3), isOrdered: false) == [])
  }

  @Test func progressOfTheStreamCountsOnlyWhereItIsInOrder() throws {
    var history = WatchHistory(from: 5)
    #expect(try take(&history, reply(revision: 9, watch: -1), isOrdered: false) == [])
    #expect(history.next == 5)
    #expect(try take(&history, reply(revision: 9, watch: -1), isOrdered: true) == ["progress 9"])
  }

  @Test func watchFromThePresentBeginsBehindTheFirstReply() throws {
    var history = WatchHistory(from: 0)
    #expect(try take(&history, created(at: 41)) == [])
    #expect(history.next == 42)
    #expect(try take(&history, created(at: 50)) == [])
    #expect(history.next == 42)
  }

  @Test(arguments: [
    ("3.4.23", false), ("3.4.25", true), ("3.4.9", false), ("3.5.7", false), ("3.5.8", true), ("3.6.0", true),
    ("3.3.27", false), ("4.0.0", true), ("", false), ("3.6", false), ("x.y.z", false), ("3.5.16-rc.1", true),
  ])
  func progressIsInOrderFromSomeVersionsOn(_ version: String, _ isOrdered: Bool) {
    var status = MemberStatus()
    status.version = version
    #expect(status.isProgressOrdered == isOrdered)
  }
}

extension KeyChange {
  var name: String {
    switch self {
    case .put(let value): String(decoding: value.key, as: UTF8.self)
    case .delete(let key, _): String(decoding: key, as: UTF8.self)
    }
  }
}
