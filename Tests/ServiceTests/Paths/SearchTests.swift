import Testing

@testable import Service

/// `keyhole find` and `keyhole search`.
@Suite struct SearchTests {
  private func fixture() throws -> SessionFixture {
    let fixture = try SessionFixture()
    try fixture.write("keychain/generic/GitHub/token/value", "hunter2")
    try fixture.write("keychain/internet/mail.example/me/value", "token")
    try fixture.write("defaults/com.example.app/tokens", "1")
    return fixture
  }

  private func found(_ pattern: String, below path: String = "") throws -> [String] {
    var paths: [String] = []
    let fixture = try fixture()
    try TreeSearch(fixture.session).find(NamePattern(pattern), below: TreePath(path)) {
      paths.append($0.string)
    }
    return paths
  }

  private func searched(_ terms: String...) throws -> [String] {
    var paths: [String] = []
    let fixture = try fixture()
    try TreeSearch(fixture.session).search(terms.map(TreeSearch.Term.init), below: TreePath("")) {
      paths.append($0.string)
    }
    return paths
  }

  @Test func namesAreFound() throws {
    #expect(try found("TOKEN") == ["defaults/com.example.app/tokens", "keychain/generic/GitHub/token"])
    #expect(try found("token", below: "keychain") == ["keychain/generic/GitHub/token"])
    #expect(try found("g*b") == ["keychain/generic/GitHub"])
    #expect(try found("hunter2").isEmpty && found("value").isEmpty)
  }

  @Test func attributesAreSearchedAndValuesNever() throws {
    #expect(try searched("hunter2").isEmpty)
    #expect(try searched("service=github") == ["keychain/generic/GitHub/token"])
    #expect(try searched("token") == ["defaults/com.example.app/tokens", "keychain/generic/GitHub/token"])
    #expect(try searched("mail", "account=me") == ["keychain/internet/mail.example/me"])
    #expect(try searched("label=GitHub") == ["keychain/generic/GitHub/token"])
    #expect(try searched("service=").count == 1)
  }

  @Test(arguments: [
    ("a", "bab", true), ("a*", "bab", false), ("*a*", "bab", true), ("?a?", "bab", true),
    ("?a", "bab", false),
    ("*", "", true), ("", "x", true), ("**b", "b", true), ("a*b*c", "aXXbYYc", true),
    ("a*b*c", "aXXbYY", false),
  ])
  func patternsFit(pattern: String, name: String, fits: Bool) {
    #expect(NamePattern(pattern).fits(name) == fits)
  }
}
