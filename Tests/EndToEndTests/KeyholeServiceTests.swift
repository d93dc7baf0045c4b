import Glibc
import KeyringHarness
import Testing

/// `keyhole service` without a mount: the commands that know it, and clients on a session bus of the test's own.
@Suite(
  .serialized, .timeLimit(.minutes(3)),
  .enabled(
    if: System.exists("/usr/bin/dbus-daemon") && System.exists("/usr/bin/secret-tool"),
    "needs dbus-daemon and secret-tool"))
struct KeyholeServiceTests {
  private let bus: PrivateBus

  init() throws { bus = try PrivateBus() }

  /// A vault with the passphrase `horse` that the service serves, locked.
  private func withService(_ body: (World) async throws -> Void) async throws {
    try await withWorld(environment: ["DBUS_SESSION_BUS_ADDRESS=\(bus.address)"]) { world in
      _ = try world.sh("echo horse | keyhole passphrase --weak --cost 14")
      try Self.start(world)
      defer { try? Self.end(world) }
      try await body(world)
    }
  }

  private static func start(_ world: World) throws {
    let output = try world.sh("keyhole service")
    #expect(output.status == 0, "\(output)")
  }

  private static func process(_ world: World) throws -> Int32 {
    Int32(try world.sh("keyhole status --json | jq .pid").text.dropLast()) ?? 0
  }

  /// Ends the service, and returns when it is gone.
  private static func end(_ world: World) throws {
    let process = try process(world)
    guard process > 0 else { return }
    kill(process, SIGTERM)
    #expect(try holds { try world.sh("keyhole status").status != 0 })
  }

