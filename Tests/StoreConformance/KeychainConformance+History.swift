import Model
import SecretMemory
import Store

extension KeychainConformance {
  /// Of engines that keep what items were, with a process that keeps ten versions for 30 days.
  public static let history: [Case] = values + removals + protections + purges

  private static let values: [Case] = [
    Case(description: "each change of a value is a version, with its secret") { open in
      let engine = try keeping(open)
      let item = try engine.add(KeychainSamples.generic("a"), "one")
      try require(versions(engine, item).isEmpty, "a new item has none")
      try engine.set(item.id, Array("two".utf8))
      try engine.set(item.id, Array("three".utf8))
      let versions = try versions(engine, item)
      try require(versions.map(\.changes) == [.value, .value], "\(versions.map(\.changes.words))")
      try require(versions[0].number < versions[1].number, "numbers rise")
      try require(values(engine, item) == ["one", "two"], "the values that it had")
      try require(engine.bytes(of: item.id) == Array("three".utf8), "its value")
      let other = try keeping(open)
      try require(values(other, item) == ["one", "two"], "opened again")
      try require(engine.requireHistory().version(versions[0].item.id) == versions[0], "by its id")
      try require(.notFound) { _ = try engine.requireHistory().version(ItemID(version: 99_999, of: item.id)) }
      try require(.notFound) { _ = try engine.secret(of: ItemID(version: 99_999, of: item.id)) }
    },
    Case(description: "only so many versions are kept") { open in
      let engine = try keeping(open)
      let item = try engine.add(KeychainSamples.generic("a"), "0")
      for number in 1...14 { try engine.set(item.id, Array("\(number)".utf8)) }
      try require(values(engine, item) == (4...13).map(String.init), "\(values(engine, item))")
      _ = try engine.update([item.id]) { $0.attributes[Item.historyAttribute] = Array("2".utf8) }
      try require(values(engine, item) == ["12", "13"], "as the item says")
      engine.history?.keep(.none)
      try engine.set(item.id, Array("15".utf8))
      try require(values(engine, item).isEmpty, "none")
      try require(engine.bytes(of: item.id) == Array("15".utf8), "its value stays")
    },
    Case(description: "a series of attributes is one version; names and times are none") { open in
      let engine = try keeping(open)
      let item = try engine.add(KeychainSamples.generic("a"), "one")
      for number in 1...5 {
        _ = try engine.update([item.id]) { $0.attributes["comment"] = Array("\(number)".utf8) }
      }
      let versions = try versions(engine, item)
      try require(versions.count == 1 && versions[0].item.attributes["comment"] == nil, "the first state")
      try require(versions[0].changes == .attributes, "\(versions[0].changes.words)")
      let moved = try engine.update([item.id]) { item in
        item.modified = Timestamp(seconds: 1)
        item.identity = .generic(service: "moved", account: "me")
      }
      try require(Self.versions(engine, item).isEmpty, "nothing under the former name")
      try require(values(engine, moved[0]) == ["one"], "its history goes with it")
    },
    Case(description: "restoring goes back and forth") { open in
      let engine = try keeping(open)
      let item = try engine.add(KeychainSamples.generic("a"), "one")
      _ = try engine.update([item.id]) { $0.attributes["comment"] = Array("first".utf8) }
      try engine.set(item.id, Array("two".utf8))
      guard let version = try versions(engine, item).last else { throw Failure(description: "no version") }
      let restored = try engine.requireHistory().restore(version.item.id)
      try require(restored.id == item.id && restored.attributes["comment"] == Array("first".utf8), "the item")
      try require(engine.bytes(of: item.id) == Array("one".utf8), "its value")
      guard let undone = try versions(engine, item).last else { throw Failure(description: "no version") }
      try require(undone.number > version.number && undone.changes == .value, "what it was is a version")
      _ = try engine.requireHistory().restore(undone.item.id)
      try require(open().bytes(of: item.id) == Array("two".utf8), "and back")
    },
    Case(description: "restoring attributes right after a change of them goes back and forth too") { open in
      let engine = try keeping(open)
      let item = try engine.add(KeychainSamples.generic("a"), "one")
      for comment in ["1", "2"] {
        _ = try engine.update([item.id]) { $0.attributes["comment"] = Array(comment.utf8) }
      }
      guard let version = try versions(engine, item).last else { throw Failure(description: "no version") }
      let restored = try engine.requireHistory().restore(version.item.id)
      try require(restored.attributes["comment"] == nil, "the first state")
      guard let undone = try versions(engine, item).last else { throw Failure(description: "no version") }
      try require(undone.item.attributes["comment"] == Array("2".utf8), "what it was is a version")
      let back = try engine.requireHistory().restore(undone.item.id)
      try require(back.attributes["comment"] == Array("2".utf8), "and back")
    },
    Case(description: "a counter of one-time codes makes no version, and does not go back with one") { open in
      let engine = try keeping(open)
      guard engine.otpauthURIs != nil else { return }
      let uri = { (issuer: String, counter: Int) in
        "otpauth://hotp/a?secret=GEZDGNBVGY3TQOJQ&counter=\(counter)&issuer=\(issuer)"
      }
      let item = try engine.add(KeychainSamples.generic("a"), "one")
      try engine.setOtpauth(item.id, uri("x", 1))
      try require(versions(engine, item).last?.changes == .otpauth, "its first one is a change")
      let count = try versions(engine, item).count
      for counter in 2...4 {
        _ = try engine.requireOtpauthURIs().rewriteOtpauth(of: item.id, readingSecret: true) {
          further, secret throws(StoreError) in
          further?.modified = Timestamp(seconds: Int64(counter))
          do { secret = try KeychainSamples.secret(uri("x", counter)) } catch { throw .outOfMemory }
        }
      }
      try require(versions(engine, item).count == count, "no version")
      try engine.set(item.id, Array("two".utf8))
      _ = try engine.requireOtpauthURIs().rewriteOtpauth(of: item.id, readingSecret: true) {
        further, secret throws(StoreError) in
        further?.modified = Timestamp(seconds: 9)
        do { secret = try KeychainSamples.secret(uri("x", 9)) } catch { throw .outOfMemory }
      }
      guard let version = try versions(engine, item).last else { throw Failure(description: "no version") }
      _ = try engine.requireHistory().restore(version.item.id)
      try require(engine.bytes(of: item.id) == Array("one".utf8), "the value is restored")
      try require(engine.otpauthBytes(of: item.id) == Array(uri("x", 9).utf8), "the counter is not")
      try engine.setOtpauth(item.id, uri("y", 1))
      guard let other = try versions(engine, item).last else { throw Failure(description: "no version") }
      _ = try engine.requireHistory().restore(other.item.id)
      try require(engine.otpauthBytes(of: item.id) == Array(uri("x", 9).utf8), "another URI is restored")
    },
  ]

