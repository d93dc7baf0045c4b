import Model
import Testing
import Tree

@Suite struct ItemAttributesTests {
  private static let created = Timestamp(seconds: 1_795_247_580, nanoseconds: 5)
  private static let generic = item(.generic(service: "my.service", account: "peter"))
  private static let internet = item(
    .internet(InternetIdentity(server: "my.server", account: "peter", protocol: "ssh", port: 22)))
  private static let other = item(.other(label: "Some label"))

  private static func item(_ identity: ItemIdentity) -> Item {
    Item(id: ItemID(rawValue: "1"), identity: identity, created: created, modified: created)
  }

  @Test func plainItemListsItsIdentityLabelAndTimes() {
    let common = ["user.keyhole.created", "user.keyhole.label", "user.keyhole.modified"]
    #expect(ItemAttributes.names(of: Self.generic) == ["user.account"] + common + ["user.service"])
    #expect(ItemAttributes.names(of: Self.other) == common)
    #expect(
      ItemAttributes.names(of: Self.internet) == ["user.account"] + common + [
        "user.port", "user.protocol", "user.server",
      ])
  }

  @Test func whatDiffersFromItsDefaultIsListed() throws {
    var item = Self.generic
    let values = [
      "accessible": "afterFirstUnlock", "access": "userPresence", "programs": "deny *\n", "eol": "exact",
      "label": "L",
    ]
    for (name, value) in values { try set("user.keyhole.\(name)", value, &item) }
    for (name, value) in values {
      #expect(ItemAttributes.names(of: item).contains("user.keyhole.\(name)"))
      #expect(read("user.keyhole.\(name)", item) == value)
      try ItemAttributes.remove("user.keyhole.\(name)", from: &item)
    }
    #expect(item == Self.generic)
  }

  @Test(arguments: [
    ("user.service", "my.service"), ("user.account", "peter"), ("user.keyhole.label", "my.service"),
    ("user.keyhole.created", "2026-11-21T07:53:00Z"), ("user.keyhole.modified", "2026-11-21T07:53:00Z"),
    ("user.keyhole.name", "peter"), ("user.keyhole.accessible", "whenUnlocked"),
  ])
  func valueIsRead(name: String, value: String) {
    #expect(read(name, Self.generic) == value)
  }

  @Test func internetIdentityIsRead() {
    let values = ["server": "my.server", "account": "peter", "protocol": "ssh", "port": "22"]
    for (name, value) in values { #expect(read("user.\(name)", Self.internet) == value) }
    #expect(read("user.keyhole.label", Self.internet) == "my.server")
    #expect(read("user.keyhole.name", Self.internet) == "peter;protocol=ssh;port=22")
    #expect(read("user.keyhole.label", Self.other) == "Some label")
  }

  @Test func collectionIsReadByNameOnly() {
    var item = Self.generic
    #expect(read("user.keyhole.collection", item) == "vault")
    item.collection = "Login"
    #expect(read("user.keyhole.collection", item) == "Login")
    #expect(!ItemAttributes.names(of: item).contains { $0.hasSuffix("collection") || $0.hasSuffix("name") })
  }

  @Test(arguments: [
    "user.comment", "user.service2", "user.keyhole.access", "user.keyhole.programs", "user.keyhole.eol",
  ])
  func missingAttributeIsNoData(name: String) {
    var item = Self.generic
    #expect(failure { _ = try ItemAttributes.value(name, of: item) } == .noSuchAttribute)
    #expect(failure { try ItemAttributes.remove(name, from: &item) } == .noSuchAttribute)
  }

  @Test(arguments: [
    "user.keyhole.type", "user.keyhole.", "user.keyhole.Label", "user.keyhole.label\u{301}",
    "system.posix_acl_access",
    "security.selinux", "trusted.x", "user", "", "User.comment",
  ])
  func unknownNameIsUnsupported(name: String) {
    var item = Self.generic
    for error in [
      failure { _ = try ItemAttributes.value(name, of: item) },
      failure { try ItemAttributes.set(name, to: [], on: &item) },
      failure { try ItemAttributes.remove(name, from: &item) },
    ] {
      guard case .unsupported = error else { Issue.record("\(String(describing: error))"); continue }
    }
  }

  @Test func identityAcceptsOnlyWhatItIs() throws {
    for base in [Self.generic, Self.internet] {
      var item = base
      for name in ItemAttributes.names(of: base) where !name.hasPrefix("user.keyhole.") {
        try ItemAttributes.set(name, to: ItemAttributes.value(name, of: base), on: &item)
        try ItemAttributes.remove(name, from: &item)
        #expect(failure { try ItemAttributes.set(name, to: [0x78], on: &item) }.isNotPermitted)
      }
      #expect(item == base)
    }
    var (internet, other) = (Self.internet, Self.other)
    #expect(failure { try ItemAttributes.set("user.domain", to: [0x78], on: &internet) }.isNotPermitted)
    #expect(failure { try set("user.keyhole.label", "x", &other) }.isNotPermitted)
    #expect(failure { try set("user.keyhole.label", "Some label", &other) } == nil)
  }

  @Test func computedAttributesStay() throws {
    var item = Self.generic
    item.collection = "Login"
    let before = item
    for name in ["name", "collection", "created", "modified"] {
      try ItemAttributes.remove("user.keyhole.\(name)", from: &item)
      let value = try ItemAttributes.value("user.keyhole.\(name)", of: item)
      try ItemAttributes.set("user.keyhole.\(name)", to: value, on: &item)
    }
    #expect(item == before)
    #expect(failure { try set("user.keyhole.name", "x", &item) }.isNotPermitted)
    #expect(failure { try set("user.keyhole.collection", "x", &item) }.isNotPermitted)
  }

  /// In the vault, the collection is one of its own Secret Service.
  @Test func collectionOfTheVaultIsSetAndListed() throws {
    var item = Self.generic
    let before = item
    try set("user.keyhole.collection", "My_work", &item)
    #expect(read("user.keyhole.collection", item) == "My_work")
    #expect(ItemAttributes.names(of: item).contains("user.keyhole.collection"))
    for name in ["", "a b", "ä", "a/b", String(repeating: "x", count: 65)] {
      #expect(failure { try set("user.keyhole.collection", name, &item) } != nil)
    }
    try set("user.keyhole.collection", "vault", &item)
    #expect(item == before)
    try set("user.keyhole.collection", "My_work", &item)
    try ItemAttributes.remove("user.keyhole.collection", from: &item)
    #expect(item == before)
  }

  @Test func datesAreSetInWholeSeconds() throws {
    var item = Self.generic
    try set("user.keyhole.created", "2026-11-21T08:53:00+01:00", &item)
    #expect(item.created == Self.created)
    try set("user.keyhole.modified", "1970-01-01T00:00:01Z", &item)
    #expect(item.modified == Timestamp(seconds: 1))
  }

  @Test func everyListedAttributeCanBeWrittenBack() throws {
    var item = Self.internet
    item.attributes = [
      "comment": [], "type": Array("secret".utf8), "creator": [0xFF], "isInvisible": Array("maybe".utf8),
      "generic": [0, 1],
      "xdg:schema": Array("org.example".utf8), "é": [0x61],
    ]
    item.access = [.biometryAny, .or, .devicePasscode]
    item.programs = "allow /usr/bin/ssh"
    item.keepsLineEnd = true
    let before = item
    for name in ItemAttributes.names(of: item) {
      try ItemAttributes.set(name, to: ItemAttributes.value(name, of: item), on: &item)
    }
    #expect(item == before)
  }
}

