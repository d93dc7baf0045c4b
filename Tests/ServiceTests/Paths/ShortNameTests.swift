import Model
import Testing

@testable import Service

/// `SERVICE/ACCOUNT`, and what is said of a path that is not there.
@Suite struct ShortNameTests {
  private func fixture() throws -> SessionFixture {
    let fixture = try SessionFixture()
    try fixture.write("keychain/generic/my.service/peter/value", "1")
    try fixture.write("keychain/generic/both/a/value", "1")
    try fixture.write("keychain/internet/both/a;protocol=https/value", "1")
    try fixture.write("keychain/internet/mail.example/me;port=993/value", "1")
    try fixture.write("defaults/com.example.app/volume", "1")
    return fixture
  }

  @Test(arguments: [
    (["my.service", "peter"], ["keychain/generic/my.service/peter"]),
    (["my.service"], ["keychain/generic/my.service/peter"]),
    (["mail.example", "me"], ["keychain/internet/mail.example/me;port=993"]),
    (["mail.example", "m"], []), (["my.service", "paul"], []), (["nothing"], []),
    (["both", "a"], ["keychain/generic/both/a", "keychain/internet/both/a;protocol=https"]),
  ])
  func itemsOfAShortName(names: [String], paths: [String]) throws {
    let fixture = try fixture()
    #expect(try fixture.session.items(named: names).map(\.string) == paths)
  }

  @Test(arguments: [
    ("defaults/com.exampel.app/volume", "defaults/com.example.app/volume"),
    ("defaults/com.example.app/volum", "defaults/com.example.app/volume"),
    ("defalts/com.example.app/volume", "defaults/com.example.app/volume"),
    ("keychain/generic/my.servic/petr/value", "keychain/generic/my.service/peter/value"),
    ("keychain/generic/My.Service", "keychain/generic/my.service"),
  ])
  func missingPathHasALikelyOne(wrong: String, right: String) throws {
    let fixture = try fixture()
    let session = fixture.session
    #expect(session.likelyPath(TreePath(wrong))?.string == right)
    let said = reason { _ = try session.node(at: TreePath(wrong)) }
    #expect(said == "there is no such file; did you mean \(right)?")
  }

  @Test(arguments: ["defaults/nothing/like/it", "defaults/com.example.app/brightness", "x"])
  func otherPathHasNone(wrong: String) throws {
    let fixture = try fixture()
    let session = fixture.session
    #expect(session.likelyPath(TreePath(wrong)) == nil)
  }

  @Test func failuresHaveTheirKinds() {
    #expect(Failure("p", StoreError.notFound).kind == .notFound)
    #expect(Failure("p", StoreError.noSuchAttribute).kind == .notFound)
    #expect(Failure("p", StoreError.locked).kind == .locked)
    for error in [StoreError.accessDenied(reason: ""), .rejected, .revoked, .timedOut, .wouldWait] {
      #expect(Failure("p", error).kind == .refused)
    }
    #expect(Failure("p", StoreError.noSpace).kind == .failed)
    let numbers = [Failure.Kind.failed, .notFound, .locked, .refused].map(\.rawValue)
    #expect(numbers == [1, 3, 4, 5])
  }
}

@Suite struct SpellingTests {
  @Test(arguments: [
    ("gett", "get"), ("sett", "set"), ("statsu", "status"), ("exprot", "export"), ("LS", "ls"),
    ("doctr", "doctor"),
    ("frobnicate", nil), ("", nil),
  ])
  func nearestWord(typed: String, meant: String?) {
    let words = ["get", "set", "ls", "status", "export", "import", "doctor", "mount"]
    #expect(Spelling.nearest(to: typed, among: words) == meant)
  }

  @Test(arguments: [
    ("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 1), ("abc", "abc", 0),
    ("abcd", "acbd", 1),
  ])
  func distanceCountsTypingErrors(left: String, right: String, distance: Int) {
    #expect(Spelling.distance(Array(left), Array(right)) == distance)
    #expect(Spelling.distance(Array(right), Array(left)) == distance)
  }
}
