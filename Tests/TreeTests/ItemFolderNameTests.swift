import Model
import TestSupport
import Testing
import Tree

@Suite struct ItemFolderNameTests {
  @Test(arguments: [
    (InternetIdentity(server: "s"), "%"), (InternetIdentity(server: "s", account: "peter"), "peter"),
    (
      InternetIdentity(server: "s", account: "peter", protocol: "ssh", port: 8080),
      "peter;protocol=ssh;port=8080"
    ),
    (InternetIdentity(server: "s", port: 0), "%;port=0"),
    (InternetIdentity(server: "s", account: "a;b=c"), "a%3Bb=c"),
    (InternetIdentity(server: "s", account: ".a", path: "./x;y=z"), "%2Ea;path=.%2Fx%3By=z"),
    (InternetIdentity(server: "s", domain: "", path: ""), "%;domain=%;path=%"),
    (InternetIdentity(server: "s", protocol: "gopher+é"), "%;protocol=gopher+é"),
    (
      InternetIdentity(
        server: "s", account: "a", domain: "d", protocol: "https", authenticationType: "httpBasic", port: 443,
        path: "/"),
      "a;domain=d;protocol=https;auth=httpBasic;port=443;path=%2F"
    ),
  ])
  func internetLeafHasTheIdentityAndNothingElse(identity: InternetIdentity, leaf: String) throws {
    let name = ItemFolderName(.internet(identity))
    #expect(name.parent?.string == "s" && name.leaf.string == leaf)
    for read in [
      try PathName(creating: leaf.utf8, level: .internetLeaf),
      try PathName(lookingUp: leaf.utf8, level: .internetLeaf),
    ] {
      #expect(read == name.leaf)
      #expect(ItemIdentity(.internet, parent: "s", leaf: read) == .internet(identity))
    }
  }

  @Test(arguments: [
    "", ";protocol=ssh", "a;", "a;b", "a;user=b", "a;protocol", "a;protocol=", "a;protocol=ssh;domain=d",
    "a;port=1;port=1", "a;port=08080", "a;port=70000", "a;port=+1", "a;port=-1", "a;port=", "a;port=x",
    "a;port=%",
    "a;Port=1", "a;protocol=a%3bb", "a;path=%2f", "a;path=/", "a;path=%2Ex", ".a", "a;;port=1", "a;port=1;",
    "a; port=1",
    "a;port=%31", "a;auth=x;protocol=y", "a%3Bb%", "a;protocol=x%%",
  ])
  func whatIsNoLeafIsRefused(text: String) {
    #expect { try PathName(creating: text.utf8, level: .internetLeaf) } throws: {
      ($0 as? StoreError).isInvalid
    }
    #expect(throws: StoreError.notFound) { try PathName(lookingUp: text.utf8, level: .internetLeaf) }
  }

  @Test func otherClassesHaveTheirOwnLevels() {
    let generic = ItemFolderName(.generic(service: "my/service", account: ""))
    #expect(generic.parent?.string == "my%2Fservice" && generic.leaf.string == "%")
    let other = ItemFolderName(.other(label: "Some label; x"))
    #expect(other.parent == nil && other.leaf.string == "Some label; x")
    #expect(ItemIdentity(.other, parent: nil, leaf: other.leaf) == .other(label: "Some label; x"))
    #expect(ItemIdentity(.generic, parent: "s", leaf: generic.leaf) == .generic(service: "s", account: ""))
    #expect(ItemIdentity(.generic, parent: nil, leaf: generic.leaf) == nil)
    #expect(ItemIdentity(.other, parent: "x", leaf: other.leaf) == nil)
  }

  @Test func everyIdentityReadsBack() throws {
    var generator = SplitMix64(seed: 9)
    for _ in 0..<3_000 {
      let identity = ItemIdentity.internet(generator.internet())
      let name = ItemFolderName(identity)
      guard !name.leaf.hasDigest else { continue }
      let leaf = try PathName(creating: name.leaf.string.utf8, level: .internetLeaf)
      #expect(ItemIdentity(.internet, parent: name.parent?.plain, leaf: leaf) == identity)
    }
  }

  @Test func longLeafIsCutWithTheDigestOfItsPlainForm() throws {
    let path = ExactString("/" + String(repeating: "p", count: 300))
    let identity = ItemIdentity.internet(InternetIdentity(server: "s", account: "a;b", path: path))
    let name = ItemFolderName(identity)
    let full = "a%3Bb;path=%2F" + String(repeating: "p", count: 300)
    let digest = PathName(ItemFolderName.plainName(of: identity)).string.suffix(18)
    #expect(name.leaf.string == String(full.prefix(230)) + digest)
    #expect(ItemFolderName.plainName(of: identity).string == "a;b;path=" + path.string)
    #expect(try PathName(lookingUp: name.leaf.string.utf8, level: .internetLeaf) == name.leaf)
    #expect(ItemIdentity(.internet, parent: "s", leaf: name.leaf) == nil)
  }

  @Test func duplicateKeepsItsParent() {
    let name = ItemFolderName(.internet(InternetIdentity(server: "s", account: "a", port: 22)))
    let duplicate = name.disambiguated(by: ItemID(rawValue: "x"))
    #expect(duplicate.parent == name.parent && duplicate.leaf.string == "a;port=22%~2d711642b726b044")
  }
}

extension SplitMix64 {
  fileprivate mutating func internet() -> InternetIdentity {
    InternetIdentity(
      server: name(), account: name(), domain: maybe(), protocol: maybe(), authenticationType: maybe(),
      port: Bool.random(using: &self) ? .random(in: 0 ... .max, using: &self) : nil, path: maybe())
  }

  private mutating func maybe() -> ExactString? {
    Bool.random(using: &self) ? name() : nil
  }
}
