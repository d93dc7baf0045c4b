public import Model
import SecretMemory
public import Store

extension KeychainConformance {
  private static let uri = "otpauth://totp/a:me?secret=JBSWY3DPEHPK3PXP&issuer=a"
  private static let other = "otpauth://hotp/a:me?secret=JBSWY3DPEHPK3PXQ&counter=7"

  /// Of engines that hold an `otpauth:` URI beside an item's secret; others refuse it.
  static let secondSecrets: [Case] = [
    Case(description: "an engine that holds no otpauth URI says so") { open in
      let engine = try open()
      guard engine.otpauthURIs == nil else { return }
      let id = try engine.add(KeychainSamples.generic("a"), "secret").id
      try require(.unsupported(reason: "")) { try engine.setOtpauth(id, uri) }
      try require(open().items().first?.otpauth == nil, "no item has one")
    },
    Case(description: "an otpauth URI is set, replaced and removed, and the secret stays") { open in
      let engine = try open()
      guard engine.otpauthURIs != nil else { return }
      let item = try engine.add(KeychainSamples.generic("a"), "secret")
      try require(item.otpauth == nil, "a new item has none")
      try require(.notFound) { _ = try engine.otpauthBytes(of: item.id) }
      var expected = item
      expected.otpauth = FurtherSecret(size: uri.utf8.count, modified: KeychainSamples.time)
      try require(open.same(engine.setOtpauth(item.id, uri), expected), "with its size and time")
      try require(open.same(open().items(), [expected]), "listed so")
      try require(engine.otpauthBytes(of: item.id) == Array(uri.utf8), "its bytes")
      try engine.setOtpauth(item.id, other)
      try require(open().otpauthBytes(of: item.id) == Array(other.utf8), "replaced")
      try require(engine.bytes(of: item.id) == Array("secret".utf8), "the secret is the same")
      let removed = try engine.requireOtpauthURIs().rewriteOtpauth(of: item.id, readingSecret: false) {
        further, _ in
        further = nil
      }
      try require(open.same(removed, item) && open.same(engine.items(), [item]), "as before")
      try require(.notFound) { _ = try engine.otpauthBytes(of: item.id) }
      try require(.notFound) { try engine.setOtpauth(ItemID(rawValue: "missing"), uri) }
    },
    Case(description: "changes of an item keep its otpauth URI") { open in
      let engine = try open()
      guard engine.otpauthURIs != nil else { return }
      let item = try engine.add(KeychainSamples.generic("a"), "secret")
      try engine.setOtpauth(item.id, uri)
      try engine.set(item.id, Array("new".utf8))
      let hasPasscode = engine.locking.hasPasscode(sealed: false)
      for accessibility in Accessibility.allCases.filter({ !engine.limits.refusedClasses.contains($0) })
      where hasPasscode || accessibility != .whenPasscodeSetThisDeviceOnly {
        let changed = try engine.update([item.id]) { item throws(StoreError) in
          (item.accessibility, item.access) = (accessibility, [.userPresence])
          // Which secrets there are is not the caller's to say here.
          item.otpauth = nil
        }
        try require(changed.first?.otpauth?.size == uri.utf8.count, "it is there")
        try require(engine.otpauthBytes(of: item.id) == Array(uri.utf8), "\(accessibility)")
      }
      _ = try engine.update([item.id]) { $0.identity = .generic(service: "b", account: "me") }
      try require(open().otpauthBytes(of: item.id) == Array(uri.utf8), "moved")
      try require(engine.bytes(of: item.id) == Array("new".utf8), "and the secret")
      try engine.remove([item.id])
      try require(.notFound) { _ = try engine.otpauthBytes(of: item.id) }
      try require(engine.add(KeychainSamples.generic("b"), "again").otpauth == nil, "gone with its item")
    },
    Case(description: "an item is added with its otpauth URI, or not at all") { open in
      let engine = try open()
      guard engine.otpauthURIs != nil else { return }
      var item = KeychainSamples.generic("a")
      item.otpauth = FurtherSecret(modified: KeychainSamples.time)
      let secret = try KeychainSamples.secret("s")
      let further = try KeychainSamples.secret(uri)
      let added = try engine.requireOtpauthURIs().add(item, secret: secret, otpauth: further)
      try require(added.otpauth?.size == uri.utf8.count && open.same(open().items(), [added]), "both")
      try require(engine.otpauthBytes(of: added.id) == Array(uri.utf8), "the URI")
      let large = try KeychainSamples.secret(uri + String(repeating: "a", count: 1 << 20))
      item.identity = .generic(service: "b", account: "me")
      try require(.tooLarge(limit: 0)) {
        _ = try engine.requireOtpauthURIs().add(item, secret: secret, otpauth: large)
      }
      try require(open.same(engine.items(), [added]), "all or nothing")
    },
    Case(description: "a change of an otpauth URI that throws, or changes nothing, is none") { open in
      let (one, two) = (try open(), try open())
      guard one.otpauthURIs != nil else { return }
      let id = try one.add(KeychainSamples.generic("a"), "secret").id
      let item = try one.setOtpauth(id, uri)
      _ = try two.items()
      _ = try open.news(of: two)
      try require(.locked) {
        _ = try one.requireOtpauthURIs().rewriteOtpauth(of: id, readingSecret: true) {
          further, secret throws(StoreError) in
          further = nil
          throw .locked
        }
      }
      let same = try one.requireOtpauthURIs().rewriteOtpauth(of: id, readingSecret: true) {
        _, secret throws(StoreError) in
        guard KeychainSamples.bytes(secret) == Array(uri.utf8) else { throw .damaged(what: "URI") }
      }
      try require(open.same(same, item) && open.news(of: two) == nil, "no news")
      try one.setOtpauth(id, other)
      try require(open.news(of: two)?.first?.otpauth?.size == other.utf8.count, "news")
      try require(two.otpauthBytes(of: id) == Array(other.utf8), "read as it is now")
    },
    Case(description: "a transaction gives items their otpauth URIs") { open in
      let engine = try open()
      guard let batches = engine.batches, engine.otpauthURIs != nil else { return }
      let present = try engine.add(KeychainSamples.generic("old"), "secret")
      let new = KeychainSamples.generic("new")
      let changes: [ItemChange] = [
        .add(new), .setOtpauth(new.identity, modified: KeychainSamples.time),
        .setOtpauth(present.identity, modified: KeychainSamples.time),
      ]
      let contents = ["value", uri, other]
      try require(.notFound) {
        let missing = ItemChange.setOtpauth(.other(label: "none"), modified: KeychainSamples.time)
        _ = try batches.apply(changes + [missing]) { index throws(StoreError) in
          try Self.secret((contents + [uri])[index])
        }
      }
      try require(open.same(engine.items(), [present]), "all or nothing")
      _ = try batches.apply(changes) { index throws(StoreError) in try Self.secret(contents[index]) }
      let added = try open().items().first { $0.identity == new.identity }
      try require(added.map { try engine.otpauthBytes(of: $0.id) } == Array(uri.utf8), "of the new one")
      try require(engine.otpauthBytes(of: present.id) == Array(other.utf8), "of the present one")
      try require(engine.bytes(of: present.id) == Array("secret".utf8), "whose secret stays")
    },
  ]