  private static let removals: [Case] = [
    Case(description: "a removed item is kept and comes back as it was") { open in
      let engine = try keeping(open)
      let item = try engine.add(KeychainSamples.full(engine), "one")
      try engine.set(item.id, Array("two".utf8))
      try engine.remove([item.id])
      try require(engine.items().isEmpty, "it is gone")
      try require(.notFound) { _ = try engine.secret(of: item.id) }
      try require(.notFound) { try engine.set(item.id, [1]) }
      let versions = try versions(engine, item)
      try require(versions.map(\.changes) == [.value, .removal], "\(versions.map(\.changes.words))")
      try require(values(engine, item) == ["one", "two"], "its values")
      try require(engine.requireHistory().identitiesWithVersions() == [item.identity], "its identity")
      try require(engine.requireHistory().lastVersion(ofRemoved: item.id) == versions[1], "its last state")
      let other = try keeping(open)
      try require(other.items().isEmpty && Self.versions(other, item) == versions, "opened again")
      let back = try engine.requireHistory().restore(versions[1].item.id)
      var expected = versions[1].item
      expected.id = item.id
      try require(back == expected, "as it was")
      try require(engine.bytes(of: item.id) == Array("two".utf8), "with its value")
      try require(values(engine, item) == ["one"], "and what it was before")
      try require(open.news(of: other)?.map(\.id) == [item.id], "others get the news")
    },
    Case(description: "an earlier version of a removed item comes back") { open in
      let engine = try keeping(open)
      let item = try engine.add(KeychainSamples.generic("a"), "one")
      try engine.set(item.id, Array("two".utf8))
      try engine.remove([item.id])
      _ = try engine.requireHistory().restore(versions(engine, item)[0].item.id)
      try require(engine.bytes(of: item.id) == Array("one".utf8), "its value")
      try require(values(engine, item) == ["one", "two"], "\(values(engine, item))")
    },
    Case(description: "items removed again and again have one history") { open in
      let engine = try keeping(open)
      let item = KeychainSamples.generic("a")
      for number in 0..<13 { try engine.remove([engine.add(item, "\(number)").id]) }
      try require(values(engine, item) == (3..<13).map(String.init), "\(values(engine, item))")
      let present = try engine.add(item, "new")
      let restored = try engine.requireHistory().restore(versions(engine, item)[4].item.id)
      try require(restored.id == present.id, "over the one that is there")
      try require(engine.bytes(of: present.id) == Array("7".utf8), "its value")
      try require(values(engine, item).last == "new", "what it was is a version")
      try require(engine.requireHistory().purge(item.identity) == 11, "all are purged")
      try require(versions(engine, item).isEmpty, "none is left")
      try require(engine.bytes(of: present.id) == Array("7".utf8), "but the item is")
    },
    Case(description: "many items are removed together and come back one by one") { open in
      let engine = try keeping(open)
      let items = try (0..<70).map {
        try engine.add(KeychainSamples.generic("s", ExactString("a\($0)")), "secret \($0)")
      }
      try engine.remove(items.map(\.id))
      try require(engine.items().isEmpty, "all are gone")
      let identities = Set(try engine.requireHistory().identitiesWithVersions())
      try require(identities == Set(items.map(\.identity)), "all are kept")
      guard let last = try versions(engine, items[69]).last else { throw Failure(description: "no version") }
      _ = try engine.requireHistory().restore(last.item.id)
      try require(open().bytes(of: items[69].id) == Array("secret 69".utf8), "one is back")
      try require(engine.requireHistory().purgeAll() == 69, "the others are purged")
      try require(engine.requireHistory().identitiesWithVersions().isEmpty, "nothing is left")
    },
  ]

