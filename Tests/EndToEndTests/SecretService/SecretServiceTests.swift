import Glibc
import KeyringHarness
import Testing

/// The mount with the desktop's keyring as its keychain.
@Suite(.serialized, .timeLimit(.minutes(3))) struct SecretServiceTests: KeyringMountTesting {
  let bus: PrivateBus

  init() throws { bus = try Self.keyring() }

  @Test func automaticTakesTheServiceThatAnswers() async throws {
    try await withKeyhole("keychain=auto", environment: [address]) { keyhole in
      try keyhole.check("jq -r .keychain $MOUNT/.keyhole/status", prints: "secret-service\n")
      try keyhole.check("keyhole status | grep -c 'one answers on the session bus'", prints: "1\n")
    }
  }

  @Test func automaticTakesTheVaultWhereNothingAnswers() async throws {
    bus.signalKeyring(SIGSTOP)
    defer { bus.signalKeyring(SIGCONT) }
    try await withKeyhole("keychain=auto", environment: [address]) { keyhole in
      try keyhole.check("jq -r .keychain $MOUNT/.keyhole/status", prints: "vault\n")
      try keyhole.check("keyhole status | grep -c 'does not answer'", prints: "1\n")
    }
    try await withKeyhole("keychain=auto") { keyhole in
      try keyhole.check("keyhole status | grep -c 'there is no session bus'", prints: "1\n")
    }
  }

  /// The flags are the item's attributes; they hold for every access through Keyhole, and for no other.
  @Test(arguments: [true, false])
  func flagsAreAttributesAndHold(isApproved: Bool) async throws {
    try store("s3cret", "service S account A")
    let decide = isApproved ? "/bin/true" : "/bin/false"
    try await withKeyhole(
      "keychain=secret-service", "auth-command=\(decide)", "auth-reuse=0", environment: [address]
    ) { keyhole in
      let item = "keychain/generic/S/A"
      try keyhole.check("setfattr -n user.keyhole.access -v devicePasscode \(item)")
      #expect(try bus.run("secret-tool lookup keyhole.access devicePasscode") == "s3cret")
      let value = isApproved ? "s3cret" : ""
      #expect(try keyhole.sh("cat \(item)/value").text == value)
      #expect(try keyhole.sh("keyhole get \(item)/value").text == value)
      #expect(
        try keyhole.sh("keyhole migrate --from secret-service --to vault").status == (isApproved ? 0 : 5))
      #expect(try bus.run("secret-tool lookup service S account A || true") == (isApproved ? "" : "s3cret"))
    }
  }

  @Test func rulesOfFoldersHold() async throws {
    try store("s3cret", "service S account A")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      let item = "keychain/generic/S/A"
      try keyhole.check("setfattr -n user.keyhole.programs -v 'deny *' keychain/generic/S")
      try keyhole.refuses("cat \(item)/value", .denied)
      try keyhole.remount()
      try keyhole.refuses("cat \(item)/value", .denied)
      try keyhole.check("ls keychain/generic", prints: "S\n")
    }
  }

  @Test func treeAndSecretToolAgree() async throws {
    try store("s3cret", "service S account A color blue")
    try store("x", "server h user u protocol https port 8080")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      try keyhole.check("cat $MOUNT/keychain/generic/S/A/value", prints: "s3cret")
      try keyhole.check("cat \"$MOUNT/keychain/internet/h/u;protocol=https;port=8080/value\"", prints: "x")
      try keyhole.check("stat -c %s $MOUNT/keychain/generic/S/A/value", prints: "6\n")
      try keyhole.check(
        "getfattr --absolute-names --only-values -n user.color $MOUNT/keychain/generic/S/A", prints: "blue")
      try keyhole.check("setfattr -n user.color -v red $MOUNT/keychain/generic/S/A", prints: "")
      #expect(try bus.run("secret-tool lookup color red") == "s3cret")
      try keyhole.check(
        "mkdir -p $MOUNT/keychain/generic/T/B && echo new > $MOUNT/keychain/generic/T/B/value", prints: "")
      #expect(try bus.run("secret-tool lookup service T account B") == "new")
      try keyhole.check("mv $MOUNT/keychain/generic/T $MOUNT/keychain/generic/U", prints: "")
      #expect(try bus.run("secret-tool lookup service U account B") == "new")
      try keyhole.check("rm -r $MOUNT/keychain/generic/U", prints: "")
      #expect(try bus.run("secret-tool lookup service U account B || true").isEmpty)
      try keyhole.check("keyhole get keychain/generic/S/A/value", prints: "s3cret")
    }
  }

  @Test func lockedItemShowsAndIsRefused() async throws {
    try store("s3cret", "service S account A")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      try keyhole.check("cat $MOUNT/keychain/generic/S/A/value", prints: "s3cret")
      try bus.lock()
      try keyhole.check(
        "ls $MOUNT/keychain/generic/S; stat -c %s $MOUNT/keychain/generic/S/A/value", prints: "A\n6\n")
      // GNOME Keyring does not delete what is locked.
      for command in ["cat", "rm"] {
        try keyhole.check(
          "\(command) $MOUNT/keychain/generic/S/A/value 2>&1 | grep -c 'Required key'", prints: "1\n")
      }
      // No user answers the service's window.
      try keyhole.check(
        "keyhole unlock 2>&1; echo $?",
        prints:
          "keyhole: \(keyhole.mount): access was denied: the keyring stayed locked: its prompt was closed, or had no display; `keyhole mount --keep -o keychain=vault` uses Keyhole's own vault\n5\n"
      )
    }
  }

  @Test func itemsWithoutAttributesAreNamedByTheirLabels() async throws {
    try bus.stopKeyring()
    try bus.addKeyring(named: "odd", labels: ["a/b", "same", "same", "😀", "two\\nlines", ".dot"])
    try bus.startKeyring()
    try bus.unlock("odd")
    try store("s3cret", "service S account A")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      let names = try keyhole.sh("LC_ALL=C ls $MOUNT/keychain/other").text
      let suffix = names.split(separator: "\n").first { $0.hasPrefix("same%~") }?.dropFirst("same%~".count)
      let hash = try keyhole.sh("printf /org/freedesktop/secrets/collection/odd/3 | sha256sum | head -c 16")
        .text
      #expect(suffix.map(String.init) == hash)
      #expect(names == "%2Edot\na%2Fb\nsame\nsame%~\(hash)\ntwo%0Alines\n😀\n")
      try keyhole.check(
        "cd $MOUNT/keychain/other; cat a%2Fb/value same/value same%~*/value 😀/value two%0Alines/value",
        prints: (1...5).map { "secret \($0)" }.joined())
      try keyhole.check(
        "getfattr --absolute-names --only-values -n user.keyhole.collection $MOUNT/keychain/other/same",
        prints: "odd")
      // One collection is locked and another is not.
      try bus.lock()
      try keyhole.check(
        "cat $MOUNT/keychain/generic/S/A/value 2>&1 | grep -c 'Required key'; cat $MOUNT/keychain/other/same/value",
        prints: "1\nsecret 2")
    }
  }

  @Test func oneIdentityInTwoCollections() async throws {
    try bus.stopKeyring()
    try bus.addKeyring(named: "many", items: 2)
    try bus.startKeyring()
    try bus.unlock("many")
    try store("newer", "service many account 1")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      let hash =
        "printf $(gdbus call --session -d org.freedesktop.secrets -o /org/freedesktop/secrets/collection/login"
        + " -m org.freedesktop.DBus.Properties.Get org.freedesktop.Secret.Collection Items | grep -o '/[^]'\\'']*')"
        + " | sha256sum | head -c 16"
      let suffix = try bus.run(hash)
      try keyhole.check("ls $MOUNT/keychain/generic/many", prints: "1\n1%~\(suffix)\n2\n")
      try keyhole.check(
        "cd $MOUNT/keychain/generic/many; cat 1/value; echo other > 1%~*/value; cat 1/value 1%~*/value",
        prints: "secret 1secret 1other")
      // In a vault one of the two has another path.
      let listed = try keyhole.world.sh("keyhole migrate --dry-run --from secret-service --to vault")
      #expect(
        listed.text.contains("would move 3 items") && listed.error.contains("1 item with the path of another")
      )
      try keyhole.check(
        "rm -r $MOUNT/keychain/generic/many/1%~*; ls $MOUNT/keychain/generic/many", prints: "1\n2\n")
      #expect(try bus.run("secret-tool lookup service many account 1") == "secret 1")
      // The other one does not get the name while `rm` is at work.
      try store("newer", "service many account 1")
      #expect(
        holds {
          (try? keyhole.world.sh("ls $MOUNT/keychain/generic/many").text.split(separator: "\n").count) == 3
        })
      try keyhole.check(
        "rm -r $MOUNT/keychain/generic/many/1; cat $MOUNT/keychain/generic/many/1/value", prints: "newer")
    }
  }

  @Test func whatSecretToolDoesRaisesTheEventsOfALocalChange() async throws {
    try store("s3cret", "service S account A")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      try keyhole.check("mkdir $MOUNT/defaults/probe")
      let inotify = try keyhole.inotify("keychain/generic")
      try store("new", "service S account B")
      #expect(holds { System.exists(keyhole / "keychain/generic/S/B/value") })
      _ = try inotify.until("CREATE,ISDIR", "S/B")
      // Another attribute makes it another item for secret-tool, so the service's own interface is used.
      try bus.run(Self.setAttributes)
      _ = try inotify.until("ATTRIB", "S/A")
      try keyhole.check(
        "cd $MOUNT/keychain/generic/S/A; getfattr --only-values -n user.color value; getfattr --only-values -n user.keyhole.label value",
        prints: "bluelabel")
      try bus.run("secret-tool clear service S account A")
      #expect(holds { !System.exists(keyhole / "keychain/generic/S/A") })
      _ = try inotify.until("DELETE,ISDIR", "S/A")
      try keyhole.check("setfattr -n user.keyhole.label -v 'a/b ☃' $MOUNT/keychain/generic/S/B")
      #expect(try bus.run("secret-tool search service S 2>&1").contains("label = a/b ☃\n"))
    }
  }

  /// Gives the only item of the service `S` and the account `A` the color blue.
  private static let setAttributes = """
    item=$(gdbus call --session -d org.freedesktop.secrets -o /org/freedesktop/secrets \
      -m org.freedesktop.Secret.Service.SearchItems "{'account': 'A'}" | grep -o '/[^'\\'']*' | head -n 1)
    gdbus call --session -d org.freedesktop.secrets -o "$item" -m org.freedesktop.DBus.Properties.Set \
      org.freedesktop.Secret.Item Attributes "<{'service': 'S', 'account': 'A', 'color': 'blue'}>"
    """

  @Test func bigSecretsAreKeptToTheByte() async throws {
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      try keyhole.check("mkdir -p $MOUNT/keychain/generic/S/A; head -c 1048576 /dev/urandom > $OUT/big")
      try keyhole.check(
        "cp $OUT/big $MOUNT/keychain/generic/S/A/value; cmp $OUT/big $MOUNT/keychain/generic/S/A/value")
      try keyhole.world.check("secret-tool lookup service S account A | cmp - $OUT/big")
      try keyhole.check(
        "(cat $OUT/big; echo x) 2>&1 | dd of=$MOUNT/keychain/generic/S/A/value bs=64k 2>&1 | grep -q 'File too large' && cmp $OUT/big $MOUNT/keychain/generic/S/A/value"
      )
    }
  }

  @Test func outsideLockIsToldAndWipesWhatIsOpen() async throws {
    try store("s3cret", "service S account A")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      try keyhole.check("cat $MOUNT/keychain/generic/S/A/value", prints: "s3cret")
      let file = try OpenFile(keyhole / "keychain/generic/S/A/value", O_RDONLY)
      let events = try OpenFile(keyhole / ".keyhole/events", O_RDONLY)
      try bus.lock()
      var lines = ""
      while !lines.contains("\"locked\"") {
        lines += String(decoding: try events.read(upTo: 4096), as: UTF8.self)
      }
      #expect(throws: Errno(code: ENOKEY)) { try file.read(upTo: 10) }
    }
  }

  /// git's helper, in the sources that Debian's package brings.
  private static let helper = "/usr/share/doc/git/contrib/credential/libsecret"

  private static let canBuildHelper = ["\(helper)/git-credential-libsecret.c", "/usr/bin/cc"].allSatisfy {
    (try? System.status($0)) != nil
  }

  @Test(.enabled(if: canBuildHelper, "needs git's contrib folder and a C compiler"))
  func whatGitStoresIsAnInternetItem() async throws {
    try bus.run("cp -r \(Self.helper) \"$0/helper\" && make -s -C \"$0/helper\" CC=cc")
    let question = "printf 'protocol=https\\nhost=example.org\\npath=r\\nusername=me\\n"
    try bus.run("\(question)password=s3cret\\n' | \"$0/helper/git-credential-libsecret\" store")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      let value = "\"$MOUNT/keychain/internet/example.org/me;protocol=https;path=r/value\""
      try keyhole.check("cat \(value)", prints: "s3cret")
      try keyhole.check("echo new > \(value)", prints: "")
      let answer = try bus.run("\(question)' | \"$0/helper/git-credential-libsecret\" get")
      #expect(answer.contains("password=new\n"))
    }
  }

  @Test func migrationMovesAllItemsAndBack() async throws {
    try await withWorld(environment: [address]) { world in
      func check(_ script: String, prints output: String) throws {
        let result = try world.run(["/bin/sh", "-c", script])
        #expect(result.text + result.error == output, "\(script)")
      }
      let plain = "env -u DBUS_SESSION_BUS_ADDRESS keyhole"
      try check("printf v | \(plain) set keychain/generic/V/a/value", prints: "")
      try check("\(plain) attr keychain/generic/V/a comment hello", prints: "")
      try check(
        "keyhole migrate --from vault --to secret-service --dry-run",
        prints: "keychain/generic/V/a\nwould move 1 item from vault to secret-service\n")
      try check(
        "keyhole migrate --from vault --to secret-service",
        prints: "moved 1 item from vault to secret-service\n")
      #expect(try bus.run("secret-tool lookup comment hello") == "v")
      // `auto` went along: without the bus, the vault does not take the service's place.
      try check("\(plain) ls keychain/generic 2>&1 | grep -c 'has chosen it first'", prints: "1\n")
      try check(
        "keyhole migrate --from secret-service --to vault",
        prints: "moved 1 item from secret-service to vault\n")
      try check(
        "\(plain) get keychain/generic/V/a/value; \(plain) attr keychain/generic/V/a comment",
        prints: "vhello\n")
      #expect(try bus.run("secret-tool lookup comment hello || true").isEmpty)
    }
  }
}
