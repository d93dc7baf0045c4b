import Glibc
import KeyringHarness
import Testing

/// `keyhole import`, `export` and `migrate` with a real keyring, which takes one item at a time.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ServiceImportTests {
  private let bus: PrivateBus

  init() throws {
    bus = try PrivateBus()
    try bus.startKeyring()
  }

  private func withWorld(body: (World) async throws -> Void) async throws {
    try await EndToEndTests.withWorld(environment: ["DBUS_SESSION_BUS_ADDRESS=\(bus.address)"], body: body)
  }

  private static let file = file(secrets: 60)
  /// So many that the import goes on while a test looks whether it has begun, however fast the machine is.
  private static let longFile = file(secrets: 1000)

  /// Secrets, of which a2 is there already, and two suites, of which one is.
  private static func file(secrets: Int) -> String {
    """
    { printf '{"keyhole":1,"defaults":{"suite1":{"k3":{"type":"integer","value":1}},"suite2":{"k":{"type":"integer","value":1}}},"keychain":['
      for i in $(seq \(secrets)); do [ $i = 1 ] || printf ,
      printf '{"class":"generic","attributes":{"service":"s","account":"a%d","comment":"c%d"},"value":"new%d"}' $i $i $i; done; printf ']}'; } > "$OUT/e"
    keyhole set defaults/suite1/k3 -- -7; printf old | keyhole set keychain/generic/s/a2/value

    """
  }

  /// The items of gnome-keyring's collection `session` are in its memory only.
  @Test func theCollectionInMemoryIsNotMoved() async throws {
    try await withWorld { world in
      try world.check(
        """
        printf kept | secret-tool store --label=l service s username u
        printf gone | secret-tool store --label=l --collection=session service s username m
        """)
      let output = try world.sh("keyhole migrate --from secret-service --to vault", within: .seconds(60))
      #expect(output.text == "moved 1 item from secret-service to vault\n", "\(output)")
      #expect(output.error.contains("1 item of the collection `session` left out"), "\(output)")
      #expect(try bus.run("secret-tool lookup service s username m") == "gone")
      #expect(try bus.run("secret-tool lookup service s username u || true") == "")
    }
  }

  private static let state = """
    state() {
      case "$(keyhole ls defaults | wc -l) $(keyhole ls keychain/generic/s | wc -l) $(keyhole get defaults/suite1/k3)" in
        "1 1 -7") echo old ;; "2 60 1") echo new ;; *) echo "torn: $(keyhole ls defaults; keyhole ls keychain/generic/s)" ;;
      esac
      ls "$(dirname "$OUT")/state/keyhole" | grep -cx 'import.journal'
    }

    """

  @Test func itSaysThatItGoesItemByItem() async throws {
    try await withWorld { world in
      let output = try world.sh(
        Self.state + Self.file + "keyhole import --replace \"$OUT/e\"; state", within: .seconds(120))
      #expect(output.text == "new\n0\n" && output.error.contains("one at a time"), "\(output)")
      #expect(try bus.run("secret-tool lookup service s account a60") == "new60")
      #expect(try bus.run("secret-tool lookup service s account a2") == "new2")
    }
  }

  /// Items that leave the service are as they came, with their attributes.
  @Test func anExportGoesIntoAVaultAndBack() async throws {
    try await withWorld { world in
      try world.check(
        Self.file + """
          other() { XDG_CONFIG_HOME="$OUT/c" XDG_DATA_HOME="$OUT/d" XDG_STATE_HOME="$OUT/s" XDG_RUNTIME_DIR="$OUT/r" DBUS_SESSION_BUS_ADDRESS= keyhole "$@"; }
          mkdir -m 700 "$OUT/c" "$OUT/d" "$OUT/s" "$OUT/r"
          keyhole import --replace "$OUT/e" 2> /dev/null; echo pass | keyhole export --cost 14 -o "$OUT/sealed"
          echo pass | other import "$OUT/sealed"; other get keychain/generic/s/a7/value; echo
          other attr keychain/generic/s/a7 comment; echo pass | keyhole import -n "$OUT/sealed" | cut -f 1 | sort -u
          """, prints: "new7\nc7\nsame\n", within: .seconds(120))
    }
  }

  /// Killed after some items: the next command removes those that were new.
  @Test func whatIsKilledIsTakenBack() async throws {
    try await withWorld { world in
      try world.check(Self.longFile, within: .seconds(60))
      for least in [1, 20, 40] {
        let importing = try world.launch("exec keyhole import --replace \"$OUT/e\" 2> /dev/null")
        try waitForItems(world, more: least)
        importing.kill()
        _ = try importing.finish()
        let output = try world.sh(Self.state + "keyhole ls > /dev/null; state", within: .seconds(60))
        #expect(output.text == "old\n0\n" && output.error.contains("was taken back"), "\(output)")
      }
    }
  }

  private func waitForItems(_ world: World, more least: Int) throws {
    let deadline = Deadline(in: .seconds(60))
    while !deadline.hasPassed {
      let found = try bus.run("secret-tool search --all service s 2> /dev/null | grep -c '^\\[' || true")
      if Int(found.filter(\.isNumber)) ?? 0 > least { return }
    }
    Issue.record("no item came")
  }

  /// The service ends in the middle: what is there is taken back when it is there again.
  @Test func aServiceThatVanishesIsWaitedFor() async throws {
    try await withWorld { world in
      try world.check(Self.longFile, within: .seconds(60))
      let importing = try world.launch("exec keyhole import --replace \"$OUT/e\" 2>&1")
      try waitForItems(world, more: 10)
      try bus.stopKeyring()
      let output = try importing.finish(within: .seconds(120))
      #expect(output.status == 1 && output.text.contains("part of it is imported"), "\(output)")
      let waiting = try world.sh("keyhole ls defaults", within: .seconds(60))
      #expect(
        waiting.error.contains("can't be taken back yet") && waiting.error.contains("import.journal away"),
        "\(waiting)")
      try bus.startKeyring()
      let after = try world.sh(Self.state + "keyhole ls > /dev/null; state", within: .seconds(60))
      #expect(after.text == "old\n0\n" && after.error.contains("was taken back"), "\(after)")
    }
  }

  @Test func aLockedCollectionTakesNothing() async throws {
    try await withWorld { world in
      try world.check(Self.file, within: .seconds(60))
      try bus.lock()
      let output = try world.sh(
        "keyhole import --replace \"$OUT/e\"; keyhole ls defaults", within: .seconds(60))
      #expect(output.text == "suite1\n" && output.error.contains("nothing was imported"), "\(output)")
      try bus.unlock("login")
    }
  }

  /// Moved on its way to a service that ends: every item is where it was, and a second run moves them.
  @Test func aMigrationWhoseServiceVanishesMovesNothing() async throws {
    try await withWorld { world in
      try world.check(Self.file, within: .seconds(60))
      try world.check("keyhole import --replace \"$OUT/e\" 2> /dev/null", within: .seconds(120))
      try world.check("keyhole migrate --from secret-service --to vault > /dev/null", within: .seconds(120))
      let moving = try world.launch("exec keyhole migrate --from vault --to secret-service 2>&1")
      try waitForItems(world, more: 10)
      try bus.stopKeyring()
      let output = try moving.finish(within: .seconds(120))
      #expect(output.status == 1 && output.text.contains("nothing was moved"), "\(output)")
      try bus.startKeyring()
      try world.check(
        "keyhole migrate --from vault --to secret-service",
        prints: "moved 60 items from vault to secret-service\n",
        within: .seconds(120))
      #expect(try bus.run("secret-tool lookup service s account a60") == "new60")
    }
  }
}
