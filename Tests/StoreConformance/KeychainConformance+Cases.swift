import Model
import SecretMemory
import Store

extension KeychainConformance {
  /// Of engines that seal items with a password of their own; others refuse it.
  static let passwords: [Case] = [
    Case(description: "an item with a password opens with that alone") { open in
      let engine = try open()
      guard engine.passwords != nil else { return }
      let id = try protected(engine)
      try require(.accessDenied(reason: "")) { _ = try engine.secret(of: id) }
      try require(.rejected) { _ = try engine.using(password("q")).secret(of: id) }
      try require(engine.using(password("p")).bytes(of: id) == Array("secret".utf8), "the secret")
      try require(open().using(password("p")).bytes(of: id) == Array("secret".utf8), "opened again")
    },
    Case(description: "without a password no item is stored that needs one") { open in
      let engine = try open()
      guard engine.passwords != nil else { return }
      var item = KeychainSamples.generic("a")
      let plain = try engine.add(item, "secret")
      item = KeychainSamples.generic("b")
      item.access = [.applicationPassword]
      try require(.accessDenied(reason: "")) { try engine.add(item, "secret") }
      try require(.accessDenied(reason: "")) {
        _ = try engine.update([plain.id]) { $0.access = [.applicationPassword] }
      }
      try require(engine.items().count == 1 && engine.bytes(of: plain.id).count == 6, "as before")
    },
    Case(description: "a password is set, used and removed with itself only") { open in
      let engine = try open()
      guard engine.passwords != nil else { return }
      let id = try engine.add(KeychainSamples.generic("a"), "secret").id
      _ = try engine.using(password("p")).update([id]) { $0.access = [.applicationPassword] }
      try require(.accessDenied(reason: "")) { _ = try engine.secret(of: id) }
      try require(.accessDenied(reason: "")) { _ = try engine.update([id]) { $0.access = [] } }
      try require(.rejected) { _ = try engine.using(password("q")).update([id]) { $0.access = [] } }
      try engine.using(password("p")).set(id, Array("new".utf8))
      try require(engine.using(password("p")).bytes(of: id) == Array("new".utf8), "changed")
      _ = try engine.using(password("p")).update([id]) { $0.access = [] }
      try require(engine.bytes(of: id) == Array("new".utf8), "removed")
    },
    Case(description: "a password is changed with the present one, in one step") { open in
      let engine = try open()
      guard let passwords = engine.passwords else { return }
      let id = try protected(engine)
      try require(.rejected) { try passwords.changePassword(of: id, from: password("x"), to: password("q")) }
      try passwords.check(password("p"), of: id)
      let before = try engine.items()
      try passwords.changePassword(of: id, from: password("p"), to: password("q"))
      try require(engine.using(password("q")).bytes(of: id) == Array("secret".utf8), "the new one opens it")
      try require(open().using(password("q")).bytes(of: id) == Array("secret".utf8), "opened again")
      try require(.rejected) { _ = try engine.using(password("p")).secret(of: id) }
      try require(.rejected) { try passwords.check(password("p"), of: id) }
      try require(open.same(engine.items(), before), "nothing else has changed")
      let plain = try engine.add(KeychainSamples.generic("plain"), "1").id
      try require(.invalidValue(reason: "")) {
        try passwords.changePassword(of: plain, from: password("p"), to: password("q"))
      }
    },
    Case(description: "what is not protected changes without the password") { open in
      let engine = try open()
      guard engine.passwords != nil else { return }
      let id = try protected(engine)
      _ = try engine.update([id]) { $0.identity = .generic(service: "b", account: "me") }
      try require(engine.using(password("p")).bytes(of: id) == Array("secret".utf8), "moved")
      try engine.remove([id])
      try require(engine.items().isEmpty, "removed")
    },
  ]

  private static func protected(_ engine: any KeychainEngine) throws -> ItemID {
    var item = KeychainSamples.generic("a")
    item.access = [.applicationPassword]
    return try engine.using(password("p")).add(item, "secret").id
  }

  static func password(_ text: String) throws(StoreError) -> ItemPassword {
    do { return ItemPassword(try KeychainSamples.secret(text)) } catch { throw .outOfMemory }
  }

