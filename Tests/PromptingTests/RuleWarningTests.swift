import Testing

@testable import Prompting

/// A rule for the program itself; here it is the one that runs the tests.
@Suite struct RuleWarningTests {
  @Test(arguments: [
    ("allow /proc/self/exe", true), ("deny *\nallow /proc/self/exe", true),
    ("rules for programs: deny * → ask *; allow /proc/self/exe", true),
    ("allow sha256:00 /proc/self/exe", true),
    ("deny /proc/self/exe", false), ("ask /proc/self/exe", false), ("allow /bin/sh", false),
    ("allow *", false),
    ("rules for programs: allow /proc/self/exe → deny *", false), ("", false), ("allow", false),
  ])
  func ruleThatAllowsThisProgramIsFound(text: String, isFound: Bool) {
    #expect(RuleWarning.allowsKeyhole(text) == isFound)
  }
}
