import KeyringHarness
import Testing

/// Items that clients of the Secret Service have stored are the same to them after an export, a backup and a migration.
@Suite(
  .serialized, .timeLimit(.minutes(3)),
  .enabled(
    if: System.exists("/usr/bin/dbus-daemon") && System.exists("/usr/lib/python3/dist-packages/jeepney"),
    "needs dbus-daemon and python3-jeepney"))
struct ClientAttributesTests {
  private let bus: PrivateBus

  init() throws { bus = try PrivateBus() }

  private func withWorld(_ body: (World) async throws -> Void) async throws {
    try await EndToEndTests.withWorld(environment: ["DBUS_SESSION_BUS_ADDRESS=\(bus.address)"], body: body)
  }

  private static let client = """
    import json, secretstorage
    login = secretstorage.get_default_collection(secretstorage.dbus_init())
    generic = ("xdg:schema", "org.freedesktop.Secret.Generic")
    def lines(items, *without):
        '''The labels and attributes, a line each, without Keyhole's own attributes and those that are named.'''
        def shown(attributes):
            return {name: value for name, value in attributes.items()
                if not name.startswith("keyhole.") and (name, value) not in without}
        return "".join(sorted(json.dumps([label, shown(attributes)], sort_keys=True) + "\\n" for label, attributes in items))
    def present():
        return [(item.get_label(), item.get_attributes()) for item in login.get_all_items()]
    def store():
        for number, attributes in enumerate(given):
            login.create_item("label", attributes, b"secret %d" % number)

    """

  /// Each of them, with one label for all: of those that have no identity by themselves only the first one is named by it.
  private static let attributes = """
    given = [
        {"service": "x", "username": "u"}, {"service": "y", "account": "u"}, {"a": "b"}, {}, {"server": "h", "user": "u"},
        {"service": "x", "username": "u", "n": "2"}, {"server": "h", "user": ""}, {"server": "h", "user": "v", "port": "x"},
        {"server": "h", "user": "w", "port": "81", "path": "/p"}, {"xdg:schema": "org.git.Password", "server": "g", "user": "u"},
        {"xdg:schema": "io.docker.Credentials", "server": "d", "username": "u"}, {"xdg:schema": "org.example.Own", "q": ""},
        {"service": "z", "username": "u", "type": "token", "isInvisible": "no"},
        {"xdg:schema": "org.freedesktop.Secret.Generic", "application": "p", "service": "p", "username": "u"},
        {"xdg:schema": "chrome_libsecret_os_crypt_password_v2", "application": "chrome"},
    ]

    """

  private static func python(_ script: String) -> String {
    "/usr/bin/python3 - << 'END'\n\(client)\(attributes)\(script)\nEND\n"
  }

  private func serve(_ world: World) throws -> Program {
    let service = try Program(
      [Products.keyhole, "service", "--foreground"], environment: world.environment, directory: world.outside,
      log: world.log)
    try world.check("gdbus wait --session --timeout 20 org.freedesktop.secrets")
    return service
  }

