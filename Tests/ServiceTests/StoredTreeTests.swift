import KeychainSelection
import Model
import TestSupport
import Testing

/// Operations on the tree, and the files that they leave for the next process.
@Suite struct StoredTreeTests {
  private static let item = "keychain/generic/s/p"
  private static let value = item + "/value"

  private func moved(_ body: (StoredTree) throws -> Void) throws -> StoredTree {
    let stored = try StoredTree()
    for suite in ["a", "b"] { try stored.makeDirectories("defaults/\(suite)") }
    for (key, content) in [("a/k", "1"), ("a/l", "two"), ("b/m", "true")] {
      try stored.write("defaults/\(key)", content)
    }
    try stored.setType("defaults/a/k", "string")
    try stored.setModified("defaults/a/k", seconds: 1_000_000_000)
    try stored.makeItem(Self.item, "secret")
    try stored.makeItem("keychain/generic/s/q", "other")
    try stored.makeItem("keychain/internet/h/p", "net")
    try stored.setAttribute("comment", "note", Self.item)
    try stored.setAttribute("keyhole.created", "2020-01-02T03:04:05Z", Self.item)
    try body(stored)
    try stored.reopen()
    return stored
  }

  // MARK: Settings

  @Test(arguments: ["a/n", "b/k", "a/l", "b/m"]) func movedKeyKeepsTypeAndTime(target: String) throws {
    let stored = try moved { try $0.rename("defaults/a/k", "defaults/\(target)") }
    let path = "defaults/\(target)"
    #expect(try stored.text(path) == "1\n" && stored.type(path) == "string" && !stored.exists("defaults/a/k"))
    #expect(try stored.modified(path) == Timestamp(seconds: 1_000_000_000))
    #expect(try stored.list("defaults/a") == ["a/l": ["l"], "a/n": ["l", "n"]][target] ?? ["l"])
  }

  @Test func renamedSuiteTakesItsFileAlong() throws {
    let stored = try moved { try $0.rename("defaults/a", "defaults/c") }
    #expect(try stored.list("defaults") == ["b", "c"] && stored.suiteFiles == ["b.plist", "c.plist"])
    #expect(try stored.text("defaults/c/k") == "1\n" && stored.text("defaults/c/l") == "two\n")
    try stored.remove("defaults/b/m")
    try stored.rename("defaults/c", "defaults/b")
    #expect(stored.suiteFiles == ["b.plist"])
  }

  @Test func removedKeysAndSuitesAreGone() throws {
    let stored = try moved {
      try $0.remove("defaults/a/k")
      try $0.remove("defaults/b/m")
      try $0.removeDirectory("defaults/b")
    }
    #expect(try stored.list("defaults") == ["a"] && stored.list("defaults/a") == ["l"])
    #expect(stored.suiteFiles == ["a.plist"])
  }

  @Test func emptySuiteStays() throws {
    let stored = try StoredTree(keychain: .none)
    try stored.makeDirectories("defaults/com.example.app")
    try stored.reopen()
    #expect(try stored.list("defaults") == ["com.example.app"])
    #expect(stored.suiteFiles == ["com.example.app.plist"])
  }

  /// A key that was created empty takes the type of its first content, whichever process writes that.
  @Test func keyCreatedEmptyTakesItsTypeLater() throws {
    let stored = try StoredTree(in: "defaults", keychain: .none)
    try stored.makeDirectories("s")
    for key in ["k", "l"] { try stored.write("s/\(key)", "") }
    try stored.reopen()
    #expect(try stored.size("s/k") == 0 && stored.type("s/k") == "data")
    try stored.write("s/k", "42\n")
    try stored.write("s/l", "text\n")
    #expect(try stored.type("s/k") == "integer" && stored.type("s/l") == "string")
  }

