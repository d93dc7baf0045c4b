import Formats
import Model
import SecretServiceProtocol
import Store
import Testing

@testable import Service

/// The collections that clients have made, and their aliases.
struct FurtherCollectionsTests {
  private func made(_ labels: String...) throws -> FurtherCollections {
    var collections = FurtherCollections()
    for label in labels { _ = try collections.add(label, alias: "", [], at: 7) }
    return collections
  }

  @Test func namesDiffer() throws {
    var collections = try made("Work", "Work", "Work", "login", "✓")
    #expect(Set(collections.entries.keys) == ["Work", "Work_2", "Work_3", "login_2", "collection"])
    #expect(collections.entries["login_2"] == FurtherCollections.Entry(label: "login", created: 7))
    // An item names it.
    #expect(try collections.add("Other", alias: "", ["Other"], at: 7) == "Other_2")
  }

  @Test func aliasesAreTheStandardUntilSet() throws {
    var collections = try made("Work")
    #expect(collections.allAliases { _ in false } == ServiceObject.Collection.standardAliases)
    try collections.set("default", to: .further("Work"))
    try collections.set("own", to: .login)
    var aliases = collections.allAliases { _ in false }
    #expect(aliases["default"] == .further("Work") && aliases["own"] == .login)
    try collections.set("default", to: nil)
    #expect(collections.allAliases { _ in false }["default"] == nil)
    try collections.set("default", to: .further("Work"))
    collections.remove("Work")
    aliases = collections.allAliases { _ in false }
    #expect(aliases["default"] == .login && aliases["own"] == .login && collections.entries.isEmpty)
  }

  /// It went with its items by another road than Delete: clients store in `login`, and not in nothing.
  @Test func aliasOfACollectionThatIsGoneIsTheStandard() throws {
    var collections = FurtherCollections()
    try collections.set("default", to: .further("Work"))
    try collections.set("own", to: .further("Work"))
    #expect(collections.allAliases { _ in true }["default"] == .further("Work"))
    let aliases = collections.allAliases { _ in false }
    #expect(aliases["default"] == .login && aliases["own"] == nil)
  }

  @Test func exportKeepsLabelsAndAliases() throws {
    var collections = try made("My work", "Empty")
    collections.loginLabel = "Mine"
    try collections.set("default", to: .further("My_work"))
    try collections.set("own", to: .login)
    var other = FurtherCollections()
    try other.add(collections.exported, replacing: false)
    #expect(other == collections)
    // Labels that are there stay, unless they are replaced.
    var present = FurtherCollections()
    present.entries["My_work"] = FurtherCollections.Entry(label: "Other", created: 3)
    try present.add(collections.exported, replacing: false)
    #expect(present.entries["My_work"]?.label == "Other" && present.entries["Empty"]?.label == "Empty")
    try present.add(collections.exported, replacing: true)
    #expect(present.entries["My_work"] == FurtherCollections.Entry(label: "My work", created: 3))
  }

  @Test func importOfWhatNoClientCouldHaveMadeIsRefused() throws {
    var bad = ServiceCollections()
    for name in ["a b", "session", ""] {
      bad.entries = [name: ServiceCollections.Entry(label: "x")]
      var collections = FurtherCollections()
      #expect(throws: ProtocolError.self) { try collections.add(bad, replacing: true) }
    }
    bad.entries = [:]
    for aliases in [["login": "work"], ["default": "session"], ["a b": "work"], ["own": "a/b"]] {
      bad.aliases = aliases
      var collections = FurtherCollections()
      #expect(throws: ProtocolError.self) { try collections.add(bad, replacing: true) }
    }
  }

  @Test func someAliasesAreRefused() throws {
    var collections = try made("Work")
    for alias in ["login", "session", "", "a b", "ä", String(repeating: "x", count: 65)] {
      #expect(throws: ProtocolError.self) { try collections.set(alias, to: .further("Work")) }
    }
    #expect(throws: ProtocolError.self) { try collections.set("default", to: .session) }
    #expect(collections.aliases.isEmpty)
    try collections.set("login", to: .login)
  }

  @Test func thereAreLimits() throws {
    var collections = FurtherCollections()
    for _ in 0..<FurtherCollections.most { _ = try collections.add("x", alias: "", [], at: 0) }
    #expect(throws: ProtocolError.self) { try collections.add("x", alias: "", [], at: 0) }
    for number in 0..<FurtherCollections.most { try collections.set("a\(number)", to: .login) }
    #expect(throws: ProtocolError.self) { try collections.set("further", to: .login) }
    try collections.set("a1", to: nil)
    let long = String(repeating: "x", count: FurtherCollections.longestLabel + 1)
    #expect(throws: ProtocolError.self) { try FurtherCollections.check(label: long) }
  }

  @Test func itemsAreInTheCollectionThatTheyName() {
    let never = Timestamp(seconds: 0)
    var item = Item(id: ItemID(rawValue: "1"), identity: .other(label: ""), created: never, modified: never)
    #expect(StoredAttributes.collection(of: item) == .login)
    StoredAttributes.place(&item, in: .further("Work"))
    StoredAttributes.change(&item, label: "l", attributes: ["service": "s", "account": "a"])
    #expect(StoredAttributes.collection(of: item) == .further("Work"))
    #expect(StoredAttributes.attributes(of: item) == ["service": "s", "account": "a"])
    for name in ["login", "session", "ä", ""] {
      item.attributes[Item.collectionAttribute] = Array(name.utf8)
      #expect(StoredAttributes.collection(of: item) == .login)
    }
  }

  @Test func indexKnowsTheCollectionOfEachItem() {
    let never = Timestamp(seconds: 0)
    var item = Item(id: ItemID(rawValue: "1"), identity: .other(label: "l"), created: never, modified: never)
    var index = AttributeIndex([item])
    #expect(index.items(of: .login) == [item.id] && index.namedCollections.isEmpty)
    StoredAttributes.place(&item, in: .further("Work"))
    index.insert(item)
    #expect(index.items(of: .login).isEmpty && index.collection(of: item.id) == .further("Work"))
    #expect(index.namedCollections == ["Work"])
    index.remove(item.id)
    #expect(index.namedCollections.isEmpty && index.collection(of: item.id) == nil)
  }
}
