import Model
import Notifier
import Testing

@testable import Tree

@Suite(.timeLimit(.minutes(1))) struct ChangeEventTests {
  @Test func movedKeyHasBothPathsEncoded() {
    let moved = Change(
      .moved, .key(suite: "s", key: "c/d"), previous: .key(suite: "s", key: "ö\n"), origin: .external)
    let event = ChangeEvent(moved)
    #expect(event.path == "defaults/s/c%2Fd" && event.from == "defaults/s/ö%0A")
    #expect(event.kind == .moved && event.origin == .external)
  }

  @Test func itemIsItsSecretOrItsDirectory() {
    let identity = ItemIdentity.generic(service: "s", account: "a")
    let subject = Change.Subject.item(ItemID(rawValue: "1"), identity)
    let paths = [Change.Kind.created, .modified, .deleted, .attributes, .moved].map { kind in
      ChangeEvent(Change(kind, subject, origin: .local)).path
    }
    let value = "keychain/generic/s/a/value"
    #expect(paths == [value, value, value, "keychain/generic/s/a", "keychain/generic/s/a"])
    #expect(ChangeEvent(Change(.locked, .keychain, origin: .local)).path == "keychain")
  }
}
