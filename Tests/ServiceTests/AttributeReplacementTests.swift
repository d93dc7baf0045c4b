import Model
import Testing

@testable import Service

/// Which item CreateItem with `replace` takes the place of, and which attributes that has then.
struct AttributeReplacementTests {
  typealias Attributes = StoredAttributes.Attributes

  private static func item(_ identity: ItemIdentity, _ own: [ExactString: String] = [:]) -> Item {
    let never = Timestamp(seconds: 0)
    var item = Item(id: ItemID(rawValue: "1"), identity: identity, created: never, modified: never)
    item.attributes = own.mapValues { Array($0.utf8) }
    return item
  }

  private static func clientItem(_ attributes: Attributes) -> Item {
    var item = item(.other(label: ""))
    StoredAttributes.change(&item, label: "label", attributes: attributes)
    StoredAttributes.noteClient(in: &item)
    return item
  }

  private static let generic = ItemIdentity.generic(service: "s", account: "a")

  private static func internet(_ protocol: ExactString?) -> ItemIdentity {
    var identity = InternetIdentity(server: "h", account: "u")
    identity.protocol = `protocol`
    return .internet(identity)
  }

  private static func replacement(of item: Item, by wanted: Attributes) -> Attributes? {
    StoredAttributes.Replacement(of: item, label: "new", by: wanted)?.attributes
  }

  /// An item that Keyhole has made, the attributes that a client stores, and those that the item has then.
  private static let ofKeyhole: [(Item, Attributes, Attributes)] = [
    // Python's keyring, go-keyring, keytar.
    (
      item(generic), ["service": "s", "username": "a", "application": "Python keyring library"],
      ["service": "s", "username": "a", "account": "a", "application": "Python keyring library"]
    ),
    (
      item(generic), ["service": "s", "username": "a"],
      ["service": "s", "username": "a", "account": "a"]
    ),
    (
      item(generic, ["color": "blue"]), ["service": "s", "account": "a", "xdg:schema": "com.example"],
      ["service": "s", "username": "a", "account": "a", "xdg:schema": "com.example", "color": "blue"]
    ),
    // git's helper, and docker's, whose attributes are under another schema than Keyhole's.
    (
      item(internet("https")),
      ["xdg:schema": "org.git.Password", "server": "h", "user": "u", "protocol": "https"],
      ["xdg:schema": "org.git.Password", "server": "h", "user": "u", "protocol": "https"]
    ),
    (
      item(internet(nil)),
      [
        "xdg:schema": "io.docker.Credentials", "server": "h", "username": "u", "docker_cli": "1",
        "label": "Docker Credentials",
      ],
      [
        "xdg:schema": "io.docker.Credentials", "server": "h", "username": "u", "docker_cli": "1",
        "label": "Docker Credentials", "user": "u",
      ]
    ),
  ]

  @Test(arguments: ofKeyhole)
  func whatKeyholeMadeIsReplaced(_ item: Item, _ wanted: Attributes, _ expected: Attributes) throws {
    #expect(Self.replacement(of: item, by: wanted) == expected)
    // The item of the same identity has them, and a search by those of the client finds it.
    var changed = item
    StoredAttributes.change(&changed, label: "new", attributes: expected)
    #expect(changed.identity == item.identity)
    #expect(StoredAttributes.attributes(of: changed) == expected)
    #expect(StoredAttributes.attributes(of: changed).has(wanted))
    #expect(Self.replacement(of: changed, by: wanted) == expected)
  }

  /// Of a client, just the same attributes count.
  @Test func whatAClientMadeIsReplacedByItsAttributesOnly() {
    let one = Self.clientItem(["service": "s", "username": "a"])
    #expect(Self.replacement(of: one, by: ["service": "s", "username": "a"]) != nil)
    #expect(Self.replacement(of: one, by: ["service": "s", "username": "a", "application": "x"]) == nil)
    #expect(Self.replacement(of: one, by: ["service": "s", "account": "a"]) == nil)
    let further = Self.clientItem(["service": "s", "username": "a", "application": "x"])
    #expect(Self.replacement(of: further, by: ["service": "s", "username": "a"]) == nil)
    // Also where the client gave all that Keyhole gives an item.
    for (all, fewer): (Attributes, Attributes) in [
      (
        ["service": "s", "account": "a", "username": "a", "application": "x"],
        ["service": "s", "account": "a"]
      ),
      (["service": "s", "account": "a", "username": "a"], ["service": "s", "username": "a"]),
      (
        ["xdg:schema": SecretSchema.network, "server": "h", "user": "u", "object": "o"],
        ["server": "h", "user": "u"]
      ),
    ] {
      var complete = Self.clientItem(all)
      #expect(complete.omittedNames.isEmpty && complete.isOfClient, "\(all)")
      #expect(Self.replacement(of: complete, by: all) == all)
      #expect(Self.replacement(of: complete, by: fewer) == nil, "\(all)")
      StoredAttributes.change(&complete, label: "new", attributes: all)
      #expect(complete.isOfClient && Self.replacement(of: complete, by: fewer) == nil, "\(all)")
    }
    let other = Self.clientItem(["a": "b"])
    #expect(Self.replacement(of: other, by: ["a": "b"]) == ["a": "b"])
    #expect(Self.replacement(of: other, by: ["a": "b", "xdg:schema": SecretSchema.none]) != nil)
    #expect(Self.replacement(of: other, by: ["a": "b", "c": "d"]) == nil)
    #expect(Self.replacement(of: Self.clientItem(["a": "b", "c": "d"]), by: ["a": "b"]) == nil)
  }

  @Test func anotherIdentityAndAnotherValueAreAnotherItem() {
    let made = Self.item(Self.generic, ["application": "x"])
    for wanted: Attributes in [
      ["service": "s", "username": "b"], ["service": "t", "username": "a"], ["server": "s", "user": "a"],
      ["service": "s", "username": "a", "application": "y"], ["service": "s"], [:],
      ["service": "s", "account": "a", "username": "b"],
    ] {
      #expect(Self.replacement(of: made, by: wanted) == nil, "\(wanted)")
    }
    #expect(Self.replacement(of: Self.item(Self.internet("https")), by: ["server": "h", "user": "u"]) == nil)
    #expect(Self.replacement(of: Self.item(.other(label: "new")), by: ["a": "b"]) == nil)
  }

  /// Attributes that clients don't see stay.
  @Test func attributesThatNoTextHoldsStay() {
    var made = Self.item(Self.generic)
    made.attributes = ["bytes": [0, 1], "keyhole.enrolled": [2], "comment": Array("c".utf8)]
    let wanted: Attributes = ["service": "s", "username": "a", "application": "x"]
    StoredAttributes.change(
      &made, label: "new", attributes: Self.replacement(of: made, by: wanted) ?? [:])
    #expect(made.attributes["bytes"] == [0, 1] && made.attributes["keyhole.enrolled"] == [2])
    #expect(made.attributes["comment"] == Array("c".utf8))
    #expect(made.identity == Self.generic)
  }
}
