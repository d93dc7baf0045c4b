import Glibc
import Testing

/// The scope of an answer; rules and flags don't lock the user out.
@Suite(.timeLimit(.minutes(2))) struct AnswerTests {
  private typealias Access = AccessTests

  /// A yes to reading is none to taking the protection off.
  @Test func answerCoversItsOperation() async throws {
    let decide = "echo $KEYHOLE_OPERATION >> $0.operations; [ $KEYHOLE_OPERATION != change ]"
    try await Access.withAsked(decide, "auth-reuse=300") { keyhole in
      let output = try keyhole.sh(
        """
        /usr/bin/python3 - <<'EOF'
        import os
        for _ in range(3): print(open("\(Access.value)").read())
        try: os.removexattr("\(Access.item)", "user.keyhole.access")
        except PermissionError: print("kept")
        open("\(Access.value)", "w").write("new")
        EOF
        """)
      #expect(output.text == "secret\nsecret\nsecret\nkept\n" && output.status == 0, "\(output)")
      let operations = try System.text(keyhole.world.root + "/decide.operations")
      #expect(operations == "read\nchange\nwrite\n")
      try keyhole.check(
        "getfattr --only-values -n user.keyhole.access \(Access.item)", prints: "devicePasscode")
    }
  }

  /// Nor to another process, or another item.
  @Test func answerCoversItsProcessAndItem() async throws {
    try await Access.withAsked("exit 0", "auth-reuse=300") { keyhole in
      try keyhole.check(
        "mkdir -p keychain/generic/s/q; echo other > keychain/generic/s/q/value; setfattr -n user.keyhole.access -v devicePasscode keychain/generic/s/q"
      )
      try keyhole.check("cat \(Access.value) \(Access.value)", prints: "secretsecret")
      #expect(Access.asked(keyhole).count == 1)
      try keyhole.check("cat \(Access.value)", prints: "secret")
      #expect(Access.asked(keyhole).count == 2)
      try keyhole.check("cat \(Access.value) keychain/generic/s/q/value", prints: "secretother")
      #expect(Access.asked(keyhole).count == 4)
    }
  }

  /// With the wider answer that the program of `auth-command=` can give.
  @Test func widerAnswerCoversWhatTheProcessOpens() async throws {
    try await Access.withAsked("exit 10", "auth-reuse=300") { keyhole in
      try keyhole.check(
        "for i in 1 2 3; do mkdir -p keychain/generic/s/$i; echo $i > keychain/generic/s/$i/value; setfattr -n user.keyhole.access -v devicePasscode keychain/generic/s/$i; done"
      )
      try keyhole.check("cat keychain/generic/s/[123]/value", prints: "123")
      #expect(Access.asked(keyhole).count == 1)
    }
  }

  @Test func openQuestionsEndWithTheLock() async throws {
    try await Access.withAsked("touch $0.open; exec sleep 100") { keyhole in
      let reader = try keyhole.launch(["/bin/cat", Access.value])
      #expect(holds(within: .seconds(20)) { System.exists(keyhole.world.root + "/decide.open") })
      try keyhole.world.check("keyhole lock")
      let output = try reader.finish()
      #expect(output.status == 1 && output.error.contains("Required key not available"), "\(output)")
    }
  }

  /// `deny *` keeps programs from reading the secret, and the user can still change the rules.
  @Test(arguments: [false, true])
  func rulesCanAlwaysBeChanged(isOfFolder: Bool) async throws {
    let path = isOfFolder ? "keychain/generic/s" : Access.item
    try await Access.withAsked("[ $KEYHOLE_OPERATION = change ]", flags: "") { keyhole in
      try keyhole.check("setfattr -n user.keyhole.programs -v $'allow /usr/bin/ssh-add\\ndeny *' \(path)")
      try keyhole.refuses("cat \(Access.value)", .denied)
      #expect(Access.asked(keyhole).isEmpty)
      try keyhole.check("setfattr -n user.keyhole.programs -v 'deny *' \(path)")
      try keyhole.world.check("keyhole attr --remove \(path) keyhole.programs")
      #expect(Access.asked(keyhole).count == 2)
      #expect(try holds(within: .seconds(10)) { try keyhole.sh("cat \(Access.value)").text == "secret" })
    }
  }

  /// A list of programs that are allowed keeps the others out.
  @Test(arguments: [false, true])
  func listOfAllowedProgramsAsksAboutTheOthers(isOfFolder: Bool) async throws {
    let path = isOfFolder ? "keychain/generic/s" : Access.item
    try await Access.withAsked("exit 1", flags: "") { keyhole in
      try keyhole.check("setfattr -n user.keyhole.programs -v 'allow /usr/bin/head' \(path)")
      try keyhole.check("head -c 3 \(Access.value)", prints: "sec")
      #expect(Access.asked(keyhole).isEmpty)
      try keyhole.refuses("cat \(Access.value)", .denied)
      #expect(Access.asked(keyhole).count == 1)
      let doctor = try keyhole.world.sh("keyhole doctor").text
      #expect(doctor.contains("note     \(Access.item): its rules allow some programs"), "\(doctor)")
    }
  }

  /// A vault without a passphrase, and no PAM service: the flag would lock its owner out.
  @Test(
    .enabled(
      if: !System.exists("/etc/pam.d/keyhole") && !System.exists("/etc/pam.d/keyhole-biometry"),
      "PAM has the services"),
    arguments: ["userPresence", "devicePasscode", "biometryAny", "biometryAny|or|devicePasscode"])
  func flagThatCantBeMetIsRefused(flags: String) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir -p \(Access.item); echo secret > \(Access.value)")
      try keyhole.refuses("setfattr -n user.keyhole.access -v '\(flags)' \(Access.item)", .notSupported)
      try keyhole.check("cat \(Access.value)", prints: "secret")
      let command = try keyhole.world.sh("keyhole attr \(Access.item) keyhole.access '\(flags)'")
      #expect(command.status == 1 && (flags == "biometryAny" || command.error.contains("keyhole passphrase")))
      // An imported item keeps the flag, and doctor names it.
      try keyhole.world.check(
        "cat > $OUT/e; keyhole import $OUT/e 2> /dev/null", sending: Array(Self.export(flags).utf8))
      let doctor = try keyhole.world.sh("keyhole doctor").text
      #expect(
        doctor.contains("note     keychain/generic/s/imported: its secret can't be opened here"), "\(doctor)")
      guard flags != "biometryAny" else { return }
      try keyhole.world.check(
        "echo horse | keyhole passphrase --cost 14 2> /dev/null; echo horse | keyhole unlock",
        within: LockTests.patience)
      try keyhole.check("setfattr -n user.keyhole.access -v '\(flags)' \(Access.item)")
    }
  }

  private static func export(_ flags: String) -> String {
    "{\"keyhole\":1,\"keychain\":[{\"class\":\"generic\",\"attributes\":{\"service\":\"s\",\"account\":\"imported\",\"keyhole.access\":\"\(flags)\"},\"value\":\"x\"}]}"
  }
}
