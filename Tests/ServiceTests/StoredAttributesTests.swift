import Model
import Testing
import Tree

@testable import Service

/// A client's attributes in an item, and back.
struct StoredAttributesTests {
  private func item(_ attributes: StoredAttributes.Attributes, distinction: Distinction = .none) -> Item {
    let never = Timestamp(seconds: 0)
    var item = Item(id: ItemID(rawValue: "1"), identity: .other(label: ""), created: never, modified: never)
    StoredAttributes.change(&item, label: "label", attributes: attributes, distinction: distinction)
    return item
  }

  private static let examples: [StoredAttributes.Attributes] = [
    [:], ["a": "b"], ["service": "s"], ["service": "s", "username": "u"], ["service": "s", "account": "u"],
    ["service": "s", "account": "a", "username": "b"],
    ["service": "s", "username": "u", "application": "Python keyring library"],
    ["server": "h"], ["server": "h", "user": "u", "port": "80"], ["server": "h", "user": "u", "port": "x"],
    ["xdg:schema": "org.freedesktop.Secret.Generic", "service": "s", "username": "u"],
    ["xdg:schema": "org.gnome.keyring.NetworkPassword", "server": "h", "user": ""],
    ["xdg:schema": "org.git.Password", "server": "h", "user": "u", "protocol": "https"],
    ["xdg:schema": "chrome_libsecret_os_crypt_password_v2", "application": "chrome"],
    ["xdg:schema": "io.docker.Credentials", "server": "h", "username": "u"],
    ["xdg:schema": "unknown", "x": "é"], ["xdg:schema": "org.freedesktop.Secret.Generic", "server": "h"],
    ["xdg:schema": "org.freedesktop.Secret.Generic", "a": "b"],
    ["server": "h", "account": "a", "path": "/x"],
    ["xdg:schema": "chrome_libsecret_os_crypt_password", "application": "a", "service": "s", "account": "b"],
    ["service": "s", "username": "u", "type": "token", "isInvisible": "no", "creator": "me"],
    ["xdg:schema": "io.docker.Credentials", "service": "s", "account": "a"],
  ]

  @Test(arguments: examples)
  func attributesComeBack(_ attributes: StoredAttributes.Attributes) {
    #expect(StoredAttributes.attributes(of: item(attributes)) == attributes)
    #expect(StoredAttributes.label(of: item(attributes)) == "label")
  }

  @Test(arguments: examples)
  func attributesOfAnItemApartComeBack(_ attributes: StoredAttributes.Attributes) {
    let apart = item(attributes, distinction: .number(2))
    #expect(apart.identity == .other(label: "label (2)"))
    #expect(StoredAttributes.label(of: apart) == "label")
    #expect(StoredAttributes.attributes(of: apart) == attributes)
  }

  /// The item that an import makes of the attributes which an export lists.
  private func imported(_ item: Item) throws -> Item {
    var copy = Item(id: item.id, identity: item.identity, created: item.created, modified: item.modified)
    for name in ItemAttributes.names(of: item) {
      let value = try ItemAttributes.value(name, of: item)
      try ItemAttributes.set(name, to: value, on: &copy, isImported: true)
    }
    return copy
  }

  @Test(arguments: examples)
  func attributesOutliveAnExport(_ attributes: StoredAttributes.Attributes) throws {
    for distinction in [Distinction.none, .label, .number(2)] {
      let first = item(attributes, distinction: distinction)
      let second = try imported(first)
      #expect(second.attributes == first.attributes && second.label == first.label)
      #expect(StoredAttributes.attributes(of: second) == attributes)
      #expect(StoredAttributes.label(of: second) == "label")
    }
  }

  /// The keyring of another program has just the attributes that were given, and they come back from it, also where GNOME Keyring
  /// has added its schema to an item without one.
  @Test(arguments: examples)
  func attributesOutliveAnotherKeyring(_ attributes: StoredAttributes.Attributes) {
    for distinction in [Distinction.none, .number(2)] {
      let first = item(attributes, distinction: distinction)
      var stored = ServiceItem(first)
      #expect(stored.label == "label")
      #expect(stored.attributes.filter { !$0.key.string.hasPrefix("keyhole.") } == attributes)
      for _ in 1...2 {
        let second = stored.item(first.id)
        #expect(second.identity == first.identity && StoredAttributes.label(of: second) == "label")
        #expect(StoredAttributes.attributes(of: second) == attributes)
        if stored.attributes["xdg:schema"] == nil { stored.attributes["xdg:schema"] = SecretSchema.none }
      }
    }
  }

  /// An item that another program has stored in its keyring comes as it was given there, and goes back so.
  @Test(arguments: examples)
  func attributesOfAnotherProgramComeAsTheyAre(_ attributes: StoredAttributes.Attributes) {
    // GNOME Keyring adds the same schema to an item without one.
    var given = attributes
    if given["xdg:schema"] == SecretSchema.none { given["xdg:schema"] = nil }
    let item = ServiceItem(label: "label", attributes: attributes).item(ItemID(rawValue: "1"))
    #expect(StoredAttributes.attributes(of: item) == given)
    #expect(ServiceItem(item).attributes == given)
  }

