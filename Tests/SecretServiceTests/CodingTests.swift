import Model
import StoreConformance
import Testing

@testable import SecretService

/// Items as the attributes of a Secret Service, and back.
@Suite struct CodingTests {
  private func back(_ item: Item) -> Item {
    var back = ServiceItem(item).item(item.id)
    (back.created, back.modified, back.size) = (item.created, item.modified, item.size)
    back.attributes["xdg:schema"] = item.attributes["xdg:schema"]
    return back
  }

  @Test func everythingComesBack() {
    var item = KeychainSamples.full()
    #expect(back(item) == item)
    item.attributes["user"] = Array("no identity".utf8)
    item.attributes["keyhole.access"] = Array("not that".utf8)
    item.attributes["port"] = Array("7".utf8)
    #expect(back(item) == item)
    item.identity = .generic(service: "", account: "")
    item.label = "label"
    item.attributes["server"] = Array("x".utf8)
    item.attributes["service"] = Array("own".utf8)
    #expect(back(item) == item)
    item.identity = .other(label: "a/b\n")
    (item.label, item.attributes["server"]) = (nil, nil)
    #expect(back(item) == item)
  }

  @Test func flagsThatCantBeReadAreNotNone() {
    let item = ServiceItem(
      label: "", attributes: ["service": "s", "account": "a", "keyhole.access": "nonsense"])
    #expect(item.item(ItemID(rawValue: "1")).access == [.userPresence])
  }

  @Test func schemaThatIsNoneIsNotShown() {
    let item = ServiceItem(
      label: "s",
      attributes: ["service": "s", "account": "a", "xdg:schema": "org.freedesktop.Secret.Generic"])
    let read = item.item(ItemID(rawValue: "1"))
    #expect(read.attributes["xdg:schema"] == nil && !read.hasGenericSchema)
  }

  @Test func portThatIsNoNumberIsKept() {
    let attributes: [ExactString: ExactString] = [
      "server": "h", "port": "080", "xdg:schema": "org.gnome.keyring.NetworkPassword",
    ]
    let item = ServiceItem(label: "h", attributes: attributes)
    #expect(ServiceItem(item.item(ItemID(rawValue: "1"))) == item)
  }

  /// Items of other programs are stored again as they were, or with more that finds them.
  @Test(
    arguments: [
      ["xdg:schema": "org.git.Password", "user": "u", "server": "h", "protocol": "https", "extra": "x"],
      [
        "xdg:schema": "io.docker.Credentials", "server": "https://h", "username": "u", "docker_cli": "1",
        "label": "l",
      ],
      ["xdg:schema": "chrome_libsecret_os_crypt_password_v2", "application": "chrome"],
      [
        "xdg:schema": "org.freedesktop.NetworkManager.Connection", "connection-uuid": "u",
        "setting-name": "vpn", "setting-key": "password",
      ], ["service": "s", "username": "u", "application": "Python keyring library"],
      ["service": "s", "account": "a", "username": "b"],
    ] as [[ExactString: ExactString]])
  func foreignItemIsStoredAsItWas(attributes: [ExactString: ExactString]) {
    let item = ServiceItem(label: "label", attributes: attributes)
    let stored = ServiceItem(item.item(ItemID(rawValue: "1")))
    #expect(stored.label == "label")
    #expect(attributes.allSatisfy { stored.attributes[$0.key] == $0.value }, "\(stored.attributes)")
    #expect(stored.attributes.count <= attributes.count + 1)
  }

  /// The vault knows the seal of an item by its identity: one of Keyhole 0.1 keeps that.
  @Test func sealedItemKeepsItsIdentity() {
    var attributes: [ExactString: ExactString] = [
      "xdg:schema": "org.git.Password", "server": "h", "user": "u", "keyhole.sealed": "true",
    ]
    var item = ServiceItem(label: "l", attributes: attributes).item(ItemID(rawValue: "1"))
    #expect(item.identity == .other(label: "l"))
    #expect(back(item) == item)
    item.isSealed = false
    #expect(back(item) == item)
    attributes["keyhole.sealed"] = nil
    item = ServiceItem(label: "l", attributes: attributes).item(ItemID(rawValue: "1"))
    #expect(item.identity == .internet(InternetIdentity(server: "h", account: "u")))
    item.isSealed = true
    #expect(back(item) == item)
  }

  /// A schema that can't have such an identity is kept, but not as one.
  @Test func schemaOfAnotherKindIsKept() {
    for (name, identity) in [
      ("org.git.Password", ItemIdentity.generic(service: "s", account: "a")),
      ("chrome_libsecret_os_crypt_password_v2", .generic(service: "s", account: "a")),
      ("com.example.unknown", .internet(InternetIdentity(server: "h"))),
      ("io.docker.Credentials", .internet(InternetIdentity(server: "h", port: 1))),
    ] {
      var item = Item(
        id: ItemID(rawValue: "1"), identity: identity, created: Timestamp(seconds: 0),
        modified: Timestamp(seconds: 0))
      item.attributes = ["xdg:schema": Array(name.utf8), "username": Array("a".utf8)]
      let stored = ServiceItem(item).item(item.id)
      #expect(stored.identity == identity && stored.attributes["username"] == Array("a".utf8), "\(name)")
    }
  }
}