  /// Another key's change writes the file again.
  @Test func everyScalarOfAStringSurvives() throws {
    let stored = try StoredTree(in: "defaults", keychain: .none)
    try stored.makeDirectories("s")
    let scalars = Array(1...0xA0) + [0x2028, 0xD7FF, 0xE000, 0xFFFD, 0xFFFE, 0xFFFF, 0x10FFFF]
    let texts = scalars.compactMap(Unicode.Scalar.init).map { "<\($0)>" } + ["a\r\nb\rc"]
    for (number, text) in texts.enumerated() { try stored.create("s/k\(number)", "string", text) }
    try stored.write("s/big", "18446744073709551615")
    for round in 1...2 {
      try stored.reopen()
      try stored.write("s/other", "\(round)")
    }
    for (number, text) in texts.enumerated() {
      #expect(try stored.text("s/k\(number)").utf8.elementsEqual((text + "\n").utf8), "\(text)")
    }
    #expect(try stored.text("s/big") == "18446744073709551615\n" && stored.type("s/big") == "integer")
  }

  /// The first stat(2) of a process, before it has opened the file.
  @Test func sizesAreKnownBeforeTheFirstOpen() throws {
    let stored = try StoredTree()
    let contents = [
      "1", "true", "hello", "1.5", "[1, 2]", "2026-11-21T07:53:00Z", #"{"a":{"b":[]}}"#, "größer",
    ]
    try stored.makeDirectories("defaults/a")
    for (number, content) in contents.enumerated() {
      try stored.write("defaults/a/\(number)", content)
      try stored.makeItem("keychain/generic/s/\(number)", content + "\n")
    }
    try stored.reopen()
    for number in contents.indices {
      for path in ["defaults/a/\(number)", "keychain/generic/s/\(number)/value"] {
        let size = try stored.size(path)
        #expect(try stored.bytes(path).count == size, "\(path)")
      }
    }
  }

  @Test func timesThatWereSetAreKept() throws {
    let stored = try moved {
      try $0.setModified("defaults/a/l", seconds: 1_100_000_000)
      try $0.setModified(Self.value, seconds: 1_200_000_000)
    }
    #expect(try stored.modified("defaults/a/k").seconds == 1_000_000_000)
    #expect(try stored.modified("defaults/a/l").seconds == 1_100_000_000)
    #expect(try stored.modified(Self.value).seconds == 1_200_000_000)
    #expect(try stored.attribute("keyhole.modified", Self.item) == "2008-01-10T21:20:00Z")
  }

  // MARK: Items

  @Test(arguments: ["keychain/generic/t/r", "keychain/generic/s/r", "keychain/generic/t/p"])
  func movedItemKeepsWhatItHas(target: String) throws {
    let stored = try moved {
      try $0.makeDirectories("keychain/generic/t")
      try $0.rename(Self.item, target)
    }
    let parts = target.split(separator: "/").map(String.init)
    #expect(try stored.text(target + "/value") == "secret" && !stored.exists(Self.item))
    for (name, value) in [
      ("service", parts[2]), ("account", parts[3]), ("comment", "note"),
      ("keyhole.created", "2020-01-02T03:04:05Z"),
    ] {
      #expect(try stored.attribute(name, target) == value)
    }
  }

  /// Staged items are part of the process only.
  @Test func movedFolderTakesItsItemsAlong() throws {
    let stored = try moved {
      try $0.makeDirectories("keychain/generic/s/staged")
      try $0.rename("keychain/generic/s", "keychain/generic/u")
      try $0.rename("keychain/internet/h", "keychain/internet/i")
      try $0.rename("keychain/internet/i/p", "keychain/internet/i/q;protocol=ssh;port=22")
    }
    #expect(try stored.list("keychain/generic") == ["u"] && stored.list("keychain/generic/u") == ["p", "q"])
    #expect(try stored.text("keychain/generic/u/q/value") == "other")
    #expect(try stored.attribute("service", "keychain/generic/u/p") == "u")
    let renamed = "keychain/internet/i/q;protocol=ssh;port=22"
    #expect(try stored.text(renamed + "/value") == "net" && stored.attribute("port", renamed) == "22")
  }

