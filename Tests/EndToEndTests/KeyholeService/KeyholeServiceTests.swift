import Glibc
import KeyringHarness
import Testing

/// `keyhole service` without a mount: the commands that know it, its lock, and the name on the bus.
@Suite(.serialized, .timeLimit(.minutes(3)), .enabled(if: canServeItems, "needs dbus-daemon and secret-tool"))
struct KeyholeServiceTests: ServiceTesting {
  let bus: PrivateBus

  init() throws { bus = try PrivateBus() }

  @Test func statusTellsOfIt() async throws {
    try await withService { world in
      let screen = try world.sh("keyhole status")
      #expect(screen.status == 0 && screen.error.isEmpty)
      let process = try Self.process(world)
      #expect(process > 0)
      #expect(screen.text.hasPrefix("served on    the session bus, as the Secret Service, since "))
      #expect(screen.text.contains(" by process \(process), Keyhole "))
      #expect(screen.text.contains("\nlocked       yes; `keyhole unlock` opens it"))
      try world.check(
        "keyhole status --json | jq -c '[.secretService, .mountpoint, .keychain, .locked]'",
        prints: "[true,\"\",\"vault\",true]\n")
      #expect(try !world.sh("keyhole doctor").text.contains("Secret Service"))
    }
  }

  @Test func stoppedProcessIsNamed() async throws {
    try await withService { world in
      let process = try Self.process(world)
      kill(process, SIGSTOP)
      defer { kill(process, SIGCONT) }
      let status = try world.sh("keyhole status")
      #expect(status.status == 1, "\(status)")
      #expect(status.error.contains("`kill -CONT \(process)` has it go on"), "\(status)")
      #expect(
        try world.sh("keyhole doctor").text.contains(
          "org.freedesktop.secrets: its process is stopped, and whatever uses the service waits"))
    }
  }

  @Test func lockAndUnlock() async throws {
    try await withService { world in
      try world.check("echo horse | keyhole unlock; \(Self.isLocked)", prints: "false\n")
      try world.check("printf s3cret | secret-tool store --label=l service s account a")
      try world.check("secret-tool lookup service s account a; keyhole get s/a", prints: "s3crets3cret")
      try world.check("keyhole lock; \(Self.isLocked)", prints: "true\n")
      let wrong = try world.sh("echo cow | keyhole unlock")
      #expect(wrong.status == 5 && wrong.error.contains("the passphrase is wrong"))
      try world.check("echo horse | keyhole unlock --wait 20; \(Self.isLocked)", prints: "false\n")
      try world.check("keyhole lock")
      // It unlocks in the background.
      try world.check("printf horse | PAM_USER=$(id -un) keyhole unlock --pam")
      #expect(try holds { try world.sh(Self.isLocked).text == "false\n" })
    }
  }

  /// The service keeps the new keys: it does not have to be unlocked again.
  @Test func changedPassphraseLeavesItOpen() async throws {
    try await withService { world in
      try world.check("echo horse | keyhole unlock; printf s3cret | secret-tool store --label=l a b")
      let change = try world.sh("printf 'horse\\ncow\\n' | keyhole passphrase --weak --cost 14")
      #expect(change.status == 0, "\(change)")
      try world.check("\(Self.isLocked); secret-tool lookup a b", prints: "false\ns3cret")
    }
  }

  /// The service and a mount beside it have the vault open each for itself.
  @Test func oneLineUnlocksTheServiceAndAMount() async throws {
    try await withService { world in
      try world.check("mkdir $OUT/m; keyhole mount -q $OUT/m")
      defer { _ = try? world.sh("keyhole unmount $OUT/m") }
      let locks = "keyhole status | grep '^locked  ' | cut -c 14-16 | sort"
      try world.check("keyhole lock; printf horse | keyhole unlock; \(locks)", prints: "no\nno\n")
      // One that is open already takes no line.
      try world.check("keyhole unlock < /dev/null; \(locks)", prints: "no\nno\n")
    }
  }

  /// A client of the service locks what the mount has open, too.
  @Test func lockOnTheBusLocksTheMount() async throws {
    try await withService { world in
      try world.check("mkdir $OUT/m; keyhole mount -q $OUT/m; echo horse | keyhole unlock")
      defer { _ = try? world.sh("keyhole unmount $OUT/m") }
      try world.check(
        "\(Self.call) \(Self.root) -m org.freedesktop.Secret.Service.Lock \"['\(Self.root)/collection/login']\" > /dev/null"
      )
      try world.check("keyhole status | grep '^locked  ' | cut -c 14-16", prints: "yes\nyes\n")
    }
  }

  /// Which programs may go without encryption is known when the vault is unlocked: until then nothing crosses such a session.
  @Test(
    .enabled(
      if: Self.hasJeepney && System.exists("/usr/bin/pinentry-curses"),
      "needs python3-jeepney, pinentry-curses"))
  func plainSessionIsDecidedWhenTheVaultIsUnlocked() async throws {
    try await withService { world in
      let script = """
        import subprocess, sys
        from jeepney import DBusAddress, HeaderFields, MessageType, new_method_call
        from jeepney.io.blocking import open_dbus_connection
        connection = open_dbus_connection()
        root, prefix = "/org/freedesktop/secrets", "org.freedesktop.Secret."
        def call(path, interface, member, *arguments):
            address = DBusAddress(root + path, "org.freedesktop.secrets", prefix + interface)
            reply = connection.send_and_get_reply(new_method_call(address, member, *arguments))
            failed = reply.header.message_type == MessageType.error
            return (reply.header.fields[HeaderFields.error_name].split(".")[-1] if failed else "done", reply.body)
        lines = open("plain", "w", buffering=1)
        state, body = call("", "Service", "OpenSession", "sv", ("plain", ("s", "")))
        print(state, file=lines)
        def store():
            state, answer = call("/collection/session", "Collection", "CreateItem", "a{sv}(oayays)b",
                ({prefix + "Item.Label": ("s", "l")}, (body[1], b"", b"s3cret", "text/plain"), False))
            print(state, "allow --plain" in str(answer), file=lines)
        store()
        subprocess.run(["keyhole", "unlock"], input=b"horse\\n")
        store()
        subprocess.run(["keyhole", "allow", "--plain", sys.executable])
        store()
        subprocess.run(["keyhole", "config", "plain-programs", ""])
        store()
        """
      let terminal = try Terminal(
        ["/usr/bin/python3", "-c", script], environment: world.environment, directory: world.outside,
        errors: world.outside + "/errors")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("horse\r")
      let run = try terminal.finish()
      #expect(run.status == 0, "\(run)")
      try world.check(
        "cat $OUT/plain", prints: "done\nIsLocked False\nNotSupported True\ndone False\nNotSupported True\n")
    }
  }

  private static let hasJeepney = System.exists("/usr/lib/python3/dist-packages/jeepney")

  /// A mount with --service waits for the name as long as the service has it, and says which one that is.
  @Test func mountTakesTheNameWhenTheServiceEnds() async throws {
    try await withService { world in
      let process = try Self.process(world)
      try world.check("mkdir $OUT/m; keyhole mount -q --service $OUT/m")
      defer { _ = try? world.sh("keyhole unmount $OUT/m") }
      let problem = "keyhole status | grep ^problem"
      #expect(
        try world.sh(problem).text.contains(
          "`keyhole service` (process \(process)) is the Secret Service already"))
      let second = try world.sh("keyhole service")
      #expect(second.status == 1 && second.error.contains("(process \(process))"), "\(second)")
      kill(process, SIGTERM)
      #expect(try holds { try world.sh("keyhole status | grep ^bus").text.contains("unix:") })
      #expect(try world.sh(problem).text.isEmpty)
      try world.check("\(Self.call) \(Self.root) -m org.freedesktop.DBus.Peer.Ping", prints: "()\n")
    }
  }

  /// It waits for the name of another program too.
  @Test func mountTakesTheNameWhenAnotherKeyringEnds() async throws {
    try bus.startKeyring()
    try await withWorld(environment: ["DBUS_SESSION_BUS_ADDRESS=\(bus.address)"]) { world in
      let mounted = try world.sh("keyhole mount --service -o keychain=vault $MOUNT")
      defer { _ = try? world.sh("keyhole unmount $MOUNT") }
      #expect(mounted.status == 0, "\(mounted)")
      let problem = "keyhole status | grep ^problem"
      #expect(try world.sh(problem).text.contains("gnome-keyring-daemon (pid \(bus.keyring)"))
      kill(bus.keyring, SIGKILL)
      #expect(try holds { try world.sh("keyhole status | grep ^bus").text.contains("unix:") })
      #expect(try world.sh(problem).text.isEmpty)
      try world.check("\(Self.call) \(Self.root) -m org.freedesktop.DBus.Peer.Ping", prints: "()\n")
    }
  }
}