  private static let isLocked = "keyhole status --json | jq .locked"

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
        """
      let terminal = try Terminal(
        ["/usr/bin/python3", "-c", script], environment: world.environment, directory: world.outside,
        errors: world.outside + "/errors")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("horse\r")
      let run = try terminal.finish()
      #expect(run.status == 0, "\(run)")
      try world.check("cat $OUT/plain", prints: "done\nIsLocked False\nNotSupported True\ndone False\n")
    }
  }

  private static let hasJeepney = System.exists("/usr/lib/python3/dist-packages/jeepney")

  /// The label of `login` is sealed in the vault, as those of all collections are.
  @Test func labelOfLoginIsInTheVault() async throws {
    try await withService { world in
      let properties = "\(Self.call) \(Self.root)/collection/login -m org.freedesktop.DBus.Properties"
      let get = "\(properties).Get org.freedesktop.Secret.Collection Label"
      let set = "\(properties).Set org.freedesktop.Secret.Collection Label"
      let early = try world.sh("\(set) \"<'Early'>\"")
      #expect(early.error.contains("IsLocked"), "\(early)")
      try world.check(
        "echo horse | keyhole unlock; \(set) \"<'My own'>\"; \(get)", prints: "()\n(<'My own'>,)\n")
      try world.check("grep -rl 'My own' \"$XDG_STATE_HOME\" \"$XDG_DATA_HOME\" | wc -l", prints: "0\n")
      try world.check("keyhole lock")
      let locked = try world.sh("\(set) \"<'Other'>\"")
      #expect(locked.error.contains("IsLocked"), "\(locked)")
      try Self.end(world)
      try Self.start(world)
      try world.check("\(get); echo horse | keyhole unlock; \(get)", prints: "(<'Login'>,)\n(<'My own'>,)\n")
    }
  }

  /// One that was set before labels were sealed is not lost: the vault takes it over when it is unlocked.
  @Test func formerLabelOfLoginIsTakenOver() async throws {
    try await withService { world in
      let get =
        "\(Self.call) \(Self.root)/collection/login -m org.freedesktop.DBus.Properties.Get org.freedesktop.Secret.Collection Label"
      let file = "\"$XDG_STATE_HOME/keyhole/collection-label\""
      try world.check("printf Former > \(file); \(get)", prints: "(<'Former'>,)\n")
      try world.check("echo horse | keyhole unlock; \(get)", prints: "(<'Former'>,)\n")
      #expect(try holds { try world.sh("test ! -e \(file)").status == 0 })
      try world.check(get, prints: "(<'Former'>,)\n")
      try Self.end(world)
      try Self.start(world)
      try world.check("echo horse | keyhole unlock; \(get)", prints: "(<'Former'>,)\n")
    }
  }

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
      try world.check("keyhole requests --json | jq -r .program", prints: "\(world.outside)/other\n")
    }
  }

  private static let call = "gdbus call --session -d org.freedesktop.secrets -o"
  private static let root = "/org/freedesktop/secrets"

  private static func create(_ label: String, _ alias: String) -> String {
    "\(call) \(root) -m org.freedesktop.Secret.Service.CreateCollection "
      + "\"{'org.freedesktop.Secret.Collection.Label': <'\(label)'>}\" '\(alias)' > /dev/null"
  }

  private static func label(of collection: String) -> String {
    "\(call) \(root)/collection/\(collection) -m org.freedesktop.DBus.Properties.Get org.freedesktop.Secret.Collection Label"
  }

  /// Those without items too.
  @Test func exportKeepsCollections() async throws {
    try await withService { world in
      try world.check("echo horse | keyhole unlock; \(Self.create("My work", "work"))")
      let store =
        "printf s3cret | secret-tool store --collection=\(Self.root)/collection/My_work --label=l service s account a"
      try world.check(store)
      try world.check("keyhole export --plain -o $OUT/exported")
      let delete =
        "\(Self.call) \(Self.root)/collection/My_work -m org.freedesktop.Secret.Collection.Delete > /dev/null"
      let readAlias = "\(Self.call) \(Self.root) -m org.freedesktop.Secret.Service.ReadAlias work"
      try world.check("\(delete); \(readAlias)", prints: "(objectpath '/',)\n")
      try world.check("keyhole import $OUT/exported > /dev/null")
      let all = "\(Self.label(of: "My_work")); \(readAlias)"
      let kept = "(<'My work'>,)\n(objectpath '\(Self.root)/collection/My_work',)\n"
      #expect(try holds { try world.sh(all).text == kept })
      // An import of the same changes nothing.
      try world.check("keyhole import --keep $OUT/exported > /dev/null; \(all)", prints: kept)
      // An empty one, in an export without items.
      try world.check("keyhole rm -f s/a; keyhole export --plain keychain > $OUT/empty; \(delete)")
      try world.check("keyhole import $OUT/empty")
      #expect(try holds { try world.sh(all).text == kept })
    }
  }

  /// The collection of a client is in the items, so a copy of the items has it too.
  @Test func collectionsOutliveTheServiceAndAnExport() async throws {
    try await withService { world in
      try world.check("echo horse | keyhole unlock")
      try world.check(
        "\(Self.call) \(Self.root) -m org.freedesktop.Secret.Service.CreateCollection "
          + "\"{'org.freedesktop.Secret.Collection.Label': <'My work'>}\" work",
        prints: "(objectpath '\(Self.root)/collection/My_work', objectpath '/')\n")
      try world.check(
        "printf s3cret | secret-tool store --collection=\(Self.root)/collection/My_work --label=l service s account a"
      )
      let attribute = "keyhole attr s/a keyhole.collection"
      try world.check(attribute, prints: "My_work\n")
      try world.check("keyhole history", prints: "")
      let setDefault = "\(Self.call) \(Self.root) -m org.freedesktop.Secret.Service.SetAlias default"
      try world.check("\(setDefault) \(Self.root)/collection/My_work", prints: "()\n")
      try Self.end(world)
      try Self.start(world)
      // Also before the vault is unlocked.
      let readDefault = "\(Self.call) \(Self.root) -m org.freedesktop.Secret.Service.ReadAlias default"
      try world.check(readDefault, prints: "(objectpath '\(Self.root)/collection/My_work',)\n")
      try world.check("echo horse | keyhole unlock")
      try world.check(
        "printf s3cret | secret-tool store --label=l service s account b; keyhole attr s/b keyhole.collection",
        prints: "My_work\n")
      try world.check(
        "\(Self.call) \(Self.root) -m org.freedesktop.Secret.Service.ReadAlias work",
        prints: "(objectpath '\(Self.root)/collection/My_work',)\n")
      let label =
        "\(Self.call) \(Self.root)/aliases/work -m org.freedesktop.DBus.Properties.Get org.freedesktop.Secret.Collection Label"
      try world.check(label, prints: "(<'My work'>,)\n")
      try world.check("keyhole export --plain keychain > $OUT/exported 2> /dev/null; keyhole rm -f s/a")
      try world.check(
        "\(Self.call) \(Self.root)/collection/My_work -m org.freedesktop.Secret.Collection.Delete",
        prints: "(objectpath '/',)\n")
      try world.check("keyhole ls keychain/generic", prints: "")
      try world.check(readDefault, prints: "(objectpath '\(Self.root)/collection/login',)\n")
      // The history has what was in it.
      try world.check("keyhole undo keychain/generic/s/b > /dev/null 2>&1; keyhole get s/b", prints: "s3cret")
      try world.check(
        "keyhole import $OUT/exported 2> /dev/null > /dev/null; \(attribute)", prints: "My_work\n")
      // With the whole keychain its label came, too.
      let kept = label.replacing("aliases/work", with: "collection/My_work")
      #expect(try holds { try world.sh(kept).text == "(<'My work'>,)\n" })
    }
  }
}