  @Test func removedSecretTakesItsItemAlong() throws {
    let stored = try moved {
      try $0.remove(Self.value)
      #expect(try $0.list(Self.item) == [])
      try $0.remove("keychain/internet/h/p/value")
      try $0.removeDirectory("keychain/internet/h/p")
    }
    #expect(try stored.list("keychain/generic/s") == ["q"] && stored.list("keychain/internet") == [])
  }

  @Test func newSecretInThePlaceOfARemovedOneIsTheSameItem() throws {
    let stored = try moved {
      try $0.remove(Self.value)
      try $0.write(Self.value, "new\n")
    }
    #expect(try stored.text(Self.value) == "new" && stored.attribute("comment", Self.item) == "note")
    #expect(try stored.attribute("keyhole.created", Self.item) == "2020-01-02T03:04:05Z")
  }

  @Test func stagedItemIsStoredWithItsAttributes() throws {
    let stored = try StoredTree()
    for item in [Self.item, "keychain/generic/t/q"] {
      try stored.makeDirectories(item)
      try stored.setAttribute("comment", "at home", item)
      try stored.setAttribute("keyhole.label", "Lock", item)
      try stored.setAttribute("account", "other", item)
    }
    try stored.write(Self.value, "x")
    try stored.reopen()
    #expect(try stored.list("keychain/generic") == ["s"])
    for (name, value) in [("comment", "at home"), ("keyhole.label", "Lock"), ("account", "p")] {
      #expect(try stored.attribute(name, Self.item) == value)
    }
  }

  /// An attribute, and a value that it takes and gives back.
  static let attributes: [(name: String, value: String)] = [
    ("comment", "a comment"), ("comment", ""), ("comment", "größer 🔑\nzwei"), ("description", "what it is"),
    ("creator", "1234"), ("type", "4294967295"), ("generic", "bytes"), ("isInvisible", "true"),
    ("isNegative", "true"), ("xdg:schema", "org.example"), ("own", "x"), ("keyhole.label", "A label"),
    ("keyhole.created", "2020-01-02T03:04:05Z"), ("keyhole.modified", "2021-01-02T03:04:05Z"),
    ("keyhole.eol", "exact"),
  ]

  @Test func attributesAreKept() throws {
    let stored = try StoredTree()
    for (number, (name, value)) in Self.attributes.enumerated() {
      try stored.makeItem("keychain/generic/s/\(number)", "x")
      try stored.setAttribute(name, value, "keychain/generic/s/\(number)")
    }
    try stored.reopen()
    for (number, (name, value)) in Self.attributes.enumerated() {
      let item = "keychain/generic/s/\(number)"
      #expect(try stored.attribute(name, item) == value, "\(name)")
      #expect(try stored.attributeNames(item).contains("user." + name), "\(name)")
    }
    let exact = "keychain/generic/s/\(Self.attributes.count - 1)/value"
    try stored.write(exact, "three\n")
    #expect(try stored.text(exact) == "three\n")
  }

  @Test func secretsOfEverySizeAreExact() throws {
    let stored = try StoredTree()
    var random = SplitMix64(seed: 4)
    let secrets = [1, 511, 512, 4095, 4096, 4097, 65535, 131_073, 1 << 20].map { count in
      [0xFF] + (1..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }
    for (number, secret) in secrets.enumerated() {
      try stored.makeDirectories("keychain/generic/s/\(number)")
      try stored.write("keychain/generic/s/\(number)/value", secret)
    }
    try stored.reopen()
    for (number, secret) in secrets.enumerated() {
      let path = "keychain/generic/s/\(number)/value"
      #expect(try stored.size(path) == secret.count)
      let isSame = try stored.bytes(path) == secret
      #expect(isSame, "\(secret.count) bytes")
    }
  }
}
