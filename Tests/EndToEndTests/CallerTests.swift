import Glibc
import Testing

/// For whom the rules of an item are taken. These hold for an unprivileged user, for whom other processes can't be
/// looked into as for root.
@Suite(.timeLimit(.minutes(2))) struct CallerTests {
  private typealias Access = AccessTests

  /// Rules for the item, which the person who is asked lets be set.
  private func set(_ rules: String, _ keyhole: MountedKeyhole) throws {
    try keyhole.check(
      "printf '%s' '\(rules)' | setfattr -n user.keyhole.programs -v \"$(cat)\" \(Access.item)")
  }

  /// A mount with an item that has rules only; a question is answered by `answer`.
  private func withRules(
    _ rules: String, _ answer: String = "exit 1", body: (MountedKeyhole) throws -> Void
  ) async throws {
    let decide = "[ \"$KEYHOLE_OPERATION\" = change ] && exit 0; \(answer)"
    try await Access.withAsked(decide, "auth-reuse=0", flags: "") { keyhole in
      try set(rules, keyhole)
      try body(keyhole)
    }
  }

  private static var keyhole: String { Products.keyhole }

  /// Without a passphrase the command opens the vault, and has the mount decide.
  @Test(arguments: [false, true])
  func rulesHoldForKeyholeAsForEveryProgram(hasPassphrase: Bool) async throws {
    try await withRules("allow \(Self.keyhole)\ndeny *") { keyhole in
      if hasPassphrase {
        try keyhole.world.check(
          "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null; echo horse | keyhole unlock",
          within: LockTests.patience)
      }
      try keyhole.refuses("cat \(Access.value)", .denied)
      try keyhole.world.check("keyhole get \(Access.value)", prints: "secret")
      try keyhole.world.check("printf other | keyhole set \(Access.value)")
      try keyhole.world.check(
        "keyhole export --plain -o $OUT/e1 keychain; grep -c other $OUT/e1", prints: "1\n")
      try set("deny \(Self.keyhole)\nallow *", keyhole)
      #expect(try keyhole.world.sh("keyhole get \(Access.value)").status == 5)
      #expect(try keyhole.world.sh("keyhole export --plain -o $OUT/e2 keychain").status == 5)
      try keyhole.check("cat \(Access.value)", prints: "other")
    }
  }

  /// Asked about as itself, and its protection is changed by its own commands.
  @Test(arguments: [false, true])
  func keyholeIsIdentifiedWhereAPersonIsAsked(hasPassphrase: Bool) async throws {
    try await withRules("ask *", "exit 0") { keyhole in
      if hasPassphrase {
        try keyhole.world.check(
          "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null; echo horse | keyhole unlock",
          within: LockTests.patience)
      }
      try keyhole.world.check("keyhole get \(Access.value)", prints: "secret")
      #expect(Access.asked(keyhole).last == "\(Access.item) \(Self.keyhole)")
      try keyhole.world.check("printf other | keyhole set \(Access.value)")
      try keyhole.world.check("EDITOR='sed -i s/other/third/' keyhole edit \(Access.value)")
      try keyhole.world.check("keyhole get \(Access.value)", prints: "third")
      try keyhole.world.check("keyhole attr --remove \(Access.item) keyhole.programs")
      let count = Access.asked(keyhole).count
      let rules = "getfattr -n user.keyhole.programs \(Access.item)"
      #expect(try holds { try !keyhole.sh(rules).isSuccess() })
      try keyhole.check("cat \(Access.value)", prints: "third")
      #expect(Access.asked(keyhole).count == count)
      let log = try keyhole.world.sh("keyhole log").lines
      #expect(
        log.contains {
          $0.contains("\tapproved\t") && $0.contains("\t\(Self.keyhole) (") && $0.contains("bash (")
        })
    }
  }

  @Test func ruleForKeyholeSaysWhatItLetsIn() async throws {
    try await withRules("ask *", "exit 0") { keyhole in
      let output = try keyhole.world.sh(
        "keyhole attr \(Access.item) keyhole.programs 'allow \(Self.keyhole)'")
      #expect(output.status == 0 && output.error.contains("every program that can start it"))
    }
  }

  /// The kernel names the thread that opens.
  @Test func threadIsItsProcess() async throws {
    let python = "$(readlink -f /usr/bin/python3)"
    try await withRules("deny *") { keyhole in
      try keyhole.check("setfattr -n user.keyhole.programs -v $'allow '\(python)$'\ndeny *' \(Access.item)")
      try keyhole.check(
        """
        /usr/bin/python3 - <<'EOF'
        import threading
        def read(): print(open("\(Access.value)").read())
        thread = threading.Thread(target=read); thread.start(); thread.join()
        EOF
        """, prints: "secret\n")
    }
  }

  /// The right belongs to the open file.
  @Test func redirectionsAndPassedDescriptorsKeepTheRight() async throws {
    try await withRules("allow /bin/bash\ndeny *") { keyhole in
      try keyhole.refuses("cat \(Access.value)", .denied)
      try keyhole.check("cat < \(Access.value)", prints: "secret")
      try keyhole.check("exec 3< \(Access.value); head -c 3 <&3; cat <&3", prints: "secret")
      try keyhole.check("printf new > \(Access.value); cat < \(Access.value)", prints: "new")
    }
  }

  private static let canUnshare =
    (try? Program(["/usr/bin/unshare", "-Ur", "true"], environment: [], directory: "/").finish().status) == 0

  /// In a user namespace of its own a program may call itself what it likes.
  @Test(.enabled(if: canUnshare, "needs user namespaces"), arguments: ["-Ur", "-Urm"])
  func programInOtherNamespacesIsUnidentified(option: String) async throws {
    try await withRules("allow /usr/bin/cat", "exit 1") { keyhole in
      try keyhole.check("cat \(Access.value)", prints: "secret")
      #expect(Access.asked(keyhole).isEmpty)
      try keyhole.refuses("unshare \(option) cat \(Access.value)", .denied)
      #expect(Access.asked(keyhole).last?.contains("an unidentified program") == true)
      try set("allow unidentified\ndeny *", keyhole)
      try keyhole.check("unshare \(option) cat \(Access.value)", prints: "secret")
      try set("deny unidentified\nallow *", keyhole)
      let count = Access.asked(keyhole).count
      try keyhole.refuses("unshare \(option) cat \(Access.value)", .denied)
      try keyhole.check("cat \(Access.value)", prints: "secret")
      #expect(Access.asked(keyhole).count == count)
    }
  }

  /// A program that closes itself to others has no rule for its path.
  @Test func programThatCantBeReadIsUnidentified() async throws {
    let hidden =
      "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print(open('\(Access.value)').read())"
    try await withRules("deny *") { keyhole in
      try keyhole.check(
        "setfattr -n user.keyhole.programs -v \"allow $(readlink -f /usr/bin/python3)\" \(Access.item)")
      let output = try keyhole.sh("/usr/bin/python3 -c \"\(hidden)\"")
      // Root can look into every process.
      #expect(getuid() == 0 ? output.text == "secret\n" : output.status != 0)
      #expect(getuid() == 0 || Access.asked(keyhole).last?.contains("an unidentified program") == true)
    }
  }

  /// The forgeries of a rule for a script, and the script itself.
  @Test func ruleForAScriptIsNotForgedByAnArgument() async throws {
    try await withWorld { outer in
      let script = outer.root + "/backup.sh"
      try outer.check(
        "cat > \(script); chmod +x \(script)",
        sending: Array("#!/bin/bash\nread -r line < \"$1\"; echo $line\n".utf8))
      try await withRules("allow \(script)\ndeny *") { keyhole in
        try keyhole.check("\(script) \(Access.value)", prints: "secret\n")
        try keyhole.check("/bin/bash \(script) \(Access.value)", prints: "secret\n")
        let read = "read -r line < \(Access.value)"
        for forgery in [
          "cp /bin/bash \(outer.root)/shady; \(outer.root)/shady -c '\(read)' \(script)",
          "cp /bin/bash \(outer.root)/sh; echo '\(read)' > \(outer.root)/evil; \(outer.root)/sh \(outer.root)/evil \(script)",
          "perl '-eopen F,q(<),q(\(Access.value)) or exit 1' \(script)",
          "/usr/bin/python3 '-copen(\"\(Access.value)\")' \(script)",
          "bash -s \(script) <<< '\(read)'",
          "bash -c '\(read)' \(script)",
        ] {
          #expect(try keyhole.sh(forgery).status != 0, "\(forgery)")
        }
      }
    }
  }

  /// The path in a question leads to the program, or says that it does not.
  @Test func pathOfAProgramThatIsGoneSaysSo() async throws {
    try await withWorld { outer in
      try await withRules("ask *", "exit 0") { keyhole in
        let program = outer.root + "/program"
        try keyhole.check(
          "cp /bin/bash \(program); \(program) -c 'rm \(program); read -r line < \(Access.value); echo $line'",
          prints: "secret\n")
        #expect(Access.asked(keyhole).last?.contains("the file no longer has this path") == true)
      }
    }
  }
}
