import ImportExport
import InMemory
import KeychainSelection
import Model
import Notifier
import Platform
import SecretMemory
import Store
import Testing

@testable import Formats
@testable import Service

/// Decisions of commands before they import, export, move or watch.
@Suite struct ExchangeTests {
  @Test func targetOfAnImportIsASuiteOrAService() throws {
    let suite = try #require(ImportTarget("defaults/com.example.app"))
    #expect(suite.suite == "com.example.app" && suite.service == nil)
    let service = try #require(ImportTarget("/keychain/generic/my service"))
    #expect(service.service == "my service" && service.suite == nil)
  }

  @Test(arguments: ["", "defaults", "defaults/s/k", "keychain/generic", "keychain/internet/s", "other/s"])
  func otherPathIsNoTarget(path: String) {
    #expect(ImportTarget(path) == nil)
  }

  @Test func conflictNamesTheFirstPaths() {
    #expect(
      ImportConflict.present(["a", "b"]).message
        == "other values are there already: a, b; nothing was imported (--replace or --keep decides)")
    #expect(ImportConflict.duplicates(["a", "b", "c", "d", "e"]).message.contains("a, b, c and 2 more"))
  }

  @Test func exportHasEachThingOnce() throws {
    let fixture = try SessionFixture()
    for path in ["defaults/b/k", "defaults/a/2", "defaults/a/1"] { try fixture.write(path, "1") }
    try fixture.write("keychain/generic/s/p/value", "secret")
    var collection = ExportCollection(session: fixture.session)
    for path in ["defaults/a", "", "keychain/generic/s/p/value"] { try collection.add(TreePath(path)) }
    #expect(collection.contents.suites.map(\.0) == ["a", "b"])
    #expect(collection.contents.suites.first?.1.map(\.key) == ["1", "2"])
    #expect(collection.contents.items.map(\.path) == ["keychain/generic/s/p"])
    guard let secret = try collection.contents.items[0].secret() else {
      Issue.record("the secret was left out")
      return
    }
    #expect(secret.unprotected == Array("secret".utf8))
    #expect(collection.damaged.failure == nil)
  }

  @Test func damagedSecretIsNamedAndLeftOut() throws {
    let fixture = try SessionFixture()
    try fixture.write("keychain/generic/s/p/value", "secret")
    var collection = ExportCollection(session: fixture.session)
    try collection.add(TreePath("keychain"))
    fixture.keychain.fail(with: .damaged(what: "the item"))
    let secret = try collection.contents.items[0].secret()
    let isLeftOut = secret == nil
    #expect(isLeftOut && collection.damaged.failure?.subject == "keychain/generic/s/p")
  }

  @Test func itemsOfASecretServiceAreInNoBackup() throws {
    let chosen = ServiceItems(isChosen: true, count: 1)
    #expect(reason { try chosen.requireNone() }?.contains("its 1 item is not in a backup") == true)
    let hidden = ServiceItems(isChosen: false, count: 2)
    #expect(reason { try hidden.requireNone() } == nil)
    #expect(hidden.note?.contains("its 2 items are not in the backup") == true)
    #expect(ServiceItems(isChosen: false, count: nil).note == nil)
    #expect(ServiceItems(isChosen: true, count: nil).note?.contains("its items are") == true)
  }

  @Test func eventConcernsPathsAboveAndBelow() {
    let event = ChangeEvent(.modified, path: "defaults/a/k", origin: .external)
    #expect(["", "defaults", "defaults/a", "defaults/a/k"].allSatisfy { event.concerns(TreePath($0)) })
    #expect(!event.concerns(TreePath("defaults/ab")) && !event.concerns(TreePath("keychain")))
    let move = ChangeEvent(.moved, path: "defaults/b", from: "defaults/a", origin: .external)
    #expect(move.concerns(TreePath("defaults/a")) && move.concerns(TreePath("defaults/b/k")))
    #expect(!move.concerns(TreePath("defaults/c")))
  }

  @Test func commandForAnEventGetsItsVariablesOnly() {
    let event = ChangeEvent(.moved, path: "defaults/b", from: "defaults/a", origin: .external)
    #expect(
      event.environment(added: ["HOME=/", "KEYHOLE_PATH=old", "KEYHOLE_X=y"]) == [
        "HOME=/", "KEYHOLE_KIND=moved", "KEYHOLE_PATH=defaults/b", "KEYHOLE_FROM=defaults/a",
      ])
  }

  @Test(arguments: [
    (ItemIdentity.generic(service: "s", account: "p"), "keychain/generic/s/p"),
    (.generic(service: "a/b", account: "é"), "keychain/generic/a%2Fb/é"),
    (.other(label: "l"), "keychain/other/l"),
  ])
  func itemHasItsPath(identity: ItemIdentity, path: String) {
    #expect(KeychainMove.path(identity) == path)
  }

  @Test func attributeHasItsValues() {
    #expect(Completion.values(ofAttributeBefore: 1, in: ["keyhole.eol", ""]) == ["exact"])
    #expect(Completion.values(ofAttributeBefore: 1, in: ["user.keyhole.eol", ""]) == ["exact"])
    #expect(Completion.values(ofAttributeBefore: 1, in: ["keyhole.type", ""]).contains("integer"))
    #expect(Completion.values(ofAttributeBefore: 1, in: ["comment", ""]).isEmpty)
    #expect(Completion.values(ofAttributeBefore: 0, in: ["keyhole.eol"]).isEmpty)
  }
}
