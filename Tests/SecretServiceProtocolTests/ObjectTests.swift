import SecretServiceProtocol
import Testing

struct ObjectTests {
  @Test(arguments: [
    (ServiceObject.service, "/org/freedesktop/secrets"),
    (.collection(.login), "/org/freedesktop/secrets/collection/login"),
    (.collection(.session), "/org/freedesktop/secrets/collection/session"),
    (.collection(.further("Work_2")), "/org/freedesktop/secrets/collection/Work_2"),
    (.item(.further("w"), "x"), "/org/freedesktop/secrets/collection/w/x"),
    (.item(.login, "a_b"), "/org/freedesktop/secrets/collection/login/a_b"),
    (.session(7), "/org/freedesktop/secrets/session/7"),
    (.prompt(12), "/org/freedesktop/secrets/prompt/12"),
  ])
  func pathsLeadBack(_ object: ServiceObject, _ path: String) {
    #expect(object.path == path)
    #expect(ServiceObject(path: path) == object)
  }

  @Test func aliasesArePathsToo() {
    let alias = "/org/freedesktop/secrets/aliases/default"
    #expect(ServiceObject(path: alias) == .collection(.login))
    #expect(ServiceObject(path: alias + "/x") == .item(.login, "x"))
    #expect(ServiceObject(path: alias, aliases: ["default": .further("w")]) == .collection(.further("w")))
    #expect(ServiceObject(path: alias, aliases: [:]) == nil)
  }

  @Test(arguments: [
    "/", "/org/freedesktop/secretsx", "/org/freedesktop/secrets/collection",
    "/org/freedesktop/secrets/collection/ö", "/org/freedesktop/secrets/aliases/other",
    "/org/freedesktop/secrets/session/x",
    "/org/freedesktop/secrets/session/1/2", "/org/freedesktop/secrets/collection/login/a/b",
    "/org/freedesktop/secrets/prompt/-1", "/org/freedesktop/secrets/",
  ])
  func otherPathsAreNoObjects(_ path: String) { #expect(ServiceObject(path: path) == nil) }

  @Test(arguments: [
    ("Work", "Work"), ("Ä b/c ✓ ../d", "_b_c_d"), ("", "collection"), ("✓", "collection"), ("a__b", "a_b"),
  ])
  func labelsBecomeNames(_ label: String, _ name: String) {
    #expect(ServiceObject.Collection.name(forLabel: label) == name)
    #expect(ServiceObject.Collection(name: name) == .further(name))
  }

  @Test func namesAreNotTooLong() {
    let longest = ServiceObject.Collection.longestName
    #expect(ServiceObject.Collection.name(forLabel: String(repeating: "x", count: 500)).utf8.count < longest)
    #expect(ServiceObject.Collection(name: String(repeating: "x", count: longest)) != nil)
    #expect(ServiceObject.Collection(name: String(repeating: "x", count: longest + 1)) == nil)
  }

  @Test(arguments: ["0a1b-2c", "", "a_b", "é", "/x y", "--", "zz", "-z"])
  func namesBecomeElements(_ name: String) {
    let element = ServiceObject.element(of: name)
    #expect(
      element.utf8.allSatisfy {
        $0 == UInt8(ascii: "_") || Character(Unicode.Scalar($0)).isLetter
          || Character(Unicode.Scalar($0)).isNumber
      })
    #expect(ServiceObject.name(ofElement: element) == name)
  }

  @Test(arguments: ["z", "zx", "zzz", "z2d", "z2D", "z61", "zff", "é"])
  func otherElementsAreNoNames(_ element: String) { #expect(ServiceObject.name(ofElement: element) == nil) }

  @Test func eachMethodHasASignature() {
    #expect(Introspection.signature(of: "OpenSession", in: "org.freedesktop.Secret.Service") == "sv")
    #expect(
      Introspection.signature(of: "CreateItem", in: "org.freedesktop.Secret.Collection") == "a{sv}(oayays)b")
    #expect(Introspection.signature(of: "Get", in: "org.freedesktop.DBus.Properties") == "ss")
    #expect(Introspection.signature(of: "Get", in: "org.freedesktop.Secret.Item") == nil)
    #expect(Introspection.interface(with: "Delete", of: .item(.login, "x")) == "org.freedesktop.Secret.Item")
    #expect(Introspection.interface(with: "Get", of: .service) == "org.freedesktop.DBus.Properties")
  }
}
