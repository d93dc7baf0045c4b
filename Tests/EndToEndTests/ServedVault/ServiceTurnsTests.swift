import KeyringHarness
import Testing

private let hasJeepney =
  System.exists("/usr/bin/dbus-daemon") && System.exists("/usr/lib/python3/dist-packages/jeepney")

/// Clients of `keyhole service` don't wait for one another, and what a client wants of a locked vault.
@Suite(
  .serialized, .timeLimit(.minutes(3)), .enabled(if: hasJeepney, "needs dbus-daemon and python3-jeepney"))
struct ServiceTurnsTests {
  private let bus: PrivateBus

  init() throws { bus = try PrivateBus() }

  private func withService(_ prepare: String = "true", _ body: (World) throws -> Void) async throws {
    try await withWorld(environment: ["DBUS_SESSION_BUS_ADDRESS=\(bus.address)"]) { world in
      try world.check(prepare, within: LockTests.patience)
      let service = try Program(
        [Products.keyhole, "service", "--foreground"], environment: world.environment,
        directory: world.outside,
        log: world.log)
      defer { service.kill() }
      try world.check("gdbus wait --session --timeout 20 org.freedesktop.secrets")
      try body(world)
    }
  }

  private static func items(_ count: Int) -> String {
    "seq \(count) | sed 's/.*/KEY_&=value-&/' > $OUT/items.env; "
      + "keyhole import --to keychain/generic/svc $OUT/items.env > /dev/null 2>&1"
  }

  /// Python functions for two clients: one that sends calls and does not read, and one that waits for each answer.
  private static let clients = """
    from collections import deque
    from jeepney import DBusAddress, MatchRule, MessageType, new_method_call, message_bus
    from jeepney.io.blocking import open_dbus_connection
    root, prefix = "/org/freedesktop/secrets", "org.freedesktop.Secret."
    def message(path, interface, member, *arguments):
        name = prefix + interface if interface else "org.freedesktop.DBus.Properties"
        address = DBusAddress(root + path, "org.freedesktop.secrets", name)
        return new_method_call(address, member, *arguments)
    search = ("", "Service", "SearchItems", "a{ss}", ({},))
    alias = ("", "Service", "ReadAlias", "s", ("default",))
    properties = ("/collection/login", None, "GetAll", "s", (prefix + "Collection",))
    def answered_before(sender, other, count, call=search):
        '''How many of the calls of `sender` are answered before one of `other`, which was sent behind them.'''
        for _ in range(count):
            sender.send(message(*call))
        # The bus has passed them all on when it answers this.
        barrier = next(sender.outgoing_serial)
        sender.send(message_bus.GetId(), serial=barrier)
        answers = 0
        while True:
            reply = sender.receive()
            if reply.header.fields.get(5) == barrier:
                break
            answers += reply.header.message_type == MessageType.method_return
        other.send_and_get_reply(message(*alias))
        # It comes behind all that the service had answered before.
        marker = DBusAddress("/marker", sender.unique_name, "org.example.Marker")
        other.send(new_method_call(marker, "Mark"))
        while True:
            reply = sender.receive()
            if reply.header.message_type == MessageType.method_call:
                return answers
            answers += reply.header.message_type == MessageType.method_return
    def client():
        connection = open_dbus_connection()
        connection.send_and_get_reply(message(*search))
        return connection

    """

  private static func python(_ script: String) -> String {
    "/usr/bin/python3 - << 'END'\n\(clients)\(script)\nEND\n"
  }

  @Test func longQueueOfAClientDelaysNoOther() async throws {
    try await withService(Self.items(200)) { world in
      let script = "count = answered_before(client(), client(), 3000); print(count < 3000 or count)"
      try world.check(Self.python(script), prints: "True\n", within: LockTests.patience)
    }
  }