  private static let protections: [Case] = [
    Case(description: "versions follow a stricter class, and no restoring weakens an item") { open in
      let engine = try keeping(open)
      var item = KeychainSamples.generic("a")
      item.accessibility = .afterFirstUnlock
      let id = try engine.add(item, "one").id
      try engine.set(id, Array("two".utf8))
      _ = try engine.update([id]) { $0.accessibility = .whenUnlocked }
      let all = try versions(engine, item)
      try require(all.map(\.item.accessibility) == [.whenUnlocked, .whenUnlocked], "the stricter class")
      try require(values(engine, item) == ["one", "two"], "they open")
      _ = try engine.update([id]) { $0.accessibility = .afterFirstUnlock }
      guard let strict = try versions(engine, item).last else { throw Failure(description: "no version") }
      try require(strict.item.accessibility == .whenUnlocked, "a weaker class does not weaken it")
      try require(
        engine.requireHistory().restore(strict.item.id).accessibility == .whenUnlocked, "nor restoring")
      _ = try engine.update([id]) { $0.access = [.userPresence] }
      guard let former = try versions(engine, item).last else { throw Failure(description: "no version") }
      let restored = try engine.requireHistory().restore(former.item.id)
      try require(former.item.access.isEmpty && restored.access == [.userPresence], "flags stay")
      try require(engine.bytes(of: id) == Array("two".utf8), "it opens")
    },
    Case(description: "an item's rules stay when a version is restored") { open in
      let engine = try keeping(open)
      let item = try engine.add(KeychainSamples.generic("a"), "one")
      _ = try engine.update([item.id]) { $0.programs = "deny *" }
      try engine.set(item.id, Array("two".utf8))
      guard let first = try versions(engine, item).first else { throw Failure(description: "no version") }
      try require(first.item.programs == nil && first.changes == .protection, "what it was")
      try require(engine.requireHistory().restore(first.item.id).programs == "deny *", "the rules stay")
      try require(engine.bytes(of: item.id) == Array("one".utf8), "the value is restored")
    },
  ]