extension ItemAttributesTests {
  @Test(arguments: [
    ("user.type", "1953067383"), ("user.creator", "0"), ("user.isInvisible", "true"),
    ("user.isNegative", "false"),
    ("user.comment", ""), ("user.description", "é\n"), ("user.anything.else", "x"), ("user.keyhole", "x"),
    ("user.server", "x"), ("user.keyhole.programs", "allow /a b\nask /c\ndeny *"),
    ("user.keyhole.programs", "ask *\n"),
  ])
  func allowedValueIsKept(name: String, value: String) throws {
    var item = Self.generic
    try set(name, value, &item)
    #expect(read(name, item) == value && ItemAttributes.names(of: item).contains(name))
    try ItemAttributes.remove(name, from: &item)
    #expect(item == Self.generic)
  }

  @Test(arguments: [
    ("user.", "x"), ("user.type", "four"), ("user.type", "4294967296"), ("user.type", "-1"),
    ("user.type", "007"),
    ("user.creator", ""), ("user.creator", "x"), ("user.isInvisible", "yes"),
    ("user.keyhole.created", "2020-13-02T03:04:05Z"), ("user.keyhole.accessible", ""),
    ("user.isInvisible", "TRUE"), ("user.isNegative", "1"), ("user.comment", "a\0"),
    ("user.keyhole.label", "a\0"), ("user.keyhole.created", "yesterday"),
    ("user.keyhole.modified", "2026-11-21T07:53:00.5Z"),
    ("user.keyhole.accessible", "always"), ("user.keyhole.accessible", "whenUnlocked\n"),
    ("user.keyhole.access", ""),
    ("user.keyhole.access", "or"), ("user.keyhole.eol", "lf"), ("user.keyhole.eol", ""),
    ("user.keyhole.programs", ""),
    ("user.keyhole.programs", "\n"), ("user.keyhole.programs", "allow ssh"),
    ("user.keyhole.programs", "permit /a"),
    ("user.keyhole.programs", "allow *\ndeny /a"), ("user.keyhole.programs", "allow /a\n\ndeny *"),
    ("user.keyhole.programs", "allow"), ("user.keyhole.programs", "allow  /a"),
  ])
  func otherValueIsInvalid(name: String, value: String) {
    var item = Self.generic
    guard case .invalidValue = failure({ try set(name, value, &item) }) else {
      Issue.record("\(name) accepts \(value)")
      return
    }
    #expect(item == Self.generic)
  }

