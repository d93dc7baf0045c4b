import Model
import Testing

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
    ["xdg:schema": "unknown", "x": "é"],
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
