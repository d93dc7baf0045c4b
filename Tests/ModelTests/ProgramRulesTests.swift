import Model
import Testing

/// Rules for programs that name devices of a cluster.
@Suite struct ProgramRulesTests {
  private static let own: ExactString = "11111111-1111-4111-8111-111111111111"
  private static let here = "host:11111111-1111-4111-8111-111111111111"
  private static let there = "host:22222222-2222-4222-8222-222222222222"

  private static func rule(_ line: String) throws -> ProgramRules.Rule {
    let rules = try #require(ProgramRules(ExactString(line)), "\(line)")
    return try #require(rules.rules.first)
  }

  /// In a cluster, and in a keychain of this machine alone; nil: the rule is for other devices.
  @Test(
    arguments: [
      ("allow /a", .ask, .allow), ("ask /a", .ask, .ask), ("deny /a", .deny, .deny),
      ("allow *", .allow, .allow), ("allow unidentified", .allow, .allow),
      ("allow host:* /a", .allow, .allow), ("deny host:* /a", .deny, .deny),
      ("allow \(here) /a", .allow, .ask), ("deny \(here) /a", .deny, .deny),
      ("allow \(there) /a", nil, .ask), ("deny \(there) /a", nil, .deny), ("allow \(there) *", nil, .ask),
    ] as [(String, ProgramRules.Action?, ProgramRules.Action?)])
  func ruleHoldsOnItsHosts(
    line: String, inCluster: ProgramRules.Action?, alone: ProgramRules.Action?
  ) throws {
    let rule = try Self.rule(line)
    #expect(rule.action(on: Self.own) == inCluster)
    #expect(rule.action(on: nil) == alone)
  }

  @Test func hostStandsBeforeTheDigest() throws {
    let digest = String(repeating: "a", count: 64)
    let rule = try Self.rule("allow host:* sha256:\(digest) /a b")
    #expect(rule.host == .all && rule.subject == .program("/a b", digest: digest))
    for line in [
      "allow host: /a", "allow host:*", "allow host:* ", "allow host:*  /a",
      "allow sha256:\(digest) host:* /a",
    ] {
      #expect(ProgramRules(ExactString(line)) == nil, "\(line)")
    }
  }

  /// `*` for one device leaves later rules to the others.
  @Test func everyProgramOfOneDeviceMayStandBeforeOthers() {
    #expect(ProgramRules(ExactString("deny \(Self.there) *\nask *")) != nil)
    #expect(ProgramRules("deny host:* *\nask *") == nil)
    #expect(ProgramRules("deny *\nask *") == nil)
  }

  @Test func ruleTakesThePlaceOfThoseOfItsHost() {
    let text = ExactString("deny \(Self.there) /a\nallow \(Self.here) /a\nask /a\nask *")
    let own = ProgramRules.text(text, adding: .deny, for: "/a", on: .device(Self.own))
    #expect(own == ExactString("deny \(Self.here) /a\ndeny \(Self.there) /a\nask /a\nask *"))
    #expect(ProgramRules.text(text, adding: .allow, for: "/a", on: .all) == "allow host:* /a\nask *")
    #expect(ProgramRules.text("allow /a\ndeny /b", adding: .deny, for: "/a") == "deny /a\ndeny /b")
  }

  /// Rules that are moved between a vault and a cluster.
  @Test func rulesAreConvertedForTheOtherKeychain() {
    let vault: ExactString = "allow /a b\ndeny /c\nallow unidentified\nask *\n"
    let cluster = ExactString("allow \(Self.here) /a b\ndeny \(Self.here) /c\nallow unidentified\nask *\n")
    #expect(ProgramRules.text(vault, from: nil, to: Self.own) == cluster)
    #expect(ProgramRules.text(cluster, from: Self.own, to: nil) == vault)
    #expect(ProgramRules.text(vault, from: nil, to: nil) == vault)
    let others = ExactString("allow \(Self.there) /a\nallow host:* /b")
    #expect(
      ProgramRules.text(others, from: Self.own, to: nil) == ExactString("allow \(Self.there) /a\nallow /b"))
    #expect(ProgramRules.text("none", from: nil, to: Self.own) == "none")
  }
}