  /// Ends the service, and returns when its name is free.
  private func end(_ service: Program, _ world: World) throws {
    service.kill()
    #expect(
      try holds {
        try world.sh(
          "gdbus call --session -d org.freedesktop.DBus -o / -m org.freedesktop.DBus.NameHasOwner org.freedesktop.secrets"
        ).text == "(false,)\n"
      })
  }

  /// Has the items stored by a client, and returns what it sees then.
  private func fill(_ world: World) throws -> String {
    let service = try serve(world)
    let stored = try world.sh(
      Self.python("store(); print(lines(present()), end='')"), within: LockTests.patience)
    #expect(stored.status == 0 && stored.text.split(separator: "\n").count == 15, "\(stored)")
    try end(service, world)
    return stored.text
  }

  private func served(_ world: World) throws -> String {
    let service = try serve(world)
    defer { try? end(service, world) }
    return try world.sh(Self.python("print(lines(present()), end='')")).text
  }

  @Test(arguments: ["json", "plist", "tar"])
  func exportKeepsThem(_ format: String) async throws {
    try await withWorld { world in
      let all = try fill(world)
      try world.check("keyhole export --plain --format \(format) keychain > $OUT/exported")
      try world.check(
        "rm -r \"$XDG_DATA_HOME/keyhole\" \"$XDG_STATE_HOME/keyhole\"; keyhole import $OUT/exported > /dev/null"
      )
      #expect(try served(world) == all)
      try world.check("keyhole import -n $OUT/exported | cut -f 1 | sort -u", prints: "same\n")
    }
  }

  /// A name that no extended attribute can have is in no export, which says so; a backup has it.
  @Test func exportNamesWhatItLeavesOut() async throws {
    try await withWorld { world in
      let service = try serve(world)
      defer { service.kill() }
      try world.check(
        Self.python(
          """
          login.create_item("long", {"n" * 251: "v", "k": "v"}, b"1")
          login.create_item("empty", {"": "v", "n" * 300: "v"}, b"2")
          login.create_item("fits", {"n" * 250: "v"}, b"3")
          """))
      let reason = "left out: an export has no place for a name that is empty or longer than 250 bytes; "
      let hint = "`keyhole backup` and `keyhole migrate` have it"
      for format in ["json", "tar"] {
        try world.check(
          "keyhole export --plain --format \(format) keychain 2>&1 > /dev/null",
          prints: """
            keyhole: keychain/other/empty: 2 attributes were \(reason)\(hint)
            keyhole: keychain/other/long: 1 attribute was \(reason)\(hint)

            """)
      }
    }
  }

  @Test func backupKeepsThem() async throws {
    try await withWorld { world in
      let all = try fill(world)
      try world.check("keyhole backup --init > $OUT/key 2> /dev/null; keyhole backup $OUT/b > /dev/null")
      try world.check(
        """
        rm -r "$XDG_DATA_HOME/keyhole" "$XDG_STATE_HOME/keyhole"
        keyhole restore --yes $OUT/b < $OUT/key > /dev/null
        """)
      #expect(try served(world) == all)
    }
  }

  /// GNOME Keyring shows just what the clients gave, but for the schema that it gives items without one by itself, and all comes
  /// back from it, also after its restart.
  @Test func migrationKeepsThem() async throws {
    try await withWorld { world in
      let all = try fill(world)
      try bus.startKeyring()
      let there = try world.sh("keyhole migrate --from vault --to secret-service", within: .seconds(60))
      #expect(there.text == "moved 15 items from vault to secret-service\n", "\(there)")
      let same =
        "print(lines(present(), generic) == lines([('label', one) for one in given], generic) or present())"
      try world.check(Self.python(same), prints: "True\n")
      try bus.stopKeyring()
      try bus.startKeyring()
      let back = try world.sh("keyhole migrate --from secret-service --to vault", within: .seconds(60))
      #expect(back.text == "moved 15 items from secret-service to vault\n", "\(back)")
      try bus.stopKeyring()
      #expect(try served(world) == all)
    }
  }

  /// Items that programs have stored in GNOME Keyring are the same in the vault. That keyring does not tell an item without a schema
  /// from one with libsecret's schema for none.
  @Test func itemsOfAnotherKeyringComeAsTheyAre() async throws {
    try await withWorld { world in
      try bus.startKeyring()
      let stored = try world.sh(
        Self.python("store(); print(lines(present(), generic), end='')"), within: .seconds(60))
      #expect(stored.status == 0 && stored.text.split(separator: "\n").count == 15, "\(stored)")
      try bus.stopKeyring()
      try bus.startKeyring()
      let listed = try world.sh("keyhole migrate --dry-run --from secret-service --to vault")
      #expect(listed.status == 0 && listed.error.contains("with the path of another one"), "\(listed)")
      let moved = try world.sh("keyhole migrate --from secret-service --to vault", within: .seconds(60))
      // Items of one label are different items to a client, and only one of them has it as its name.
      #expect(
        moved.status == 0 && moved.text.contains("keychain/other/label (2): its label and its attributes"),
        "\(moved)")
      try bus.stopKeyring()
      #expect(try served(world) == stored.text)
      // A program that searches with that schema finds them as before.
      let service = try serve(world)
      defer { service.kill() }
      try world.check(
        "secret-tool lookup xdg:schema org.freedesktop.Secret.Generic service y account u", prints: "secret 1"
      )
    }
  }

  /// All collections are moved, also one that is locked, and their items keep them.
  @Test func collectionsOfAnotherKeyringAreKept() async throws {
    try await withWorld { world in
      try bus.addKeyring(named: "many", items: 2)
      try bus.startKeyring()
      try world.check(
        """
        printf own | secret-tool store --label=own service many account 1
        keyhole migrate --from secret-service --to vault | sed -n 1p
        keyhole get keychain/generic/many/2; echo; keyhole attr keychain/generic/many/2 keyhole.collection
        """, prints: "moved 3 items from secret-service to vault\nsecret 2\nmany\n", within: .seconds(60))
      try bus.stopKeyring()
      let service = try serve(world)
      defer { service.kill() }
      try world.check(
        Self.python(
          """
          import secretstorage
          all = secretstorage.get_all_collections(login.connection)
          print(sorted((one.collection_path.split("/")[-1], sorted(item.get_secret() for item in one.get_all_items()))
              for one in all if one.collection_path.split("/")[-1] != "session"))
          """),
        prints: "[('login', [b'own']), ('many', [b'secret 1', b'secret 2'])]\n")
    }
  }

  /// In the vault too, no other program's item takes the place of one that a program had stored with attributes of its own.
  @Test func itemOfAnotherKeyringStaysThatOfItsProgram() async throws {
    try await withWorld { world in
      try bus.startKeyring()
      try world.check(
        """
        for item in "service s account u username u app A" "xdg:schema org.git.Password protocol https server g user u x 1"; do
          printf first | secret-tool store --label=x $item
        done
        keyhole migrate --from secret-service --to vault
        """, prints: "moved 2 items from secret-service to vault\n", within: .seconds(60))
      try bus.stopKeyring()
      let service = try serve(world)
      defer { service.kill() }
      try world.check(
        """
        printf other | secret-tool store --label=x service s account u username u app B
        printf other | secret-tool store --label=x xdg:schema org.git.Password protocol https server g user u
        secret-tool lookup service s app A; echo; secret-tool lookup server g x 1; echo; secret-tool lookup service s app B
        """, prints: "first\nfirst\nother")
    }
  }
}
