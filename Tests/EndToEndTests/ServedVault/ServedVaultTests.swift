import Glibc
import KeyringHarness
import Testing

/// The vault as org.freedesktop.secrets, for programs of other projects, on a bus of the test's own.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ServedVaultTests {
  let bus: PrivateBus

  init() throws {
    bus = try PrivateBus()
  }

  /// Runs `body` while `keyhole service` serves, and ends it.
  private func withService(
    environment: [String] = [], prepare: String = "true", body: (World, Program) throws -> Void
  ) async throws {
    let address = "DBUS_SESSION_BUS_ADDRESS=\(bus.address)"
    try await withWorld(environment: [address] + environment) { world in
      try world.check(prepare, within: LockTests.patience)
      let service = try serve(world)
      defer { service.kill() }
      try body(world, service)
    }
  }

  /// Returns when the service has its name.
  private func serve(_ world: World) throws -> Program {
    let service = try Program(
      [Products.keyhole, "service", "--foreground"], environment: world.environment, directory: world.outside,
      log: world.log)
    try world.check("gdbus wait --session --timeout 20 org.freedesktop.secrets")
    return service
  }

  private static let store = "printf s3cret | secret-tool store --label=Label service S username u"
  private static let passphrase = "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null"

  @Test func secretToolAndCommandsAgree() async throws {
    try await withService { world, _ in
      try world.check(Self.store)
      try world.check("keyhole get keychain/generic/S/u", prints: "s3cret")
      try world.check("secret-tool lookup service S username u", prints: "s3cret")
      try world.check("printf two | keyhole set keychain/generic/T/v")
      // Another process has stored it: the service follows the vault's file.
      #expect(try holds { try world.sh("secret-tool lookup service T account v").text == "two" })
      try world.check("secret-tool clear service S username u")
      #expect(try world.sh("keyhole get keychain/generic/S/u").status == 3)
    }
  }

  @Test func attributesComeBackAsTheyWere() async throws {
    try await withService { world, _ in
      try world.check(
        """
        python3 - <<'END'
        import secretstorage
        connection = secretstorage.dbus_init()
        login = secretstorage.get_default_collection(connection)
        for attributes in [
            {'service': 's', 'username': 'u'}, {'service': 's', 'username': 'u', 'application': 'x'}, {'a': ''},
            {'server': 'h', 'user': 'u', 'protocol': 'https'}, {'xdg:schema': 'org.git.Password', 'server': 'h'},
            {'xdg:schema': 'org.freedesktop.Secret.Generic', 'service': 't', 'account': 'é'}, {},
        ]:
            item = login.create_item('label', attributes, b'a\\0b')
            assert item.get_attributes() == attributes, (attributes, item.get_attributes())
            assert item.get_label() == 'label' and item.get_secret() == b'a\\0b'
            if attributes:
                assert item.item_path in [found.item_path for found in login.search_items(attributes)], attributes
        same = login.create_item('other', {'service': 's', 'username': 'u'}, b'new', replace=True)
        assert same.get_secret() == b'new'
        try:
            login.create_item('x', {'keyhole.access': ''}, b'x')
            assert False
        except Exception as error:
            assert 'Keyhole' in str(error), error
        END
        """)
    }
  }

  @Test func lockedVaultDismissesPromptsAndListsTheRequest() async throws {
    let prepare = "printf s3cret | keyhole set keychain/generic/S/u; \(Self.passphrase)"
    try await withService(prepare: prepare) { world, _ in
      // Never unlocked: not even names are known, and no dialog can be shown.
      #expect(try world.sh("setsid -w secret-tool lookup service S username u").status == 1)
      try world.check("keyhole requests | cut -f 2,3", prints: "unlock\tkeychain\n")
      try world.check("echo horse | keyhole unlock", within: LockTests.patience)
      try world.check("keyhole requests")
      try world.check("secret-tool lookup service S username u", prints: "s3cret")
      try world.check("keyhole lock")
      #expect(try world.sh("setsid -w secret-tool lookup service S username u").status == 1)
      try world.check(
        "keyhole requests | cut -f 2,3", prints: "unlock\tkeychain/generic/S/u\n")
    }
  }

  @Test func guardedItemIsLockedUntilTheUserAgrees() async throws {
    try await withService { world, _ in
      try world.check(Self.store)
      // Without a passphrase nothing could be typed for `keyhole approve`, and the request would be refused at once.
      try world.check(Self.passphrase, within: LockTests.patience)
      try world.check("keyhole attr keychain/generic/S/u keyhole.programs 'ask *'")
      #expect(try world.sh("setsid -w secret-tool lookup service S username u").status == 1)
      try world.check("keyhole requests | cut -f 2,3", prints: "read\tkeychain/generic/S/u\n")
      try world.check("printf x | keyhole set keychain/generic/T/v")
      try world.check("keyhole attr keychain/generic/T/v keyhole.programs 'deny *'")
      #expect(
        try holds { try world.sh("setsid -w secret-tool lookup service T account v").status == 1 })
      try world.check("keyhole log | cut -f 2 | tail -n 1", prints: "denied\n")
    }
  }

  @Test(.enabled(if: System.exists("/usr/bin/pinentry-curses"), "needs pinentry-curses"))
  func plainSessionsTakeARule() async throws {
    let open =
      "gdbus call --session -d org.freedesktop.secrets -o /org/freedesktop/secrets "
      + "-m org.freedesktop.Secret.Service.OpenSession plain \"<''>\""
    try await withService { world, _ in
      let refused = try world.sh(open)
      #expect(refused.error.contains("NotSupported"), "\(refused)")
      #expect(refused.error.contains("keyhole allow --plain /usr/bin/gdbus"), "\(refused)")
      // Without a passphrase there is nothing to type.
      let withoutPassphrase = try world.sh("setsid -w keyhole allow --plain gdbus")
      #expect(withoutPassphrase.error.contains("`keyhole passphrase`"), "\(withoutPassphrase)")
      try world.check(Self.passphrase, within: LockTests.patience)
      try world.check("echo horse | keyhole unlock", within: LockTests.patience)
      let terminal = try Terminal(
        ["/bin/sh", "-c", "keyhole allow --plain gdbus"], environment: world.environment,
        directory: world.outside, errors: world.outside + "/errors")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("horse\r")
      let allowed = try terminal.finish()
      #expect(allowed.status == 0, "\(allowed)")
      let opened = try world.sh(open)
      #expect(opened.text.contains("/org/freedesktop/secrets/session/"), "\(opened)")
    }
  }

  @Test func anotherServiceIsNamed() async throws {
    try bus.startKeyring()
    let address = "DBUS_SESSION_BUS_ADDRESS=\(bus.address)"
    try await withWorld(environment: [address]) { world in
      let output = try world.sh("keyhole service")
      #expect(output.status == 1)
      #expect(output.error.contains("gnome-keyring-daemon"), "\(output)")
      #expect(output.error.contains("(pid \(bus.keyring)"), "\(output)")
      #expect(output.error.contains("`kill \(bus.keyring)` stops it"), "\(output)")
    }
  }

  @Test func withoutABusTheWayToOneIsSaid() async throws {
    try await withWorld { world in
      let output = try world.sh("unset DBUS_SESSION_BUS_ADDRESS; keyhole service")
      #expect(output.status == 1 && output.error.contains("`dbus-run-session -- $SHELL`"), "\(output)")
    }
  }

  @Test func ownServiceIsNoKeychain() async throws {
    try await withService { world, _ in
      try world.check(Self.store)
      let output = try world.sh("keyhole migrate --from secret-service --to vault")
      #expect(output.status == 1 && output.error.contains("Keyhole's own"), "\(output)")
      try world.check(
        "rm -f $XDG_STATE_HOME/keyhole/keychain; keyhole get keychain/generic/S/u", prints: "s3cret")
    }
  }

  @Test func enabledFilesAreExactlyThoseThatDisableRemoves() async throws {
    try await withWorld { world in
      try world.check(
        "mkdir -p $DATA/dbus-1/services $DATA/systemd/user; find $DATA -type f -name '*secrets*' | sort")
      try world.check("keyhole service --enable -q")
      try world.check(
        "cd $DATA; find . -type f -name '*secrets*' | sort",
        prints: "./dbus-1/services/org.freedesktop.secrets.service\n./systemd/user/keyhole-secrets.service\n")
      try world.check(
        "keyhole service --enable -q; keyhole service --disable -q; find $DATA -type f -name '*secrets*'")
      try world.check("echo other > $DATA/dbus-1/services/org.freedesktop.secrets.service")
      #expect(try world.sh("keyhole service --enable").status == 1)
      // The unit is removed also where the other file is foreign.
      let left = try world.sh("keyhole service --disable")
      #expect(left.status == 0 && left.error.contains("another program's file is left: "), "\(left)")
      try world.check("cat $DATA/dbus-1/services/*; ls $DATA/systemd/user", prints: "other\n")
      try world.check("rm $DATA/dbus-1/services/*; keyhole service --enable -q")
      try world.check("echo other > $DATA/dbus-1/services/org.freedesktop.secrets.service")
      try world.check(
        "keyhole service --disable -q; cat $DATA/dbus-1/services/*; ls $DATA/systemd/user", prints: "other\n")
      // A link that leads to nothing is another program's too.
      try world.check("ln -sf $OUT/none $DATA/dbus-1/services/org.freedesktop.secrets.service")
      let linked = try world.sh("keyhole service --enable")
      #expect(linked.status == 1 && linked.error.contains("this symbolic link"), "\(linked)")
      #expect(try world.sh("keyhole service --disable").status == 0)
      try world.check(
        "readlink $DATA/dbus-1/services/*; test ! -e $OUT/none && ls $DATA/systemd/user",
        prints: "\(world.outside)/none\n")
    }
  }

  /// Folders that were there, or have something else in them by now, stay.
  @Test func foldersThatEnableMadeGoToo() async throws {
    try await withWorld { world in
      let start =
        "export XDG_DATA_HOME=$OUT/data/share; tree() { (cd $OUT; find . -path '*data*' | sort); }; "
      try world.check(
        start + "keyhole service --enable -q; keyhole service --enable -q; keyhole service --disable -q; tree"
      )
      try world.check(
        start
          + "mkdir -p $XDG_DATA_HOME/systemd; keyhole service --enable -q; keyhole service --disable -q; tree",
        prints: "./data\n./data/share\n./data/share/systemd\n")
      try world.check(
        start
          + """
          keyhole service --enable -q; touch $XDG_DATA_HOME/dbus-1/other; keyhole service --disable -q; tree
          """,
        prints: "./data\n./data/share\n./data/share/dbus-1\n./data/share/dbus-1/other\n./data/share/systemd\n"
      )
    }
  }

  /// dbus-daemon(1) takes the home of passwd(5), whatever HOME says.
  @Test func enableSaysWhereTheBusLooks() async throws {
    try await withWorld { world in
      let home = try world.sh("getent passwd $(id -u) | cut -d : -f 6").text.dropLast()
      let elsewhere = try world.sh("XDG_DATA_HOME=$DATA keyhole service --enable")
      let place = "the session bus looks in \(home)/.local/share, unless it was started with "
      #expect(elsewhere.status == 0 && elsewhere.error.contains(place), "\(elsewhere)")
      #expect(elsewhere.error.contains("XDG_DATA_HOME=\(world.data)"), "\(elsewhere)")
    }
  }

  @Test func disableNamesAServiceThatRuns() async throws {
    try await withService { world, service in
      let output = try world.sh("keyhole service --enable -q; keyhole service --disable")
      #expect(output.status == 0 && output.error.contains("`keyhole service` (process "), "\(output)")
      #expect(output.error.contains("still serves; `"), "\(output)")
      try world.check("find $DATA -name '*secrets*'")
    }
  }

  /// Python's beginning of a program that opens sessions and closes them: `close` returns the name of an error, or `None`.
  private static let sessions = """
    from jeepney import DBusAddress, new_method_call
    from jeepney.io.blocking import open_dbus_connection
    address = DBusAddress('/org/freedesktop/secrets', 'org.freedesktop.secrets', 'org.freedesktop.Secret.Service')
    call = new_method_call(address, 'OpenSession', 'sv',
        ('dh-ietf1024-sha256-aes128-cbc-pkcs7', ('ay', b'\\2' * 128)))
    def open_session(connection):
        reply = connection.send_and_get_reply(call)
        assert not reply.header.fields.get(4), reply
        return DBusAddress(reply.body[1], 'org.freedesktop.secrets', 'org.freedesktop.Secret.Session')
    def close(connection, session):
        return connection.send_and_get_reply(new_method_call(session, 'Close')).header.fields.get(4)
    """

  @Test func sessionsOfALeftConnectionEnd() async throws {
    try await withService { world, service in
      try world.check(
        """
        python3 - <<'END'
        \(Self.sessions)
        for _ in range(3):
            connection = open_dbus_connection()
            opened = [open_session(connection) for _ in range(260)]
            # The oldest four are closed, as 256 may be open.
            assert all(close(connection, session) for session in opened[:4])
            assert not any(close(connection, session) for session in opened[4:])
            connection.close()
        END
        """, within: LockTests.patience)
      try world.check(Self.store)
    }
  }

  /// A client that opens sessions over many connections takes no session of another one.
  @Test func sessionsOfAllConnectionsAreBounded() async throws {
    try await withService { world, service in
      try world.check(
        """
        python3 - <<'END'
        \(Self.sessions)
        mine = open_dbus_connection()
        session = open_session(mine)
        others = [open_dbus_connection() for _ in range(5)]
        opened = [(other, open_session(other)) for other in others for _ in range(250)]
        assert close(mine, session) is None
        assert sum(close(*pair) is None for pair in opened) == 1023
        END
        """, within: LockTests.patience)
      try world.check(Self.store)
    }
  }

  @Test func hostileMessagesAreErrors() async throws {
    try await withService { world, _ in
      try world.check(
        """
        python3 - <<'END'
        from jeepney import DBusAddress, new_method_call
        from jeepney.io.blocking import open_dbus_connection
        connection = open_dbus_connection()
        def call(path, interface, method, signature=None, body=()):
            address = DBusAddress(path, 'org.freedesktop.secrets', interface)
            reply = connection.send_and_get_reply(new_method_call(address, method, signature, body))
            assert reply.header.fields.get(4), (path, method, reply.body)
        root, service = '/org/freedesktop/secrets', 'org.freedesktop.Secret.Service'
        login, collection = root + '/collection/login', 'org.freedesktop.Secret.Collection'
        call(root, service, 'OpenSession', 's', ('plain',))
        call(root, service, 'OpenSession', 'sv', ('dh-ietf1024-sha256-aes128-cbc-pkcs7', ('s', 'x')))
        call(root, service, 'OpenSession', 'sv', ('dh-ietf1024-sha256-aes128-cbc-pkcs7', ('ay', b'')))
        call(root, service, 'Unlock', 's', ('x',))
        call(root, service, 'GetSecrets', 'aoo', ([], '/'))
        call(root, service, 'Nothing')
        call(root + '/x', service, 'SearchItems', 'a{ss}', ({},))
        call(root + '/session/1', 'org.freedesktop.Secret.Session', 'Close')
        call(root + '/prompt/1', 'org.freedesktop.Secret.Prompt', 'Prompt', 's', ('',))
        call(login, collection, 'CreateItem', 'a{sv}(oayays)b', ({}, ('/', b'', b'', ''), False))
        call(login, 'org.freedesktop.DBus.Properties', 'Set', 'ssv', (collection, 'Locked', ('b', True)))
        call(login + '/x', 'org.freedesktop.Secret.Item', 'Delete')
        call(login, collection, 'Delete')
        END
        """)
      try world.check(Self.store)
    }
  }

  /// Acknowledged items are there after the process was killed.
  @Test func killedServiceLosesNothing() async throws {
    try await withService { world, service in
      let script = """
        import secretstorage
        connection = secretstorage.dbus_init()
        login = secretstorage.get_default_collection(connection)
        number = 0
        while True:
            try:
                login.create_item(f'l{number}', {'n': str(number)}, b'x')
            except Exception:
                break
            number += 1
            print(number, flush=True)
        """
      let client = try Program(
        ["/usr/bin/python3", "-c", script], environment: world.environment, directory: world.outside)
      for _ in 0..<5 { _ = try client.line() }
      service.kill()
      var acknowledged = 5
      while let line = try client.line() { acknowledged = Int(line) ?? acknowledged }
      let again = try serve(world)
      defer { again.kill() }
      let stored = try world.sh(
        "python3 -c \"import secretstorage; c = secretstorage.dbus_init(); "
          + "print(len(list(secretstorage.get_default_collection(c).get_all_items())))\"")
      #expect((Int(stored.text.dropLast()) ?? 0) >= acknowledged, "\(stored)")
    }
  }

  @Test func mountServesAndSignalsItsChanges() async throws {
    let address = "DBUS_SESSION_BUS_ADDRESS=\(bus.address)"
    try await withWorld(environment: [address]) { world in
      let mount = Task {
        try world.run([Products.keyhole, "mount", "--service", "-o", "keychain=vault", world.mount])
      }
      _ = try await mount.value
      defer { _ = try? world.sh("keyhole unmount $MOUNT") }
      try world.check(Self.store)
      try world.check("cat $MOUNT/keychain/generic/S/u/value", prints: "s3cret")
      let monitor = try Program(
        ["/usr/bin/gdbus", "monitor", "--session", "--dest", "org.freedesktop.secrets"],
        environment: world.environment, directory: world.outside)
      defer { monitor.kill() }
      while let line = try monitor.line(), !line.contains("is owned by") {}
      try world.check("mkdir -p $MOUNT/keychain/generic/T/v; printf x > $MOUNT/keychain/generic/T/v/value")
      var line = try monitor.line()
      while let text = line, !text.contains("ItemCreated") { line = try monitor.line() }
      #expect(line?.contains("/org/freedesktop/secrets/collection/login/") == true)
      try world.check("secret-tool lookup service T account v", prints: "x")
    }
  }

  /// A change by a client of the bus is one that no program has made on the mount.
  @Test func changesOfClientsAreEventsOnTheMount() async throws {
    let address = "DBUS_SESSION_BUS_ADDRESS=\(bus.address)"
    try await withWorld(environment: [address]) { world in
      try world.check("keyhole mount --service -o keychain=vault \"$MOUNT\"")
      defer { _ = try? world.sh("keyhole unmount \"$MOUNT\"") }
      try world.check(Self.store)
      try world.check("ls -R \"$MOUNT/keychain\" > /dev/null")
      let watcher = Watcher(
        try world.launch(
          "exec inotifywait -m -r -e close_write,create,delete --format '%e %w%f' \"$MOUNT/keychain\" 2>&1"))
      _ = try watcher.until("established")
      try world.check("printf new | secret-tool store --label=L service S username u")
      _ = try watcher.until("CLOSE_WRITE", "/generic/S/u/value")
      try world.check("printf new | secret-tool store --label=L service S username v")
      _ = try watcher.until("CREATE", "/generic/S/v")
      try world.check("secret-tool clear service S username u")
      _ = try watcher.until("DELETE", "/generic/S/u")
      try world.check("ls \"$MOUNT/keychain/generic/S\"", prints: "v\n")
    }
  }

  /// `auto` does not ask a keyring that would be started for it.
  @Test func autoIsTheVaultWhereItIsServed() async throws {
    try bus.startKeyring()
    let address = "DBUS_SESSION_BUS_ADDRESS=\(bus.address)"
    try await withWorld(environment: [address]) { world in
      let mounted = try world.sh("keyhole mount --service \"$MOUNT\"")
      defer { _ = try? world.sh("keyhole unmount \"$MOUNT\"") }
      #expect(mounted.status == 0, "\(mounted)")
      try world.check("keyhole status --json | jq -r .keychain", prints: "vault\n")
      #expect(try world.sh("keyhole status").text.contains("gnome-keyring-daemon (pid"))
    }
  }
}
