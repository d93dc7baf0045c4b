import Glibc
import Testing

/// The scope of an answer, of which AccessControllerTests has the rest; rules and flags don't lock the user out.
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
      #expect(holds { System.exists(keyhole.world.root + "/decide.open") })
      try keyhole.world.check("keyhole lock")
      let output = try reader.finish()
      #expect(output.status == 1 && output.error.contains("Required key not available"), "\(output)")
    }
  }

  /// A list of programs that are allowed keeps the others out. `doctor` notes it in a vault that was upgraded from Keyhole 0.1,
  /// which the copy of the old vault shows.
  @Test func listOfAllowedProgramsAsksAboutTheOthers() async throws {
    try await Access.withAsked("exit 1", flags: "") { keyhole in
      try keyhole.check("setfattr -n user.keyhole.programs -v 'allow /usr/bin/head' \(Access.item)")
      try keyhole.check("head -c 3 \(Access.value)", prints: "sec")
      #expect(Access.asked(keyhole).isEmpty)
      try keyhole.refuses("cat \(Access.value)", .denied)
      #expect(Access.asked(keyhole).count == 1)
      let note = "note     \(Access.item): its rules allow some programs"
      let doctor = try keyhole.world.sh("keyhole doctor").text
      #expect(!doctor.contains(note), "\(doctor)")
      try keyhole.world.check("touch \(keyhole.world.data)/keyhole/vault-1.db")
      let upgraded = try keyhole.world.sh("keyhole doctor").text
      #expect(upgraded.contains(note), "\(upgraded)")
    }
  }

  /// A vault without a passphrase, and no PAM service: the flag would lock its owner out.
  @Test(
    .enabled(
      if: !System.exists("/etc/pam.d/keyhole") && !System.exists("/etc/pam.d/keyhole-biometry"),
      "PAM has the services"))
  func flagThatCantBeMetIsRefused() async throws {
    let flags = "biometryAny|or|devicePasscode"
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir -p \(Access.item); echo secret > \(Access.value)")
      try keyhole.refuses("setfattr -n user.keyhole.access -v '\(flags)' \(Access.item)", .notSupported)
      try keyhole.check("cat \(Access.value)", prints: "secret")
      let command = try keyhole.world.sh("keyhole attr \(Access.item) keyhole.access '\(flags)'")
      #expect(command.status == 1 && command.error.contains("keyhole passphrase"))
      // An imported item keeps the flag, and doctor names it.
      try keyhole.world.check(
        "cat > $OUT/e; keyhole import $OUT/e 2> /dev/null", sending: Array(Self.export(flags).utf8))
      let doctor = try keyhole.world.sh("keyhole doctor").text
      #expect(
        doctor.contains("note     keychain/generic/s/imported: its secret can't be opened here"), "\(doctor)")
      try keyhole.world.check(
        "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null; echo horse | keyhole unlock",
        within: LockTests.patience)
      try keyhole.check("setfattr -n user.keyhole.access -v '\(flags)' \(Access.item)")
    }
  }

  private static func export(_ flags: String) -> String {
    "{\"keyhole\":1,\"keychain\":[{\"class\":\"generic\",\"attributes\":{\"service\":\"s\",\"account\":\"imported\",\"keyhole.access\":\"\(flags)\"},\"value\":\"x\"}]}"
  }
}
