import Model
import Platform
import Testing

@testable import Service

/// The changes of `keyhole credential install`, and their taking back byte for byte.
@Suite struct ConfigurationStepTests {
  private func member(_ text: String, adding value: String = "keyhole") throws -> String {
    String(
      decoding: try JSONMember("credsStore").added(value, to: Array(text.utf8), "file"), as: UTF8.self)
  }

  private func removed(_ text: String) throws -> String? {
    try JSONMember("credsStore").removed("keyhole", from: Array(text.utf8), "file").map {
      String(decoding: $0, as: UTF8.self)
    }
  }

  @Test(arguments: [
    "{\n\t\"auths\": {\n\t\t\"a\": {}\n\t}\n}", "{\"a\":{\"credsStore\":\"x\"},\"b\":[1,2]}\n",
    "{ \"a\" : 1 }",
  ])
  func theRestOfAnObjectStays(text: String) throws {
    let with = try member(text)
    #expect(with.contains("\n\t\"credsStore\": \"keyhole\","))
    #expect(try removed(with) == text)
  }

  @Test(arguments: ["{}", "{}\n", "{\n}", "{ }", "{\n\n}\n", " {\t}"])
  func anObjectWithoutMembersComesBack(text: String) throws {
    let with = try member(text)
    #expect(with.contains("\n\t\"credsStore\": \"keyhole\"\n"))
    #expect(try removed(with) == text)
  }

  @Test func aMemberIsFoundWhereverItsProgramPutIt() throws {
    #expect(try removed("{\"a\": 1,\n\t\"credsStore\": \"keyhole\"\n}") == "{\"a\": 1\n}")
    #expect(try removed("{\"a\": 1, \"credsStore\": \"keyhole\", \"b\": 2}") == "{\"a\": 1, \"b\": 2}")
    #expect(try removed("{\"credsStore\":\"keyhole\"}") == "{}")
    #expect(try removed("{\"credsStore\":\"pass\"}") == nil && removed("{}") == nil)
    #expect(try removed("{\"a\":{\"credsStore\":\"keyhole\"}}") == nil)
    #expect(throws: Failure.self) { try member("{\"credsStore\":\"pass\"}") }
    #expect(throws: Failure.self) { try member("[1]") }
    #expect(throws: Failure.self) { try member("{\"a\":") }
  }

  /// The outcome without a change says whether the change is in place.
  @Test func whatIsInPlaceIsFoundWithoutAChange() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/config"
    func outcome(_ change: ConfigurationStep.Change, _ file: String) throws -> ConfigurationStep.Outcome {
      try ConfigurationFile.write(Array(file.utf8), to: path)
      let outcome = try ConfigurationStep(path: path, change: change, isNewFile: true).revert(isDry: true)
      #expect(try ConfigurationFile.read(path) == Array(file.utf8))
      return outcome
    }
    let line = ConfigurationStep.Change.append("build --credential_helper=/keyhole\n")
    #expect(try outcome(line, "a\nbuild --credential_helper=/keyhole\nb\n") == .done)
    #expect(try outcome(line, "a\n") == .missing)
    #expect(try outcome(line, "#build --credential_helper=/keyhole\n") == .missing)
    #expect(try outcome(line, "build --credential_helper=/keyhole --more\n") == .changed)
    #expect(try outcome(.file("keyhole\n"), "keyhole\n") == .done)
    #expect(try outcome(.file("keyhole\n"), "other\n") == .changed)
    let member = ConfigurationStep.Change.member("credsStore", value: "keyhole")
    #expect(try outcome(member, "{\"credsStore\":\"keyhole\"}") == .done)
    #expect(try outcome(member, "{\"credsStore\":\"pass\"}") == .missing)
    #expect(try outcome(member, "{}") == .missing)
    _ = try Files.remove(path)
    for change in [line, .file("keyhole\n"), member, .link("/keyhole")] {
      #expect(try ConfigurationStep(path: path, change: change).revert(isDry: true) == .missing)
    }
    try Files.makeLink(path, to: "/keyhole")
    #expect(try ConfigurationStep(path: path, change: .link("/keyhole")).revert(isDry: true) == .done)
    #expect(try ConfigurationStep(path: path, change: .link("/other")).revert(isDry: true) == .changed)
    #expect(try Files.target(ofLink: path) == "/keyhole")
  }

  @Test func appendedTextIsTakenOutOfWhateverStandsAroundIt() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/config"
    try ConfigurationFile.write(Array("[user]\n\tname = a".utf8), to: path)
    let step = ConfigurationStep(path: path, change: .append("\n[credential]\n\thelper = keyhole\n"))
    try step.apply()
    let with = try #require(try ConfigurationFile.read(path))
    try ConfigurationFile.write(with + Array("# mine\n".utf8), to: path)
    #expect(try step.revert() == .done)
    #expect(try ConfigurationFile.read(path) == Array("[user]\n\tname = a\n# mine\n".utf8))
    #expect(try step.revert() == .missing)
    try ConfigurationFile.write(Array("[credential]\n  helper = keyhole --more\n".utf8), to: path)
    #expect(try step.revert() == .changed)
    // The user has given the program's path, or another program's.
    try ConfigurationFile.write(Array("[credential]\n\thelper = /opt/bin/keyhole\n".utf8), to: path)
    #expect(try step.revert() == .changed)
    try ConfigurationFile.write(Array("[credential]\n\thelper = cache\n# keyhole\n".utf8), to: path)
    #expect(try step.revert() == .missing)
  }

  @Test(arguments: [
    ("[alias]\n\tx = y\n", "[user]\n\tname = a\n[alias]\n\tx = y\n"),
    ("\thelper = cache\n", "[user]\n\tname = a\n[credential]\n\thelper = cache\n"),
    ("", "[user]\n\tname = a"),
  ])
  func linesThatWereAddedBehindAnAppendedTextStayInTheirSections(added: String, left: String) throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/config"
    try ConfigurationFile.write(Array("[user]\n\tname = a".utf8), to: path)
    let step = ConfigurationStep(path: path, change: .append("\n[credential]\n\thelper = keyhole\n"))
    try step.apply()
    let with = try #require(try ConfigurationFile.read(path))
    try ConfigurationFile.write(with + Array(added.utf8), to: path)
    #expect(try step.revert() == .done)
    #expect(try ConfigurationFile.read(path) == Array(left.utf8))
  }

  @Test func aLinkThatLeadsNowhereIsNotReplaced() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/config"
    try Files.makeLink(path, to: "elsewhere")
    #expect(throws: Failure.self) { try ConfigurationFile.write([0x0A], to: path) }
    #expect(try Files.target(ofLink: path) == "elsewhere")
  }

  @Test func aFileThatWasMadeIsRemovedOnlyUnchanged() throws {
    let folder = try TemporaryFolder()
    let step = ConfigurationStep(path: folder.path + "/a/new", change: .file("text\n"), isNewFile: true)
    try step.apply()
    #expect(throws: Failure.self) { try step.apply() }
    try ConfigurationFile.write(Array("text\nmine\n".utf8), to: step.path)
    #expect(try step.revert() == .changed)
    try ConfigurationFile.write(Array("text\n".utf8), to: step.path)
    #expect(try step.revert() == .done && step.revert() == .missing)
  }
}
