import Testing

private let hasPrograms =
  System.exists("/usr/bin/dbus-daemon") && System.exists("/usr/lib/python3/dist-packages/jeepney")
  && System.exists("/usr/lib/python3/dist-packages/cryptography")

/// `keyhole service` against the cases of Tests/SecretServiceConformance, by the command that tests any service.
@Suite(
  .serialized, .timeLimit(.minutes(5)),
  .enabled(
    if: hasPrograms, "needs dbus-daemon, python3-jeepney and python3-cryptography"))
struct SecretServiceConformanceTests {
  /// Every case that is required passes, but for the deviations that the suite lists with a reason; one that no longer
  /// applies is an error too.
  @Test func requiredCases() async throws {
    let lines = try await Self.run([])
    #expect(lines.filter { $0.hasPrefix("ok ") }.count > 200)
    // The build under test asks the stand-in for pinentry, wherever its file is.
    #expect(lines.last?.contains("(its dialogs are answered)") == true, "\(lines.last ?? "")")
  }

  /// The service, its clients and its bus are ended; hostile messages follow from the seed.
  @Test func faultsAndHostileMessages() async throws {
    let lines = try await Self.run(["--only", "fault.*", "--faults", "--fuzz", "30"])
    #expect(lines.contains { $0.hasPrefix("# fuzz: ") && $0.contains(" messages of the seed ") })
  }

  /// Clients as they are, and their own tests. One that is not installed is left out.
  @Test func clients() async throws {
    let lines = try await Self.run(["--only", "session.open.plain", "--clients"])
    #expect(lines.contains { $0.hasPrefix("# client: ok - libsecret, a program in C") })
  }

  /// Runs the command, which has to succeed, and returns the lines that it printed.
  private static func run(_ options: [String]) async throws -> [Substring] {
    var lines: [Substring] = []
    try await withWorld { world in
      let command = Products.helpers + "/secret-service-conformance"
      let output = try world.run(
        [command, "--service", "keyhole", "--keyhole", Products.keyhole] + options, within: .seconds(280))
      lines = output.text.split(separator: "\n")
      let failures = lines.filter {
        $0.contains("not ok") || $0.contains("FAILED") || $0.contains("no longer")
      }
      #expect(output.status == 0, "\(failures.joined(separator: "\n")) \(output.error)")
    }
    return lines
  }
}
