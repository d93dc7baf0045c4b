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
    #expect(item.item(ItemID(rawValue: "1")).attributes.isEmpty)
  }

  @Test func portThatIsNoNumberIsKept() {
    let attributes: [ExactString: ExactString] = [
      "server": "h", "port": "080", "xdg:schema": "org.gnome.keyring.NetworkPassword",
    ]
    let item = ServiceItem(label: "h", attributes: attributes)
    #expect(ServiceItem(item.item(ItemID(rawValue: "1"))) == item)
  }
}
