import Model
import Store
import StoreConformance
import Testing
import Tree

/// Paths from the top of the tree.
@Suite(.timeLimit(.minutes(1))) struct TreePathTests {
  let fixture = TreeFixture(["key": .integer(1)])

  private func path(_ text: String) -> [String] { text.split(separator: "/").map(String.init) }

  private func node(_ text: String) throws -> Node { try fixture.tree.node(at: path(text)) }

  @Test func itemIsFoundByItsNames() throws {
    for service in ["a", "b", ".hidden"] {
      _ = try fixture.items.add(KeychainSamples.generic(ExactString(service), "me"), "secret")
    }
    for service in ["a", "b", "%2Ehidden"] {
      #expect(try node("keychain/generic/\(service)/me/value").path == "keychain/generic/\(service)/me/value")
      #expect(try node("keychain/generic/\(service)/me").isDirectory)
    }
    #expect(throws: StoreError.notFound) { try node("keychain/generic/a/you") }
    #expect(throws: StoreError.notFound) { try node("keychain/generic/a/me/other") }
    #expect(throws: StoreError.notFound) { try node("keychain/generic/.hidden/me") }
    #expect(throws: StoreError.notDirectory) { try node("keychain/generic/a/me/value/more") }
  }

  @Test func itIsTheSameNodeAsByName() throws {
    _ = try fixture.items.add(KeychainSamples.generic("a", "me"), "secret")
    for text in [
      "keychain", "keychain/generic", "keychain/generic/a", "keychain/generic/a/me/value", "defaults/s/key",
    ] {
      #expect(try node(text) === fixture.node(text), "\(text)")
    }
    #expect(try fixture.tree.node(at: []) === fixture.tree.root)
    for text in ["nothing", "keychain/none/a/b", "keychain/generic/b", "defaults/t/key", "defaults/s/none"] {
      #expect(throws: StoreError.notFound) { try node(text) }
    }
  }

  @Test func newItemIsMadeWithItsFolder() throws {
    let item = try fixture.tree.makeDirectories(at: path("keychain/generic/a/me"))
    #expect(item.path == "keychain/generic/a/me")
    let handle = try fixture.tree.create("value".utf8, in: item, .write, exclusive: true, by: .current)
    try handle.write(Array("secret".utf8).span, at: 0, by: .current)
    try handle.flush(by: .current)
    handle.close()
    #expect(try fixture.items.items().map(\.identity) == [.generic(service: "a", account: "me")])
    #expect(try fixture.tree.makeDirectories(at: path("keychain/generic/a/me")) === item)
    #expect(try fixture.list("keychain/generic/a") == ["me"])
  }

  @Test func suiteIsMade() throws {
    #expect(try fixture.tree.makeDirectories(at: path("defaults/new")).path == "defaults/new")
    #expect(fixture.exists("defaults/new"))
  }

  @Test(arguments: [
    "keychain/generic/a", "keychain/generic/.a/b", "keychain/generic/a%/b", "keychain/other/a/b",
    "keychain/x/a/b",
    "keychain/internet/a/b;x=1", "nothing/a", "defaults/s/key/more",
  ]) func pathsThatCanNotBeMade(text: String) {
    guard text != "keychain/generic/a" else {
      #expect((try? fixture.tree.makeDirectories(at: path(text)))?.isDirectory == true)
      return
    }
    #expect(throws: StoreError.self) { try fixture.tree.makeDirectories(at: path(text)) }
  }
}
