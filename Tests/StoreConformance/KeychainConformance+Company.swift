import Model
import SecretMemory
import Store

extension KeychainConformance {
  /// Several engines on one keychain.
  static let company: [Case] = [
    Case(description: "what another engine changed is news once") { open in
      let (one, two) = (try open(), try open())
      _ = try two.items()
      let item = try one.add(KeychainSamples.generic("a"), "1")
      try require(open.news(of: one) == nil, "one's own change is no news")
      try require(open.same(open.news(of: two), [item]), "the other reports it")
      try require(open.news(of: two) == nil, "once")
      try one.set(item.id, [0x32])
      try require(two.bytes(of: item.id) == [0x32], "read as it is now")
      try require(open.news(of: two, since: [item])?.map(\.size) == [1], "still news")
      let equal = try one.rewrite(item.id, readingSecret: true) { _, secret throws(StoreError) in
        do { secret = try KeychainSamples.secret("2") } catch { throw .outOfMemory }
      }
      try require(
        open.same(one.items().first, equal) && open.news(of: two) == nil, "an equal secret is no news")
      try one.remove([item.id])
      try require(two.items().isEmpty && open.news(of: two) == nil, "items catches up too")
    },
    Case(description: "news says what became of each item that others have changed") { open in
      let (one, two) = (try open(), try open())
      let items = try ["a", "b", "c", "d"].map { try one.add(KeychainSamples.generic(ExactString($0)), "1") }
      let known = try two.items()
      try one.remove([items[0].id])
      try one.set(items[1].id, [2, 3])
      _ = try one.update([items[2].id]) { item throws(StoreError) in
        item.identity = .generic(service: "a", account: "me")
      }
      try one.add(KeychainSamples.generic("c"), "new")
      let passing = try one.add(KeychainSamples.generic("passing"), "1")
      try one.remove([passing.id])
      try require(open.same(open.news(of: two, since: known), one.items()), "as the items are now")
      try require(open.news(of: two) == nil, "once")
    },
    Case(description: "an engine's own changes are no news beside those of others") { open in
      let (one, two) = (try open(), try open())
      let items = try ["a", "b"].map { try one.add(KeychainSamples.generic(ExactString($0)), "1") }
      let known = try two.items()
      try one.set(items[0].id, [2, 3])
      let own = try two.add(KeychainSamples.generic("own"), "1")
      try two.set(items[1].id, [2])
      try one.remove([items[1].id])
      try require(open.same(open.news(of: two, since: known + [own]), two.items()), "as the items are now")
      try require(open.news(of: two) == nil, "once")
    },
    Case(description: "two engines that change one item both win") { open in
      let (one, two) = (try open(), try open())
      let item = try one.add(KeychainSamples.generic("a"), "")
      _ = try two.update([item.id]) { item throws(StoreError) in item.label = "label" }
      _ = try one.update([item.id]) { item throws(StoreError) in item.attributes["comment"] = [1] }
      try two.set(item.id, [7])
      let stored = try one.items().first
      try require(stored?.label == "label" && stored?.attributes["comment"] == [1], "both changes")
      try require(stored?.size == 1 && one.bytes(of: item.id) == [7], "and the secret")
      try require(.exists) { try two.add(KeychainSamples.generic("a"), "") }
    },
  ]
}