  /// The notes of an item are of the identity that it had.
  @Test func notesOfAnotherIdentityTakeNothing() {
    var moved = item(["service": "s", "username": "u"])
    #expect(moved.omittedNames == ["account"])
    moved.identity = .generic(service: "t", account: "v")
    #expect(StoredAttributes.attributes(of: moved) == ["service": "t", "username": "v"])
    moved.omittedNames = ["account", "username", "service"]
    #expect(ServiceItem(moved).item(moved.id).identity == moved.identity)
    moved.identity = .internet(InternetIdentity(server: "h", account: "u"))
    moved.omittedNames = ["server"]
    #expect(ServiceItem(moved).item(moved.id).identity == moved.identity)
  }

  /// The attributes of a kept item change with it: what was added by hand is shown, whatever the notes say.
  @Test func attributeThatIsSetLaterIsShown() {
    var item = item(["service": "s", "account": "a"])
    item.attributes["username"] = Array("b".utf8)
    #expect(StoredAttributes.attributes(of: item) == ["service": "s", "account": "a", "username": "b"])
  }

  @Test func searchForNoSchemaFindsItemsWithoutOne() {
    let none: StoredAttributes.Attributes = ["xdg:schema": SecretSchema.none, "a": "b"]
    #expect((["a": "b"] as StoredAttributes.Attributes).has(none))
    #expect(none.has(none) && none.has(["a": "b"]))
    #expect(!(["a": "b", "xdg:schema": "x"] as StoredAttributes.Attributes).has(none))
    #expect(!(["a": "b"] as StoredAttributes.Attributes).has(["xdg:schema": "x"]))
    let index = AttributeIndex([item(["a": "b"])])
    #expect(index.candidates(for: none).count == 1)
  }

  @Test(arguments: ["text/plain", "text/plain; charset=utf8", "", "application/octet-stream", "é"])
  func contentTypeComesBack(_ type: String) {
    var item = item(["a": "b"])
    #expect(StoredAttributes.contentType(of: item) == "text/plain")
    StoredAttributes.change(&item, label: "label", attributes: ["a": "b"], contentType: type)
    #expect(StoredAttributes.contentType(of: item) == type)
    StoredAttributes.change(&item, label: "label", attributes: ["c": "d"])
    #expect(StoredAttributes.contentType(of: item) == type)
    StoredAttributes.note("text/plain", in: &item)
    #expect(StoredAttributes.contentType(of: item) == "text/plain")
  }

  @Test func identitiesAreThoseOfTheTable() {
    let generic = ItemIdentity.generic(service: "s", account: "u")
    #expect(item(["service": "s", "username": "u"]).identity == generic)
    #expect(item(["a": "b"]).identity == .other(label: "label"))
    #expect(item(["server": "h"]).identity.itemClass == .internet)
  }

  @Test func changedAttributesKeepTheProtection() {
    var guarded = item(["service": "s", "username": "u"])
    (guarded.access, guarded.programs) = ([.userPresence], "ask *")
    guarded.attributes["keyhole.enrolled"] = [1]
    StoredAttributes.change(&guarded, label: "new", attributes: ["q": "r"], contentType: "text/x")
    #expect(guarded.access == [.userPresence] && guarded.programs == "ask *")
    #expect(guarded.attributes["keyhole.enrolled"] == [1])
    #expect(StoredAttributes.attributes(of: guarded) == ["q": "r"])
    #expect(StoredAttributes.contentType(of: guarded) == "text/x")
  }

  @Test func ownAttributesCanNotBeSet() {
    #expect(StoredAttributes.attributes([("keyhole.access", "")]) == nil)
    #expect(StoredAttributes.attributes([("a", "b"), ("a", "c")]) == ["a": "c"])
  }

  @Test func indexFindsByAnyAttributes() {
    var index = AttributeIndex([])
    for number in 0..<100 {
      var one = item(["n": ExactString("\(number)"), "all": "x"])
      one.id = ItemID(rawValue: "\(number)")
      index.insert(one)
    }
    #expect(index.candidates(for: ["n": "7", "all": "x"]) == [ItemID(rawValue: "7")])
    #expect(index.candidates(for: ["n": "7", "all": "y"]).isEmpty)
    #expect(index.candidates(for: ["all": "x"]).count == 100)
    #expect(index.candidates(for: [:]).count == 100)
    var moved = item(["n": "new"])
    moved.id = ItemID(rawValue: "7")
    index.insert(moved)
    index.remove(ItemID(rawValue: "8"))
    #expect(index.candidates(for: ["n": "7"]).isEmpty && index.candidates(for: ["n": "8"]).isEmpty)
    #expect(index.candidates(for: ["n": "new"]) == [ItemID(rawValue: "7")])
  }
}