  static let lifetimes: [Case] = [
    Case(description: "a new keychain is empty and says nothing") { open in
      let engine = try open()
      try require(engine.items().isEmpty && open.news(of: engine) == nil, "no items, no news")
      try require(engine.problems().isEmpty, "no problems")
      try require(.notFound) { _ = try engine.secret(of: ItemID(rawValue: "nobody")) }
      try engine.synchronize()
    },
    Case(description: "an item comes back as it was added") { open in
      let engine = try open()
      for sample in [
        KeychainSamples.generic("a", ""), KeychainSamples.full(engine), KeychainSamples.generic("", ""),
      ] {
        let added = try engine.add(sample, "s3cret")
        var expected = sample
        (expected.id, expected.size) = (added.id, 6)
        try require(open.same(added, expected), "the engine gives id and size only")
        try require(engine.items().contains { open.same($0, expected) }, "listed as it is")
        try require(engine.bytes(of: added.id) == Array("s3cret".utf8), "its secret")
      }
      try require(Set(engine.items().map(\.id)).count == 3, "ids differ")
    },
    Case(description: "one item is found as it is listed") { open in
      let first = try open()
      for sample in [KeychainSamples.generic("a"), KeychainSamples.full(first)] { try first.add(sample, "s") }
      let items = try first.items()
      // Another engine, before it has read all.
      guard let lookup = try open().lookup else { return }
      for item in items {
        try require(open.same(lookup.item(item.id), item), "by its own name")
        try require(open.same(lookup.item(with: item.identity), item), "by its identity")
      }
      try require(lookup.item(with: KeychainSamples.generic("b").identity) == nil, "none")
      try require(lookup.item(ItemID(rawValue: "nobody")) == nil, "none")
    },
    Case(description: "secrets of any size and bytes are kept exactly") { open in
      let engine = try open()
      let sizes = [0, 1, 27, 28, 29, 255, 256, 257, 4095, 4096, 16_385, 1 << 20]
      for size in sizes {
        let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ size) }
        let item = try engine.add(
          KeychainSamples.generic("size", ExactString("\(size)")), secret: KeychainSamples.secret(bytes))
        try require(item.size == size && engine.bytes(of: item.id) == bytes, "\(size) bytes")
      }
    },
    Case(description: "a secret over 1 MiB is refused and nothing changes") { open in
      let engine = try open()
      let large = try SecretBytes(count: 1 << 20 + 1)
      try require(.tooLarge(limit: 0)) { _ = try engine.add(KeychainSamples.generic("a"), secret: large) }
      let item = try engine.add(KeychainSamples.generic("b"), "old")
      try require(.tooLarge(limit: 0)) { try engine.set(item.id, [UInt8](repeating: 1, count: 1 << 20 + 1)) }
      try require(
        open.same(engine.items(), [item]) && engine.bytes(of: item.id) == Array("old".utf8), "as before")
    },
    Case(description: "an identity is there once") { open in
      let engine = try open()
      let full = KeychainSamples.full(engine)
      let item = try engine.add(full, "1")
      try require(.exists) { try engine.add(full, "2") }
      try require(open.same(engine.items(), [item]) && engine.bytes(of: item.id) == [0x31], "the first stays")
      try engine.add(KeychainSamples.generic("é"), "")
      try engine.add(KeychainSamples.generic("e\u{301}"), "")
      try require(engine.items().count == 3, "canonical equivalence is no equality")
    },
    Case(description: "identities differ by every part") { open in
      let engine = try open()
      var identities: [ItemIdentity] = [.other(label: "a"), .generic(service: "a", account: "")]
      let base = InternetIdentity(server: "a")
      let parts: [(inout InternetIdentity) -> Void] = [
        { _ in }, { $0.account = "x" }, { $0.domain = "x" }, { $0.protocol = "x" }, { $0.path = "x" },
        { $0.authenticationType = "x" }, { $0.port = 0 }, { $0.port = 1 }, { $0.domain = "" },
      ]
      for part in parts {
        var identity = base
        part(&identity)
        identities.append(.internet(identity))
      }
      for identity in identities {
        var item = KeychainSamples.generic("")
        item.identity = identity
        try engine.add(item, "")
      }
      try require(Set(engine.items().map(\.identity)) == Set(identities), "all are there")
    },
    Case(description: "removed items are gone with their secrets") { open in
      let engine = try open()
      let items = try ["a", "b", "c"].map { try engine.add(KeychainSamples.generic(ExactString($0)), $0) }
      try engine.remove([items[0].id, items[2].id, items[0].id, ItemID(rawValue: "nobody")])
      try require(engine.items() == [items[1]], "the other one stays")
      try require(.notFound) { _ = try engine.secret(of: items[0].id) }
      try engine.remove([items[0].id])
      try engine.add(KeychainSamples.generic("a"), "again")
      try require(engine.items().count == 2, "the identity is free again")
    },
  ]

  static let changes: [Case] = [
    Case(description: "an update keeps secret, id and size") { open in
      let engine = try open()
      let item = try engine.add(KeychainSamples.generic("a"), "secret")
      let full = KeychainSamples.full(engine)
      let updated = try engine.update([item.id]) { item throws(StoreError) in
        item = full
        item.size = 99
      }
      var expected = full
      (expected.id, expected.size) = (item.id, 6)
      try require(open.same(updated, [expected]) && open.same(engine.items(), [expected]), "changed as told")
      try require(engine.bytes(of: item.id) == Array("secret".utf8), "the secret stays")
    },
    Case(description: "every class and flag keeps the secret readable") { open in
      let engine = try open()
      let item = try engine.add(KeychainSamples.generic("a"), "secret")
      let hasPasscode = engine.locking.hasPasscode(sealed: false)
      let limits = engine.limits
      for accessibility in Accessibility.allCases.filter({ !limits.refusedClasses.contains($0) })
      where hasPasscode || accessibility != .whenPasscodeSetThisDeviceOnly {
        let others = AccessFlags.Flag.allCases.filter {
          $0 != .applicationPassword && !limits.refusedFlags.contains($0)
        }
        for flags in [[], [.userPresence], others] {
          _ = try engine.update([item.id]) { item throws(StoreError) in
            (item.accessibility, item.access) = (accessibility, AccessFlags(flags))
          }
          try require(engine.bytes(of: item.id) == Array("secret".utf8), "\(accessibility) \(flags)")
        }
      }
    },
    Case(description: "what a keychain can't keep is refused, and nothing changes") { open in
      let engine = try open()
      let item = try engine.add(KeychainSamples.generic("a"), "secret")
      for accessibility in engine.limits.refusedClasses {
        var other = KeychainSamples.generic("b")
        other.accessibility = accessibility
        try require(.unsupported(reason: "")) { try engine.add(other, "s") }
        try require(.unsupported(reason: "")) {
          _ = try engine.update([item.id]) { $0.accessibility = accessibility }
        }
      }
      for flag in engine.limits.refusedFlags {
        var other = KeychainSamples.generic("b")
        other.access = AccessFlags([flag])
        try require(.unsupported(reason: "")) { try engine.add(other, "s") }
        try require(.unsupported(reason: "")) {
          _ = try engine.rewrite(item.id, readingSecret: false) { item, _ in item.access = AccessFlags([flag])
          }
        }
      }
      try require(engine.items() == [item] && engine.bytes(of: item.id) == Array("secret".utf8), "as before")
    },
    Case(description: "an update is all or nothing") { open in
      let engine = try open()
      let items = try ["a", "b"].map { try engine.add(KeychainSamples.generic(ExactString($0)), $0) }
      let before = Set(try engine.items())
      let ids = items.map(\.id)
      try require(.exists) {
        _ = try engine.update(ids) { item throws(StoreError) in item.identity = .other(label: "same") }
      }
      try require(.notFound) {
        _ = try engine.update(ids + [ItemID(rawValue: "x")]) { item throws(StoreError) in item.label = "x" }
      }
      try require(.locked) {
        _ = try engine.update(ids) { item throws(StoreError) in
          if item.identity == .generic(service: "b", account: "me") { throw .locked }
          item.label = "x"
        }
      }
      try require(Set(engine.items()) == before, "as before")
      try require(engine.bytes(of: ids[0]) == [0x61], "still readable")
    },
    Case(description: "items may swap their names in one update") { open in
      let engine = try open()
      let items = try ["a", "b"].map { try engine.add(KeychainSamples.generic(ExactString($0)), $0) }
      let updated = try engine.update(items.map(\.id)) { item throws(StoreError) in
        let isFirst = item.identity == .generic(service: "a", account: "me")
        item.identity = .generic(service: isFirst ? "b" : "a", account: "me")
      }
      try require(updated.map(\.identity) == items.reversed().map(\.identity), "swapped")
      try require(engine.bytes(of: items[0].id) == [0x61], "the secrets go with the ids")
    },
    Case(description: "a rewrite changes item and secret together") { open in
      let engine = try open()
      let item = try engine.add(KeychainSamples.generic("a"), "one")
      let rewritten = try engine.rewrite(item.id, readingSecret: true) { item, secret throws(StoreError) in
        item.label = "new"
        guard KeychainSamples.bytes(secret) == Array("one".utf8) else { throw .damaged(what: "secret") }
        do { try secret.resize(to: 5) } catch { throw .outOfMemory }
      }
      try require(rewritten.size == 5 && rewritten.label == "new", "both")
      try require(engine.items() == [rewritten], "stored")
      try require(engine.bytes(of: item.id) == Array("one".utf8) + [0, 0], "the new secret")
    },
    Case(description: "a rewrite that doesn't read starts empty") { open in
      let engine = try open()
      let item = try engine.add(KeychainSamples.generic("a"), "one")
      _ = try engine.rewrite(item.id, readingSecret: false) { _, secret throws(StoreError) in
        guard secret.isEmpty else { throw .damaged(what: "secret") }
      }
      try require(engine.items().first?.size == 0 && engine.bytes(of: item.id).isEmpty, "left empty")
    },
    Case(description: "a rewrite that throws changes nothing") { open in
      let engine = try open()
      let item = try engine.add(KeychainSamples.generic("a"), "one")
      try engine.add(KeychainSamples.generic("b"), "two")
      try require(.notPermitted(reason: "")) {
        _ = try engine.rewrite(item.id, readingSecret: true) { item, secret throws(StoreError) in
          item.label = "x"
          throw .notPermitted(reason: "no")
        }
      }
      try require(.exists) {
        _ = try engine.rewrite(item.id, readingSecret: false) { item, _ throws(StoreError) in
          item.identity = .generic(service: "b", account: "me")
        }
      }
      try require(.notFound) { try engine.set(ItemID(rawValue: "x"), []) }
      try require(
        engine.items().contains(item) && engine.bytes(of: item.id) == Array("one".utf8), "as before")
    },
  ]
}
