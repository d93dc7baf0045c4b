import Glibc
import Testing

/// The record of the programs that opened secrets.
@Suite(.timeLimit(.minutes(2))) struct LogTests {
  private static let item = "keychain/generic/s/p"

  /// Lines without their time.
  private static func lines(_ world: World) throws -> [String] {
    try world.sh("keyhole log").lines.map { $0.split(separator: "\t").dropFirst().joined(separator: "\t") }
  }

  private static func makeItem(_ keyhole: MountedKeyhole) throws {
    try keyhole.check(
      "mkdir -p \(item); echo hidden-secret > \(item)/value; keyhole log --all; rm $OUT/../state/keyhole/access.log"
    )
  }

  @Test func sayWhoOpenedWhatAndWhatWasDecided() async throws {
    try await withKeyhole { keyhole in
      try Self.makeItem(keyhole)
      try keyhole.check(
        "cat \(Self.item)/value > /dev/null; stat \(Self.item)/value > /dev/null; getfattr -d \(Self.item) > /dev/null"
      )
      try keyhole.check(
        "printf 'deny /usr/bin/cat\\nallow *\\n' | setfattr -n user.keyhole.programs -v \"$(cat)\" \(Self.item)"
      )
      try keyhole.refuses("cat \(Self.item)/value", .denied)
      try keyhole.check(
        "head -c 1 \(Self.item)/value; keyhole get \(Self.item)/value | head -c 1", prints: "hh")
      try keyhole.check("keyhole lock")
      try keyhole.refuses("cat \(Self.item)/value", .noKey)
      let lines = try Self.lines(keyhole.world)
      try #require(
        lines.map { $0.split(separator: "\t").first } == [
          "allowed", "denied", "allowed", "allowed", "locked",
        ])
      #expect(lines.allSatisfy { $0.contains("\t\(Self.item)\t") }, "\(lines)")
      // Where a script is one command, the shell becomes that command.
      for line in [0, 2, 3] { #expect(lines[line].contains(/bash\]? \(/), "\(lines)") }
      #expect(lines[0].contains("\t/usr/bin/cat (") && lines[3].contains("\t\(Products.keyhole) ("))
      // One object a line, with what JSON has for it.
      try keyhole.world.check(
        "keyhole log --json | jq -r '.decision + \" \" + .operation + \" \" + (.uid | tostring) + \" \" + (.parents | type) + \" \" + (.pid | type)' | sort -u",
        prints: ["allowed", "denied", "locked"].map { "\($0) read \(getuid()) array number\n" }.joined())
      #expect(try !keyhole.world.sh("keyhole log --json").text.contains("hidden"))
      let status = try System.status(keyhole.world.state + "/keyhole/access.log")
      #expect(status.st_mode & 0o777 == 0o600)
    }
  }

  @Test func followsWhatHappens() async throws {
    try await withKeyhole { keyhole in
      try Self.makeItem(keyhole)
      let log = try Program(
        [Products.keyhole, "log", "--follow", "--json"], environment: keyhole.world.environment,
        directory: keyhole.world.outside)
      defer { log.kill() }
      for program in ["/usr/bin/head", "/usr/bin/tail"] {
        try keyhole.check("\(program) -c 1 \(Self.item)/value > /dev/null")
        #expect(try log.line()?.contains("\"program\":\"\(program)\"") == true)
      }
    }
  }

  @Test func isSwitchedOffAndOnAndSaysSo() async throws {
    try await withKeyhole { keyhole in
      try Self.makeItem(keyhole)
      try keyhole.check("keyhole log --off; cat \(Self.item)/value > /dev/null")
      #expect(try keyhole.sh("keyhole status").text.contains("not noted"))
      try keyhole.check("keyhole log --all; tail -c 1 \(Self.item)/value > /dev/null")
      #expect(
        try Self.lines(keyhole.world).map { $0.split(separator: "\t").first } == ["off", "all", "allowed"])
      #expect(try keyhole.sh("keyhole log --on --off").status == 2)
    }
  }

  /// Names and titles of processes must control neither the terminal nor the format.
  @Test func namesCanNotForgeLines() async throws {
    try await withKeyhole { keyhole in
      try Self.makeItem(keyhole)
      try keyhole.check(
        """
        cp /usr/bin/cat $'$OUT/x\\n{"decision":"allowed"}\\e[31m"' 2> /dev/null; cp /usr/bin/cat "$OUT"/$'x\\n{"decision":"forged"}\\e[31m"'
        "$OUT"/$'x\\n{"decision":"forged"}\\e[31m"' \(Self.item)/value > /dev/null
        """)
      let output = try keyhole.world.sh("keyhole log; keyhole log --json")
      #expect(output.lines.count == 2 && !output.text.contains("\u{1B}"))
    }
  }
}
