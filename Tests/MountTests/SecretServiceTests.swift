import Glibc
import KeyringHarness
import Testing

/// The mount with the desktop's keyring as its keychain.
@Suite(.serialized, .timeLimit(.minutes(3))) struct SecretServiceTests {
  let bus: PrivateBus

  init() throws {
    bus = try PrivateBus()
    try bus.startKeyring()
  }

  private var address: String { "DBUS_SESSION_BUS_ADDRESS=\(bus.address)" }

  private func store(_ secret: String, _ attributes: String) throws {
    try bus.run("secret-tool store --label=label \(attributes)", input: Array(secret.utf8))
  }

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
        try keyhole.sh("keyhole migrate --from secret-service --to vault").status == (isApproved ? 0 : 1))
      #expect(try bus.run("secret-tool lookup service S account A || true") == (isApproved ? "" : "s3cret"))
    }
  }

  @Test func passwordOfItsOwnIsRefusedAndRulesOfFoldersHold() async throws {
    try store("s3cret", "service S account A")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      let item = "keychain/generic/S/A"
      try keyhole.refuses("setfattr -n user.keyhole.access -v applicationPassword \(item)", .notSupported)
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
      // Nobody is there to answer the service's window.
      try keyhole.check(
        "keyhole unlock 2>&1; echo $?",
        prints: "keyhole: \(keyhole.mount): access was denied: the Secret Service was not allowed to\n1\n")
    }
  }

  @Test func lockedItemIsRemovedWhereTheServiceAsksAPerson() async throws {
    try bus.stopKeyring()
    try bus.startStandIn(.plain, .open, .prompt)
    try await withKeyhole("keychain=secret-service", "plain-session", environment: [address]) { keyhole in
      try keyhole.check("cat $MOUNT/keychain/generic/S/A/value; keyhole lock", prints: "s3cret")
      try keyhole.check(
        "cat $MOUNT/keychain/generic/S/A/value 2>&1 | grep -c 'Required key'", prints: "1\n")
      try keyhole.check("rm -r $MOUNT/keychain/generic/S; ls $MOUNT/keychain/generic", prints: "")
    }
  }

  @Test func plainSessionIsTakenOnlyWhereTheMountAllowsIt() async throws {
    try bus.stopKeyring()
    try bus.startStandIn(.plain)
    let value = "$MOUNT/keychain/generic/S/A/value"
    try await withWorld(environment: [address]) { world in
      let refused = try world.sh("keyhole mount -o keychain=secret-service \"$MOUNT\"")
      #expect(refused.status == 1 && refused.error.hasSuffix("the mount option plain-session allows that\n"))
    }
    try await withKeyhole("keychain=auto", environment: [address]) { keyhole in
      try keyhole.check("jq -r .keychain $MOUNT/.keyhole/status", prints: "vault\n")
      try keyhole.check("keyhole status | grep -c 'offers no encrypted session'", prints: "1\n")
    }
    try await withKeyhole("keychain=secret-service", "plain-session", environment: [address]) { keyhole in
      try keyhole.check("cat \(value); echo new > \(value); cat \(value)", prints: "s3cretnew")
    }
  }

  @Test func plainServiceInThePlaceOfAnotherGetsNothing() async throws {
    try store("s3cret", "service S account A")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      let value = "$MOUNT/keychain/generic/S/A/value"
      try keyhole.check("cat \(value)", prints: "s3cret")
      try bus.stopKeyring()
      try bus.startStandIn(.plain)
      let calls = try bus.traffic {
        for command in ["cat \(value)", "echo new | dd of=\(value) conv=fsync"] {
          try keyhole.check(
            "{ \(command); } 2>&1 | grep -q 'not permitted' && echo refused", prints: "refused\n")
        }
      }
      #expect(!calls.contains { $0.path.contains("collection") })
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

  @Test func aSecretIsOneRoundTripAndStatNone() async throws {
    try store("s3cret", "service S account A")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      try keyhole.check("cat $MOUNT/keychain/generic/S/A/value", prints: "s3cret")
      func methods(_ script: String) throws -> [String] {
        let calls = try bus.traffic { _ = try keyhole.sh(script) }
        return calls.filter { $0.destination == "org.freedesktop.secrets" }.map(\.method)
      }
      let item = "$MOUNT/keychain/generic/S/A"
      #expect(try methods("stat \(item)/value; ls -lR $MOUNT/keychain; getfattr -d \(item)").isEmpty)
      #expect(try methods("cat \(item)/value") == ["org.freedesktop.Secret.Item.GetSecret"])
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

  @Test func neverUnlockedListsItsClassesOnly() async throws {
    try store("s3cret", "service S account A")
    try bus.lock()
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      try keyhole.check("ls $MOUNT/keychain", prints: "generic\ninternet\nother\n")
      try keyhole.check("ls $MOUNT/keychain/generic 2>&1 | grep -c 'Required key'", prints: "1\n")
      try keyhole.check("cat $MOUNT/keychain/generic/S/A/value 2>&1 | grep -c 'Required key'", prints: "1\n")
    }
  }

  @Test func hangingServiceHarmsItsCallersOnly() async throws {
    try store("s3cret", "service S account A")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      try keyhole.check("mkdir $MOUNT/defaults/s; cat $MOUNT/keychain/generic/S/A/value", prints: "s3cret")
      bus.signalKeyring(SIGSTOP)
      defer { bus.signalKeyring(SIGCONT) }
      // More than Dispatch has threads, and every one of them can be interrupted.
      let script = """
        for n in $(seq 40); do timeout 5 cat $MOUNT/keychain/generic/S/A/value >/dev/null 2>&1 & done
        echo 7 > $MOUNT/defaults/s/k; cat $MOUNT/defaults/s/k; ls $MOUNT/keychain/generic
        setsid timeout -s INT 1 cat $MOUNT/keychain/generic/S/A/value 2>/dev/null; echo $?; kill $(jobs -p); wait
        """
      try keyhole.check(script, prints: "7\nS\n124\n")
      bus.signalKeyring(SIGCONT)
      try keyhole.check("cat $MOUNT/keychain/generic/S/A/value", prints: "s3cret")
    }
  }

  @Test func serviceThatComesBackWorksWithoutAnotherMount() async throws {
    try store("s3cret", "service S account A")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      try keyhole.check("cat $MOUNT/keychain/generic/S/A/value", prints: "s3cret")
      try bus.stopKeyring()
      try keyhole.check(
        "cat $MOUNT/keychain/generic/S/A/value 2>&1 | grep -c 'Input/output error'", prints: "1\n")
      try keyhole.check("ls $MOUNT/keychain/generic", prints: "S\n")
      try bus.startKeyring()
      try keyhole.check("cat $MOUNT/keychain/generic/S/A/value", prints: "s3cret")
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
      try check("\(plain) ls keychain/generic", prints: "")
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
