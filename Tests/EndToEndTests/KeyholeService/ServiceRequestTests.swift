import KeyringHarness
import Testing

/// The programs that are clients of `keyhole service`, and their calls that wait for the person.
@Suite(.serialized, .timeLimit(.minutes(3)), .enabled(if: canServeItems, "needs dbus-daemon and secret-tool"))
struct ServiceRequestTests: ServiceTesting {
  let bus: PrivateBus

  init() throws { bus = try PrivateBus() }

  @Test(.enabled(if: System.exists("/usr/bin/pinentry-curses"), "needs pinentry-curses"))
  func listedRequestIsApproved() async throws {
    try await withService { world in
      try world.check("echo horse | keyhole unlock; printf s3cret | secret-tool store --label=l a b")
      try world.check("keyhole lock")
      // The vault is locked, and there is no way to ask the user: the program gets nothing, and the request waits.
      #expect(try world.sh("setsid -w secret-tool lookup a b").status == 1)
      try world.check("keyhole requests | cut -f 2", prints: "unlock\n")
      let terminal = try Terminal(
        ["/bin/sh", "-c", "keyhole approve $(keyhole requests | cut -f 1)"], environment: world.environment,
        directory: world.outside, errors: world.outside + "/errors")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("horse\r")
      let approval = try terminal.finish()
      #expect(approval.status == 0, "\(approval)")
      try world.check("setsid -w secret-tool lookup a b", prints: "s3cret")
    }
  }

  /// The program of a client of libsecret does not wait: it has ended when the user approves.
  @Test(.enabled(if: System.exists("/usr/bin/pinentry-curses"), "needs pinentry-curses"))
  func approvalHoldsForTheNextRunOfTheSameCommand() async throws {
    try await withService { world in
      try world.check(
        "echo horse | keyhole unlock; printf s3cret | secret-tool store --label=l service s account a")
      try world.check("keyhole attr s/a keyhole.programs 'ask *'")
      let command = "setsid -w secret-tool lookup service s account a; echo \" $?\""
      try world.check(command, prints: " 1\n")
      try world.check(command, prints: " 1\n")
      try world.check("keyhole requests | cut -f 2,3", prints: "read\tkeychain/generic/s/a\n")
      let terminal = try Terminal(
        ["/bin/sh", "-c", "keyhole approve $(keyhole requests | cut -f 1)"], environment: world.environment,
        directory: world.outside, errors: world.outside + "/errors")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("horse\r")
      let approval = try terminal.finish()
      #expect(approval.status == 0, "\(approval)")
      try world.check("setsid -w secret-tool lookup account a service s; echo \" $?\"", prints: " 1\n")
      try world.check(command, prints: "s3cret 0\n")
      try world.check(command, prints: " 1\n")
    }
  }

  /// Its calls, one after the other, wait together: the first request is there when the last one is.
  @Test func requestsOfOneProgramAreThereTogether() async throws {
    try await withService { world in
      try world.check(
        """
        echo horse | keyhole unlock
        for name in a b c d; do
          printf s3cret | secret-tool store --label=$name service s account $name
          keyhole attr s/$name keyhole.programs 'ask *'
        done
        """)
      _ = try world.sh("setsid -w secret-tool search --all service s", within: .seconds(120))
      try world.check("keyhole requests | cut -f 3 | sort -u | wc -l", prints: "4\n")
      // libsecret tries twice.
      _ = try world.sh(
        "printf x | setsid -w secret-tool store --label=a service s account a", within: .seconds(60))
      try world.check("keyhole requests | cut -f 2,3 | grep write", prints: "write\tkeychain/generic/s/a\n")
    }
  }

  /// A client behind the real proxy of Flatpak is a program in a sandbox, which rules don't know.
  @Test(.enabled(if: System.exists("/usr/bin/xdg-dbus-proxy"), "needs xdg-dbus-proxy"))
  func clientBehindAProxyIsInASandbox() async throws {
    try await withService { world in
      try world.check(
        "echo horse | keyhole unlock; printf s3cret | secret-tool store --label=l service s account a")
      try world.check("printf free | secret-tool store --label=l service s account free")
      try world.check("keyhole attr s/a keyhole.programs 'allow /usr/bin/secret-tool'")
      let behind = """
        mkfifo "$OUT/ready"
        xdg-dbus-proxy "$DBUS_SESSION_BUS_ADDRESS" "$OUT/proxy" --filter --talk=org.freedesktop.secrets --fd=3 3> "$OUT/ready" &
        exec 4< "$OUT/ready"; head -c 1 <&4 > /dev/null
        for name in free a; do
          DBUS_SESSION_BUS_ADDRESS="unix:path=$OUT/proxy" setsid -w secret-tool lookup service s account $name; echo " $?"
        done
        kill %1
        """
      try world.check(behind, prints: "free 0\n 1\n")
      let request = try world.sh("keyhole requests --json").text
      #expect(request.contains("a program in a sandbox, behind /usr/bin/xdg-dbus-proxy"), "\(request)")
      #expect(request.contains("keychain/generic/s/a"))
    }
  }

  /// Whether the bus passes descriptors of processes (ProcessFD).
  private static let givesProcesses: Bool = {
    let path = "PATH=/usr/local/bin:/usr/bin:/bin"
    let program = try? Program(
      ["/usr/bin/env", "dbus-daemon", "--version"], environment: [path], directory: "/")
    let numbers = (try? program?.finish().text)?.split(separator: "\n").first?.split(separator: " ").last?
      .split(separator: ".").compactMap { Int($0) }
    guard let numbers, numbers.count > 1 else { return false }
    return (numbers[0], numbers[1]) >= (1, 16)
  }()

  /// The bus vouches for the process at the other end, so rules that allow a path hold.
  @Test(.enabled(if: Self.givesProcesses, "dbus-daemon before 1.16 gives no ProcessFD"))
  func rulesHoldWhereTheBusVouchesForProcesses() async throws {
    try await withService { world in
      try world.check(
        "echo horse | keyhole unlock; printf s3cret | secret-tool store --label=l service s account a")
      try world.check("keyhole attr s/a keyhole.programs 'allow /usr/bin/secret-tool'")
      try world.check("setsid -w secret-tool lookup service s account a; keyhole requests", prints: "s3cret")
      try world.check(
        "cp /usr/bin/secret-tool $OUT/other; setsid -w $OUT/other lookup service s account a; echo $?",
        prints: "1\n")
      try world.check("keyhole requests --json | jq -r '.[].program'", prints: "\(world.outside)/other\n")
    }
  }
}