  private static let purges: [Case] = [
    Case(description: "a purge leaves the item and nothing else") { open in
      let engine = try keeping(open)
      let item = try engine.add(KeychainSamples.generic("a"), "one")
      try engine.set(item.id, Array("two".utf8))
      let other = try engine.add(KeychainSamples.generic("b"), "other")
      try engine.set(other.id, Array("another".utf8))
      guard let version = try versions(engine, item).last else { throw Failure(description: "no version") }
      try require(engine.requireHistory().purge(item.identity) == 1, "one version")
      try require(.notFound) { _ = try engine.secret(of: version.item.id) }
      try require(.notFound) { _ = try engine.requireHistory().restore(version.item.id) }
      try require(engine.bytes(of: item.id) == Array("two".utf8), "the item")
      try require(values(engine, other) == ["other"], "the other item's history")
      try require(engine.requireHistory().purge(item.identity) == 0, "nothing more")
      try require(engine.requireHistory().purgeAll() == 1, "of all")
      try require(keeping(open).requireHistory().identitiesWithVersions().isEmpty, "opened again")
    },
    Case(description: "an item's history is switched off with what was kept") { open in
      let engine = try keeping(open)
      let item = try engine.add(KeychainSamples.generic("a"), "one")
      try engine.set(item.id, Array("two".utf8))
      _ = try engine.update([item.id]) { $0.attributes[Item.historyAttribute] = Array("0".utf8) }
      try require(versions(engine, item).isEmpty, "nothing is left")
      try engine.set(item.id, Array("three".utf8))
      try engine.remove([item.id])
      try require(versions(engine, item).isEmpty, "nothing is kept")
      try require(engine.requireHistory().identitiesWithVersions().isEmpty, "nor of another")
    },
    Case(description: "a process that keeps nothing leaves what is kept; pruning takes what is too much") {
      open in
      let engine = try keeping(open)
      let item = try engine.add(KeychainSamples.generic("a"), "one")
      for text in ["two", "three", "four"] { try engine.set(item.id, Array(text.utf8)) }
      let removed = try engine.add(KeychainSamples.generic("b"), "gone")
      try engine.remove([removed.id])
      try require(engine.requireHistory().prune() == 0, "nothing is too much")
      engine.history?.keep(HistoryRetention(versions: 1, days: 30))
      try require(engine.requireHistory().prune() == 2, "two of the item")
      try require(values(engine, item) == ["three"] && values(engine, removed) == ["gone"], "the newest stay")
      engine.history?.keep(.none)
      try require(engine.requireHistory().prune() == 2, "the rest")
      try require(engine.requireHistory().identitiesWithVersions().isEmpty, "nothing is left")
    },
  ]

  /// The keychain of a case in a process that keeps versions.
  private static func keeping(_ open: Keychain) throws -> any KeychainEngine {
    let engine = try open()
    try engine.requireHistory().keep(.standard)
    return engine
  }

  private static func versions(_ engine: any KeychainEngine, _ item: Item) throws -> [ItemVersion] {
    try engine.requireHistory().versions(of: item.identity)
  }

  private static func values(_ engine: any KeychainEngine, _ item: Item) throws -> [String] {
    try versions(engine, item).map { String(decoding: try engine.bytes(of: $0.item.id), as: UTF8.self) }
  }
}
