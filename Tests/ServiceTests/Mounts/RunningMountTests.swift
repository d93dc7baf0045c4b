import Model
import Store
import Suites
import Testing

@testable import Service

/// The report of a mount, as `keyhole status` and `keyhole doctor` read it.
@Suite struct RunningMountTests {
  private static func mount(_ fields: [ExactString: SettingValue]) throws -> RunningMount? {
    let codec = SettingCodec(propertyLists: PropertyLists())
    let report = try codec.content(of: .dictionary(fields))
    return RunningMount(String(decoding: report, as: UTF8.self), path: "/home/u/Keyhole")
  }

  @Test(arguments: ["", "[]", "{", "\u{0}"])
  func otherTextIsNoReport(text: String) {
    #expect(RunningMount(text, path: "/m") == nil)
  }

  @Test func emptyReportSaysNothingAndIsTrusted() throws {
    let mount = try #require(try Self.mount([:]))
    #expect(
      !mount.isLocked && mount.trust == .trusted && mount.keychainProblems.isEmpty && mount.problems.isEmpty)
  }

  @Test(arguments: [
    KeychainTrust.trusted, .firstUse(lastChange: Timestamp(seconds: 1_600_000_000)),
    .distrusted(Problem(subject: "vault", reason: "it was put back", remedy: "`keyhole accept`")),
  ])
  func trustIsReadBack(trust: KeychainTrust) throws {
    let mount = try #require(try Self.mount(["keychainTrust": trust.value]))
    #expect(mount.trust == trust)
  }

  @Test func problemsOfTheKeychainAreReadBack() throws {
    let problem = Problem(subject: "vault.key", reason: "it is open to others", remedy: "`chmod 600`")
    let values = SettingValue.array([problem.value, .string("no problem"), .dictionary([:])])
    let mount = try #require(try Self.mount(["keychainProblems": values]))
    #expect(mount.keychainProblems == [problem])
  }

  /// A package that was upgraded has put another file in the place of the program.
  @Test func replacedProgramIsNoticed() throws {
    let own = try #require(ProgramStamp.current())
    func lines(_ path: String, _ stamp: String) throws -> String {
      let mount = try #require(
        try Self.mount([
          "version": .string("1.0"), "program": .string(ExactString(path)),
          "programStamp": .string(ExactString(stamp)),
        ]))
      return mount.description("1.0")
    }
    #expect(try !lines(own.path, own.stamp).contains("outdated"))
    #expect(try lines(own.path, own.stamp + "1").contains("outdated"))
    #expect(try !lines("/nonexistent/keyhole", own.stamp).contains("outdated"))
  }

  @Test(arguments: [(0, nil), (1, "1 part of a change"), (3, "3 parts of a change")] as [(Int128, String?)])
  func journalOfAClusterIsSaid(parts: Int128, words: String?) throws {
    let mount = try #require(try Self.mount(["cluster": .dictionary(["journalled": .integer(parts)])]))
    let line = mount.description("1.0").split(separator: "\n").first { $0.hasPrefix("journal ") }
    #expect((line == nil) == (words == nil))
    if let words { #expect(line?.contains(words) == true) }
  }

  @Test func serviceWithoutAMountHasItsOwnLines() throws {
    let text = #"{"started": "2026-01-01T00:00:00Z", "pid": 7, "version": "1.0", "mountpoint": ""}"#
    let service = try #require(RunningMount(text, path: "org.freedesktop.secrets"))
    let lines = service.description("1.1").split(separator: "\n").map(String.init)
    #expect(
      lines[0]
        == "served on    the session bus, as the Secret Service, since 2026-01-01T00:00:00Z by process 7, Keyhole 1.0"
    )
    #expect(lines[1].hasPrefix("outdated") && lines[1].contains("`kill 7` and `keyhole service` start"))
  }

  @Test func screenHasALineForEachThing() throws {
    let refusal = SettingValue.dictionary([
      "time": .string("2026-01-01T00:00:00Z"), "path": .string("keychain/generic/a\u{1B}[31m"),
      "reason": .string("it is locked"),
    ])
    let mount = try #require(
      try Self.mount([
        "started": .string("2026-01-01T00:00:00Z"), "pid": .integer(7), "version": .string("1.0"),
        "locked": .bool(true), "sealed": .string("by its key file"),
        "problems": .array([.string("no space")]),
        "refusals": .array([refusal]),
      ]))
    let lines = mount.description("1.0").split(separator: "\n").map(String.init)
    #expect(lines[0] == "mounted on   /home/u/Keyhole since 2026-01-01T00:00:00Z by process 7, Keyhole 1.0")
    #expect(lines.contains("locked       yes; `keyhole unlock` opens it"))
    #expect(lines.contains("sealed       by its key file") && lines.contains("problem      no space"))
    // A name must not steer the terminal.
    #expect(lines.last == "refused      2026-01-01T00:00:00Z  keychain/generic/a\\u{1b}[31m  it is locked")
    #expect(!lines.contains { $0.hasPrefix("outdated") })
    #expect(mount.description("1.1").split(separator: "\n")[1].hasPrefix("outdated     "))
    #expect(!lines.contains { $0.hasPrefix("approval") || $0.hasPrefix("first use") })
  }
}