  @Test func genericHoldsAnyBytesAndTextIsUTF8() throws {
    var item = Self.generic
    try ItemAttributes.set("user.generic", to: [0, 0xFF], on: &item)
    #expect(item.attributes == ["generic": [0, 0xFF]])
    #expect(failure { try ItemAttributes.set("user.comment", to: [0xFF], on: &item) } != nil)
  }

  @Test func numbersAreTextInASecretServicesOtherItems() throws {
    var item = Self.other
    try set("user.type", "plain", &item)
    #expect(read("user.type", item) == "plain")
  }

  @Test func labelThatIsTheDefaultFollowsAMove() throws {
    var item = Self.generic
    try set("user.keyhole.label", "my.service", &item)
    #expect(item.label == nil)
    item.identity = .generic(service: "new", account: "peter")
    #expect(read("user.keyhole.label", item) == "new")
  }

  @Test func namesThatNobodyCanAskForAreNotListed() {
    var item = Self.generic
    let hidden: [ExactString] = [
      "", "keyhole.label", "service", "a\0", ExactString(String(repeating: "x", count: 251)),
    ]
    for name in hidden { item.attributes[name] = [] }
    #expect(ItemAttributes.names(of: item) == ItemAttributes.names(of: Self.generic))
    item.attributes[ExactString(String(repeating: "x", count: 250))] = []
    #expect(ItemAttributes.names(of: item).count == ItemAttributes.names(of: Self.generic).count + 1)
  }
}

extension ItemAttributesTests {
  private func set(_ name: String, _ value: String, _ item: inout Item) throws(StoreError) {
    try ItemAttributes.set(name, to: Array(value.utf8), on: &item)
  }

  private func read(_ name: String, _ item: Item) -> String? {
    (try? ItemAttributes.value(name, of: item)).map { String(decoding: $0, as: UTF8.self) }
  }

  private func failure(_ body: () throws -> Void) -> StoreError? {
    do { try body() } catch { return error as? StoreError }
    return nil
  }
}

extension StoreError? {
  fileprivate var isNotPermitted: Bool {
    if case .notPermitted = self { true } else { false }
  }
}