  /// Of engines that seal items with a password of their own.
  static let secondSecretsWithPasswords: [Case] = [
    Case(description: "an item's password holds for its otpauth URI") { open in
      let engine = try open()
      guard engine.otpauthURIs != nil, engine.passwords != nil else { return }
      let id = try engine.add(KeychainSamples.generic("a"), "secret").id
      try engine.setOtpauth(id, uri)
      _ = try engine.using(password("p")).update([id]) { $0.access = [.applicationPassword] }
      try require(.accessDenied(reason: "")) { _ = try engine.otpauthBytes(of: id) }
      try require(.accessDenied(reason: "")) { try engine.setOtpauth(id, other) }
      try require(.rejected) { _ = try engine.using(password("q")).otpauthBytes(of: id) }
      try require(.rejected) { try engine.using(password("q")).setOtpauth(id, other) }
      try require(engine.using(password("p")).otpauthBytes(of: id) == Array(uri.utf8), "opens with it")
      try engine.using(password("p")).set(id, Array("new".utf8))
      try engine.requirePasswords().changePassword(of: id, from: password("p"), to: password("q"))
      try require(.rejected) { _ = try engine.using(password("p")).otpauthBytes(of: id) }
      try require(open().using(password("q")).otpauthBytes(of: id) == Array(uri.utf8), "the new one opens it")
      _ = try engine.using(password("q")).update([id]) { $0.access = [] }
      try require(open().otpauthBytes(of: id) == Array(uri.utf8), "without a password again")
    },
    Case(description: "an otpauth URI is removed without the item's password") { open in
      let engine = try open()
      guard engine.otpauthURIs != nil, engine.passwords != nil else { return }
      var item = KeychainSamples.generic("a")
      item.access = [.applicationPassword]
      let id = try engine.using(password("p")).add(item, "secret").id
      try engine.using(password("p")).setOtpauth(id, uri)
      _ = try engine.requireOtpauthURIs().rewriteOtpauth(of: id, readingSecret: false) { further, _ in
        further = nil
      }
      try require(engine.items().first?.otpauth == nil, "removed")
      try require(engine.using(password("p")).bytes(of: id) == Array("secret".utf8), "the secret is there")
    },
  ]

  private static func secret(_ text: String) throws(StoreError) -> SecretBytes {
    do { return try KeychainSamples.secret(text) } catch { throw .outOfMemory }
  }
}

extension KeychainEngine {
  /// The bytes of a test's `otpauth:` URI.
  public func otpauthBytes(of item: ItemID) throws -> [UInt8] {
    KeychainSamples.bytes(try requireOtpauthURIs().otpauth(of: item))
  }

  /// Gives an item a test's `otpauth:` URI.
  @discardableResult public func setOtpauth(_ item: ItemID, _ uri: String) throws -> Item {
    let new = try KeychainSamples.secret(uri)
    return try requireOtpauthURIs().rewriteOtpauth(of: item, readingSecret: false) {
      further, secret throws(StoreError) in
      further = FurtherSecret(modified: KeychainSamples.time)
      do { secret = try SecretBytes(copying: new) } catch { throw .outOfMemory }
    }
  }
}