  /// Another client is answered while all items are looked at.
  @Test func longSearchDelaysNoOther() async throws {
    try await withService(Self.items(5000)) { world in
      let script = """
        def is_answered_first(call):
            sender = client()
            count = answered_before(sender, other, 1, call)
            sender.close()
            return count == 0
        other = client()
        print(any(is_answered_first(search) for _ in range(20)))
        print(any(is_answered_first(properties) for _ in range(20)))
        """
      try world.check(Self.python(script), prints: "True\nTrue\n", within: LockTests.patience)
    }
  }

  /// A prompt unlocks the vault first; without display and terminal it is dismissed at once, and nothing is made.
  @Test func collectionIsNotMadeInALockedVault() async throws {
    try await withService("echo horse | keyhole passphrase --weak --cost 14 2> /dev/null") { world in
      let script = """
        connection = open_dbus_connection()
        rule = MatchRule(type="signal", interface=prefix + "Prompt", member="Completed")
        connection.send_and_get_reply(message_bus.AddMatch(rule))
        label = {prefix + "Collection.Label": ("s", "Work")}
        with connection.filter(rule, queue=deque()) as signals:
            made, prompt = connection.send_and_get_reply(
                message("", "Service", "CreateCollection", "a{sv}s", (label, "work"))).body
            assert made == "/" and prompt.startswith(root + "/prompt/"), (made, prompt)
            connection.send_and_get_reply(message(prompt[len(root):], "Prompt", "Prompt", "s", ("",)))
            signal = connection.recv_until_filtered(signals, timeout=30)
        print(signal.body)
        """
      let locked = "setsid -w /usr/bin/python3 - << 'END'\n\(Self.clients)\(script)\nEND\n"
      // It was never unlocked; it was unlocked before.
      for _ in 1...2 {
        try world.check(locked, prints: "(True, ('o', '/'))\n", within: LockTests.patience)
        try world.check("keyhole requests | cut -f 2", prints: "unlock\n")
        try world.check("echo horse | keyhole unlock")
        try world.check(
          "gdbus call --session -d org.freedesktop.secrets -o /org/freedesktop/secrets "
            + "-m org.freedesktop.Secret.Service.ReadAlias work", prints: "(objectpath '/',)\n")
        try world.check("keyhole lock")
      }
    }
  }

  /// The vault is backed up with what is sealed in it.
  @Test func backupKeepsCollections() async throws {
    try await withService { world in
      try world.check(
        "gdbus call --session -d org.freedesktop.secrets -o /org/freedesktop/secrets "
          + "-m org.freedesktop.Secret.Service.CreateCollection "
          + "\"{'org.freedesktop.Secret.Collection.Label': <'My work'>}\" work > /dev/null")
      try world.check("keyhole backup --init > $OUT/key 2> /dev/null; keyhole backup $OUT/b > /dev/null")
      try world.check(
        """
        \(BackupTests.newHome)keyhole restore --yes $OUT/b < $OUT/key > /dev/null
        keyhole export --plain keychain | jq -c '.secretService | [.collections.My_work.label, .aliases]'
        """, prints: "[\"My work\",{\"work\":\"My_work\"}]\n")
    }
  }

  /// The service and a mount number their requests together, so that a number means one request.
  @Test func numbersOfTwoProcessesDiffer() async throws {
    try await withService("echo horse | keyhole passphrase --weak --cost 14 2> /dev/null") { world in
      try world.check("mkdir $OUT/m; keyhole mount -q $OUT/m")
      defer { _ = try? world.sh("keyhole unmount $OUT/m") }
      try world.check("printf horse | keyhole unlock; printf x | keyhole set keychain/generic/s/a")
      try world.check("keyhole attr s/a keyhole.programs 'ask *'")
      let reader = try Program(
        ["/usr/bin/setsid", "-w", "/bin/cat", world.outside + "/m/keychain/generic/s/a/value"],
        environment: world.environment, directory: world.outside, log: world.log)
      defer { reader.kill() }
      try world.check("setsid -w secret-tool lookup service s account a; echo $?", prints: "1\n")
      #expect(try holds { try world.sh("keyhole requests | cut -f 1 | sort -n").text == "1\n2\n" })
      try world.check("keyhole deny 1; keyhole deny 2; keyhole requests", prints: "")
    }
  }
}
