import KeyringHarness
import Testing

/// Programs that take the service's names, write its files, or ask for more than it has.
@Suite(
  .serialized, .timeLimit(.minutes(3)),
  .enabled(
    if: canServeItems && System.exists("/usr/lib/python3/dist-packages/jeepney"),
    "needs dbus-daemon, secret-tool and python3-jeepney"))
struct ServiceDefenceTests: ServiceTesting {
  let bus: PrivateBus

  init() throws { bus = try PrivateBus() }

  private func withBus(_ body: (World) throws -> Void) async throws {
    try await withWorld(environment: ["DBUS_SESSION_BUS_ADDRESS=\(bus.address)"], body: body)
  }

  /// Takes names of the bus, prints a line, and waits until its input ends.
  private static func owner(of names: String...) -> String {
    """
    coproc owner { exec python3 -c '
    import sys
    from jeepney import message_bus
    from jeepney.io.blocking import open_dbus_connection
    connection = open_dbus_connection()
    for name in sys.argv[1:]:
        assert connection.send_and_get_reply(message_bus.RequestName(name, 4)).body[0] == 1
    print(flush=True)
    sys.stdin.read()' \(names.joined(separator: " ")); }
    read -r <&${owner[0]}

    """
  }

  /// Without the name by which it is known again, `migrate` would take it for another keyring.
  @Test func withoutItsOwnNameNothingIsServed() async throws {
    try await withBus { world in
      let output = try world.sh(
        Self.owner(of: "org.keyhole.SecretService") + "keyhole service; exit $?", within: .seconds(30))
      #expect(output.status == 1, "\(output)")
      #expect(output.error.contains("python"), "\(output)")
      #expect(output.error.contains("has the name org.keyhole.SecretService"), "\(output)")
    }
  }

  @Test func aProgramWithBothNamesIsNamed() async throws {
    try await withBus { world in
      let output = try world.sh(
        Self.owner(of: "org.keyhole.SecretService", "org.freedesktop.secrets") + "keyhole service; exit $?",
        within: .seconds(30))
      #expect(output.status == 1 && output.error.contains("python"), "\(output)")
      #expect(!output.error.contains("`keyhole service` (process"), "\(output)")
    }
  }

  /// Of several that start at once, the one that serves has both names.
  @Test func ofSeveralStartsOneServes() async throws {
    try await withBus { world in
      defer { try? Self.end(world) }
      for _ in 1...3 {
        try world.check(
          """
          for k in 1 2 3 4; do keyhole service -q > /dev/null 2>&1 & done; wait
          gdbus wait --session --timeout 20 org.freedesktop.secrets
          owner() { gdbus call --session -d org.freedesktop.DBus -o / -m org.freedesktop.DBus.GetNameOwner $1; }
          [ "$(owner org.freedesktop.secrets)" = "$(owner org.keyhole.SecretService)" ]
          """, within: .seconds(60))
        try Self.end(world)
      }
    }
  }

  /// Any program can write the file: items of the collection `session` would be lost.
  @Test(arguments: [("session", "login"), ("../../x", "login"), ("/", "")])
  func theFileOfTheAliasIsNotBelieved(text: String, collection: String) async throws {
    try await withService { world in
      try Self.end(world)
      try world.check("printf '\(text)' > \"$XDG_STATE_HOME/keyhole/default-collection\"")
      try Self.start(world)
      let path = collection.isEmpty ? "/" : "\(Self.root)/collection/\(collection)"
      try world.check(
        "\(Self.call) \(Self.root) -m org.freedesktop.Secret.Service.ReadAlias default",
        prints: "(objectpath '\(path)',)\n")
    }
  }

  /// A program's code in Python with a session of SecretStorage's.
  private static func python(_ code: String) -> String {
    """
    python3 - <<'END'
    import secretstorage
    from jeepney import DBusAddress, HeaderFields, MessageType, new_method_call
    connection = secretstorage.dbus_init()
    root = '/org/freedesktop/secrets'
    def call(path, interface, member, *arguments):
        address = DBusAddress(root + path, 'org.freedesktop.secrets', 'org.freedesktop.Secret.' + interface)
        reply = connection.send_and_get_reply(new_method_call(address, member, *arguments))
        failed = reply.header.message_type == MessageType.error
        return reply.header.fields[HeaderFields.error_name].split('.')[-1] if failed else 'done'
    \(code)
    END
    """
  }

  /// The others wait no longer than for a call with few.
  @Test func aCallWithManyObjectsIsAnsweredAtOnce() async throws {
    try await withService { world in
      let output = try world.sh(
        Self.python(
          """
          login, session = root + '/collection/login', root + '/collection/session'
          print(call('', 'Service', 'Unlock', 'ao', ([login] * 40000 + [session] * 40000,)))
          print(call('', 'Service', 'Unlock', 'ao', ([login + '/%d' % n for n in range(20001)],)))
          print(call('', 'Service', 'Lock', 'ao', ([login + '/%d' % n for n in range(20001)],)))
          """), within: .seconds(30))
      #expect(output.text == "done\nLimitsExceeded\nLimitsExceeded\n", "\(output)")
    }
  }

  @Test func whatAClientGivesHasLimits() async throws {
    try await withService { world in
      let output = try world.sh(
        Self.python(
          """
          def create(collection, attributes):
              try:
                  return collection.create_item('l', attributes, b'x', replace=True) and 'done'
              except Exception as error:
                  return type(error).__name__
          import subprocess
          subprocess.run(['keyhole', 'unlock'], input=b'horse\\n')
          login, session = secretstorage.get_default_collection(connection), secretstorage.get_collection_by_alias(connection, 'session')
          print(create(login, {'a': 'x' * 3000000}), create(session, {'a': 'x' * 3000000}))
          print(create(login, {'keyhole.\\u0301id': '7'}))
          print([create(session, {'n%d' % n: 'x' * 900000}) for n in range(6)])
          """), within: .seconds(30))
      let lines = output.text.split(separator: "\n").map(String.init)
      #expect(lines.count == 3 && !lines[0].contains("done") && lines[1] != "done", "\(output)")
      #expect(lines.last?.components(of: "done") == 4, "\(output)")
    }
  }

  /// More than there is locked memory: encrypted they need none.
  @Test func secretsBeyondLockedMemoryComeTogether() async throws {
    try await withBus { world in
      try world.check("ulimit -l 8192; keyhole service")
      defer { try? Self.end(world) }
      try world.check(
        """
        for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
          head -c 1000000 /dev/zero | tr '\\0' x | keyhole set keychain/generic/many/$n
        done
        ulimit -l 65536 2> /dev/null || true
        secret-tool search --all service many 2> /dev/null | grep -c '^secret = xxx'
        """, prints: "12\n", within: .seconds(90))
    }
  }
}

extension String {
  fileprivate func components(of word: String) -> Int { ranges(of: word).count }
}
