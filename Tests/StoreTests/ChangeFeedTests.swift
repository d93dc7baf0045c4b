import Model
import Synchronization
import Testing

@testable import Store

@Suite(.timeLimit(.minutes(1))) struct ChangeFeedTests {
  private let feed = ChangeFeed()

  private func change(_ name: ExactString) -> Change { Change(.created, .suite(name), origin: .local) }

  @Test func everyListenerGetsEveryChangeInOrder() async {
    var listeners = (0..<10).map { _ in ChangeLog(feed) }
    let changes = (0..<100).map { change(ExactString("\($0)")) }
    for part in changes.chunks(of: 7) { feed.publish(Array(part)) }
    let first = await listeners[0].next()
    #expect(first == changes)
    for index in 1..<10 {
      // The marks of those before are changes to the others.
      let heard = await listeners[index].heard(changes.count)
      #expect(heard == changes)
    }
  }

  @Test func listenerHearsFromNowOn() async {
    feed.publish([change("before")])
    var log = ChangeLog(feed)
    feed.publish([change("after")])
    #expect(await log.next() == [change("after")])
  }

  @Test func endedListenerIsForgotten() async {
    let ended = Task { [feed] in
      for await _ in feed.watch() {}
    }
    ended.cancel()
    await ended.value
    var log = ChangeLog(feed)
    feed.publish([change("after")])
    #expect(await log.next() == [change("after")])
  }

  @Test func listenerThatIsTooSlowIsToldSo() async {
    var iterator = feed.watch(limit: 10).makeAsyncIterator()
    for name in 0..<50 { feed.publish([change(ExactString("\(name)"))]) }
    #expect(await iterator.next() == Change(.overflow, .everything, origin: .external))
    var rest: [Change] = []
    feed.publish([change("after")])
    while rest.last != change("after"), let change = await iterator.next() { rest.append(change) }
    #expect(rest.count <= 10)
    feed.publish([change("later")])
    #expect(await iterator.next() == change("later"))
  }

  @Test func listenerThatCatchesUpInTimeMissesNothing() async {
    var iterator = feed.watch(limit: 10).makeAsyncIterator()
    for round in 0..<20 {
      let changes = (0..<8).map { change(ExactString("\(round) \($0)")) }
      feed.publish(changes)
      for expected in changes { #expect(await iterator.next() == expected) }
    }
  }

  /// A change that was taken is handled when the next one is asked for.
  @Test func progressIsThatOfTheListener() async {
    let (changes, progress) = feed.follow(limit: 100)
    feed.publish([change("first"), change("second")])
    let handled = Mutex(false)
    progress.whenHandled { handled.withLock { $0 = true } }
    var iterator = changes.makeAsyncIterator()
    for name in ["first", "second"] as [ExactString] {
      #expect(await iterator.next() == change(name))
      #expect(!handled.withLock { $0 })
    }
    feed.publish([change("third")])
    #expect(await iterator.next() == change("third"))
    #expect(handled.withLock { $0 })
  }

  /// A listener that has gone holds up no caller.
  @Test func progressOfAnEndedListenerIsAtItsEnd() {
    var followed: (changes: AsyncStream<Change>, progress: ChangeProgress)? = feed.follow(limit: 10)
    let progress = followed?.progress
    feed.publish([change("one")])
    let handled = Mutex(0)
    progress?.whenHandled { handled.withLock { $0 += 1 } }
    followed = nil
    progress?.whenHandled { handled.withLock { $0 += 1 } }
    #expect(handled.withLock { $0 } == 2 && followed == nil)
  }

  @Test func changesOfTheProcessAreNoted() {
    let record = LocalChanges()
    let feed = ChangeFeed(notingIn: record)
    feed.publish([Change(.created, .suite("other"), origin: .external)])
    #expect(record.isEmpty)
    feed.publish([change("a"), Change(.modified, .key(suite: "b", key: "k"), origin: .local)])
    #expect(record.suites == ["a", "b"] && !record.isEmpty)
  }

  @Test func listenerOutlivesItsFeed() async {
    var feed: ChangeFeed? = ChangeFeed()
    weak let weakFeed = feed
    let stream = feed?.watch()
    feed = nil
    #expect(weakFeed == nil && stream != nil)
  }
}

extension ChangeLog {
  /// The next `count` changes, marks of others left out.
  fileprivate mutating func heard(_ count: Int) async -> [Change] {
    Array(await next().prefix(count))
  }
}

extension Array {
  fileprivate func chunks(of size: Int) -> [ArraySlice<Element>] {
    stride(from: 0, to: count, by: size).map { self[$0..<Swift.min(count, $0 + size)] }
  }
}
