import Glibc
import Testing

/// Section 8: asking before a secret is given.
@Suite(.timeLimit(.minutes(2))) struct AccessTests {
  static let item = "keychain/generic/s/p"
  static let value = item + "/value"

  /// A program that writes down the question and then runs `body`.
  private static func program(_ world: World, _ body: String) throws -> String {
    let path = world.root + "/decide"
    let script = "#!/bin/sh\necho \"$@\" >> \(world.root)/asked\n\(body)\n"
    try world.check("cat > \(path); chmod +x \(path)", sending: Array(script.utf8))
    return path
  }

  /// Runs `body` with `decide` as the one who is asked, and an item with a flag.
  static func withAsked(
    _ decide: String, _ options: String..., flags: String = "devicePasscode",
    body: (MountedKeyhole) throws -> Void
  ) async throws {
    try await withWorld { world in
      let path = try program(world, decide)
      let keyhole = MountedKeyhole(
        world, options: ["keychain=vault", "auth-command=\(path)"] + options)
      defer { keyhole.cleanUp() }
      try keyhole.start()
      try keyhole.check(
        "mkdir -p \(item); [ -z '\(flags)' ] || setfattr -n user.keyhole.access -v '\(flags)' \(item); echo secret > \(value)"
      )
      try body(keyhole)
    }
  }

  static func asked(_ keyhole: MountedKeyhole) -> [String] {
    ((try? System.text(keyhole.world.root + "/asked")) ?? "").split(separator: "\n").map(String.init)
  }

  @Test func approvedIsReadAndRefusedIsEACCES() async throws {
    let flags = "biometryAny|or|devicePasscode"
    try await Self.withAsked("exit 0", flags: flags) { keyhole in
      try keyhole.check("cat \(Self.value)", prints: "secret")
      #expect(Self.asked(keyhole).count == 1)
      #expect(Self.asked(keyhole).first?.hasPrefix("\(Self.item) /") == true)
      try keyhole.check("getfattr --only-values -n user.keyhole.access \(Self.item)", prints: flags)
    }
    try await Self.withAsked("exit 1", flags: flags) { keyhole in
      try keyhole.refuses("cat \(Self.value)", .denied)
      try keyhole.refuses("echo x > \(Self.value)", .denied)
    }
  }

  @Test func lookingNeverAsks() async throws {
    try await Self.withAsked("exit 1") { keyhole in
      try keyhole.check(
        "ls -lR keychain > /dev/null; stat \(Self.value) > /dev/null; getfattr -d -R keychain > /dev/null; du keychain > /dev/null"
      )
      #expect(Self.asked(keyhole).isEmpty)
    }
  }

  @Test func waitingOpensDisturbNobodyAndCanBeKilled() async throws {
    try await Self.withAsked("exec sleep 100") { keyhole in
      try keyhole.check("mkdir defaults/s; echo 1 > defaults/s/key")
      let readers = try (0..<300).map { _ in try keyhole.launch(["/bin/cat", Self.value]) }
      // Not while 300 programs are being started.
      #expect(try holds(within: .seconds(60)) { try readers.allSatisfy { try Self.isOpening($0.process) } })
      for _ in 0..<50 { #expect(try System.text(keyhole / "defaults/s/key") == "1\n") }
      #expect(try readers.allSatisfy { try Self.isOpening($0.process) }, "none had to end for that")
      for reader in readers { reader.kill(SIGINT) }
      for reader in readers {
        #expect(try reader.waitForEnd(until: Deadline(in: .seconds(10))) == 128 + SIGINT)
      }
    }
  }

  /// Whether a process waits in openat(2), by proc(5).
  private static func isOpening(_ process: pid_t) throws -> Bool {
    #if arch(x86_64)
      let number = 257
    #else
      let number = 56
    #endif
    return try System.text("/proc/\(process)/syscall").hasPrefix("\(number) ")
  }

  private static let password = "[ ! -e \"$0.wrong\" ] || exec echo wrong; echo staple"

  @Test func passwordOfItsOwnOpensAnItem() async throws {
    try await Self.withAsked(Self.password, "auth-reuse=0", flags: "applicationPassword") { keyhole in
      #expect(Self.asked(keyhole).count == 1)
      try keyhole.check("cat \(Self.value)", prints: "secret")
      try keyhole.world.check("keyhole get \(Self.value)", prints: "secret")
      try keyhole.check("setfattr -n user.comment -v free \(Self.item)")
      #expect(Self.asked(keyhole).count == 3)
      try keyhole.world.check("echo new | keyhole set \(Self.value)")
      try keyhole.world.check("keyhole attr --remove \(Self.item) keyhole.access")
      #expect(Self.asked(keyhole).count == 5)
      try keyhole.check("cat \(Self.value)", prints: "new")
      #expect(Self.asked(keyhole).count == 5)
    }
  }

  @Test func passwordIsChosenForANewItem() async throws {
    try await Self.withAsked(Self.password, "auth-reuse=0", flags: "") { keyhole in
      try keyhole.world.check(
        "echo another | keyhole set --access applicationPassword keychain/generic/s/q/value")
      #expect(holds { System.exists(keyhole / "keychain/generic/s/q/value") })
      try keyhole.check("cat keychain/generic/s/q/value", prints: "another")
      #expect(
        Self.asked(keyhole).map { $0.split(separator: " ")[0] }
          == ["keychain/generic/s/q", "keychain/generic/s/q"].map { $0[...] })
    }
  }

  @Test func wrappersSetEveryFlagAndTheStoreEnforcesIt() async throws {
    // As SecAccessControlCreateFlags numbers them.
    let flags: [(name: String, bits: UInt)] = [
      ("userPresence", 0x1), ("biometryAny", 0x2), ("devicePasscode", 0x10),
      ("applicationPassword", 0x8000_0000), ("biometryAny|or|devicePasscode", 0x4012),
    ]
    try await Self.withAsked(Self.password, "auth-reuse=0", flags: "") { keyhole in
      for (name, flags) in flags {
        let service = "w\(flags)"
        try keyhole.world.check(
          "WrapperProgram guard \(service) \(flags) hidden; WrapperProgram get \(service)", prints: "hidden\n"
        )
        let item = "keychain/generic/\(service)/%"
        #expect(holds { System.exists(keyhole / item) })
        try keyhole.check("getfattr --only-values -n user.keyhole.access \(item)", prints: name)
      }
      _ = try Self.program(keyhole.world, "exit 1")
      for (_, flags) in flags {
        try keyhole.world.check("WrapperProgram get w\(flags) 2>&1 | tail -n 1", prints: "nil\n")
      }
    }
  }

  @Test func aMountThatHangsIsNotWaitedFor() async throws {
    try await Self.withAsked("exit 0") { keyhole in
      try keyhole.world.check("WrapperProgram get s", prints: "secret\n")
      kill(try keyhole.process, SIGSTOP)
      defer { _ = (try? keyhole.process).map { kill($0, SIGCONT) } }
      // Each waits as long as a mount may take, so they do at the same time.
      try keyhole.world.check(
        """
        keyhole get \(Self.value) 2> "$OUT/said" & WrapperProgram get s 2>&1 | tail -n 1; wait
        grep -c 'does not answer' "$OUT/said"
        """, prints: "nil\n1\n", within: .seconds(30))
    }
  }

  /// By a program that gives one password after the other.
  @Test func passwordOfItsOwnIsChanged() async throws {
    let next = "n=$(cat $0.next); sed -n \"${n}p\" $0.passwords; echo $((n + 1)) > $0.next"
    try await Self.withAsked(next, "auth-reuse=0", flags: "") { keyhole in
      func answers(_ passwords: String...) throws {
        try keyhole.world.check(
          "printf '\(passwords.joined(separator: "\\n"))\\n' > \(keyhole.world.root)/decide.passwords; echo 1 > \(keyhole.world.root)/decide.next"
        )
      }
      try answers("staple", "staple", "staple", "horse")
      try keyhole.check("setfattr -n user.keyhole.access -v applicationPassword \(Self.item)")
      try keyhole.check("setfattr -n user.comment -v note \(Self.item)")
      try keyhole.check("cat \(Self.value)", prints: "secret")
      let asked = Self.asked(keyhole).count
      try keyhole.world.check("keyhole passphrase \(Self.item)")
      #expect(Self.asked(keyhole).count == asked + 2)
      try answers("horse")
      try keyhole.check("cat \(Self.value)", prints: "secret")
      try keyhole.check("getfattr --only-values -n user.comment \(Self.item)", prints: "note")
      try keyhole.check("mkdir -p keychain/generic/s/q; echo 1 > keychain/generic/s/q/value")
      #expect(
        try keyhole.world.sh("keyhole passphrase keychain/generic/s/q").error.contains("applicationPassword"))
      #expect(try keyhole.world.sh("keyhole passphrase defaults/s").status == 2)
    }
  }

  /// A password of the item's own and the passcode, on every interface.
  @Test func passwordAndPasscodeHoldOnEveryInterface() async throws {
    try await Self.withAsked("[ -e $0.wrong ] && exec echo wrong; echo staple", flags: "") { keyhole in
      let wrapper = "KEYHOLE_STORE=user \(Products.wrapperProgram)"
      try keyhole.world.check("\(wrapper) secret app hush")
      #expect(holds { System.exists(keyhole / "keychain/generic/app") })
      let item = try keyhole.sh("echo keychain/generic/app/*").lines.first ?? ""
      try keyhole.check("setfattr -n user.keyhole.access -v 'devicePasscode|applicationPassword' \(item)")
      // Another program causes a question of its own.
      try keyhole.check("cat \(item)/value", prints: "hush")
      try keyhole.world.check("\(wrapper) get app", prints: "hush\n")
      try keyhole.world.check("keyhole get \(item)/value", prints: "hush")
      #expect(Self.asked(keyhole).count == 4)
      try keyhole.world.check("touch \(keyhole.world.root)/decide.wrong")
      try keyhole.refuses("head \(item)/value", .keyRejected)
    }
  }

  @Test func otherFingersRevokeAnItem() async throws {
    try await withWorld { outer in
      try outer.check(
        """
        mkdir \(outer.root)/bin; cd \(outer.root)/bin
        printf '#!/bin/sh\\ncat "${0%%/*}/list"\\n' > fprintd-list; chmod +x fprintd-list; : > list
        """)
      let path = "PATH=\(outer.root)/bin:\(Products.folder):/usr/local/bin:/usr/bin:/bin"
      let decide = try Self.program(outer, "exit 0")
      try await withKeyhole("auth-command=\(decide)", "auth-reuse=0", environment: [path]) { keyhole in
        func enroll(_ finger: String) throws {
          try outer.check(
            "printf 'Fingerprints for user me on Mock (press):\\n - #0: \(finger)\\n' > \(outer.root)/bin/list"
          )
        }
        let set = "setfattr -n user.keyhole.access -v"
        try keyhole.check("mkdir -p \(Self.item) keychain/generic/s/q")
        try keyhole.refuses("\(set) biometryCurrentSet \(Self.item)", .notSupported)
        try enroll("right-thumb")
        try keyhole.check(
          """
          \(set) biometryCurrentSet \(Self.item); echo secret > \(Self.value)
          echo other > keychain/generic/s/q/value
          \(set) 'biometryCurrentSet|or|devicePasscode' keychain/generic/s/q
          cat \(Self.value) keychain/generic/s/q/value
          """, prints: "secretother")
        try enroll("left-thumb")
        try keyhole.refuses("cat \(Self.value)", .keyRevoked)
        try keyhole.refuses("setfattr -x user.keyhole.access \(Self.item)", .keyRevoked)
        #expect(
          try keyhole.world.sh("keyhole get \(Self.value)").error.contains("other fingers are enrolled"))
        // To set it once more makes no new set of it.
        try keyhole.check("\(set) biometryCurrentSet \(Self.item)")
        try keyhole.refuses("cat \(Self.value)", .keyRevoked)
        try keyhole.check("cat keychain/generic/s/q/value; rm \(Self.value)", prints: "other")

        try enroll("right-thumb")
        let flag = 1 << 3
        try keyhole.world.check("WrapperProgram guard w \(flag) hidden")
        #expect(holds { System.exists(keyhole / "keychain/generic/w/%/value") })
        try keyhole.check(
          "getfattr --only-values -n user.keyhole.access keychain/generic/w/%", prints: "biometryCurrentSet")
        try keyhole.world.check("WrapperProgram get w", prints: "hidden\n")
        try keyhole.world.check(
          "WrapperProgram guard w \(flag) rewritten; WrapperProgram get w", prints: "rewritten\n")
        try enroll("left-thumb")
        try keyhole.world.check("WrapperProgram get w 2>&1 | tail -n 1", prints: "nil\n")
        try keyhole.refuses("cat keychain/generic/w/%/value", .keyRevoked)
        try outer.check(": > \(outer.root)/bin/list")
        try keyhole.world.check("WrapperProgram guard v \(flag) hidden", prints: "osSecureBadRequest\n")
        #expect(!System.exists(keyhole / "keychain/generic/v"))
      }
    }
  }

  @Test func rulesForPrograms() async throws {
    try await Self.withAsked("exit 1", flags: "devicePasscode") { keyhole in
      try keyhole.check(
        """
        mkdir -p keychain/generic/s/free; echo free > keychain/generic/s/free/value
        printf 'allow /bin/cat\\ndeny *\\n' | setfattr -n user.keyhole.programs -v "$(cat)" keychain/generic/s/free
        cat keychain/generic/s/free/value
        """, prints: "free")
      try keyhole.refuses("head keychain/generic/s/free/value", .denied)
      #expect(Self.asked(keyhole).isEmpty)
    }
  }

  @Test func rulesOfAFolderHoldForItsItems() async throws {
    try await Self.withAsked("exit 1", flags: "devicePasscode") { keyhole in
      let rule = { (rules: String, path: String) in
        "setfattr -n user.keyhole.programs -v \"$(printf '\(rules)')\" \(path)"
      }
      try keyhole.check(
        """
        mkdir -p keychain/generic/t/a keychain/internet/h/b
        echo a > keychain/generic/t/a/value; echo b > keychain/internet/h/b/value
        \(rule("allow /bin/cat\\ndeny *", "keychain/generic/t"))
        cat keychain/generic/t/a/value keychain/internet/h/b/value; head keychain/internet/h/b/value
        """, prints: "abb")
      try keyhole.refuses("head keychain/generic/t/a/value", .denied)
      #expect(try keyhole.world.sh("keyhole get keychain/generic/t/a/value").status == 5)
      // The item's own rules come first.
      #expect(Self.asked(keyhole).isEmpty)
      try keyhole.refuses(rule("allow *", "keychain/generic/t/a"), .denied)
      try keyhole.refuses("mkdir keychain/generic/u; mv keychain/generic/t/a keychain/generic/u", .denied)
      try keyhole.refuses("mv keychain/generic/t keychain/generic/v", .denied)
      try keyhole.refuses("setfattr -x user.keyhole.programs keychain/generic/t", .denied)
      try keyhole.refuses(rule("allow *", "keychain/generic/t"), .denied)
      try keyhole.check(
        "getfattr --only-values -n user.keyhole.programs keychain/generic/t | head -1",
        prints: "allow /bin/cat\n")
      try keyhole.check("ls keychain/generic", prints: "s\nt\nu\n")
    }
  }

  @Test func rulesOfTheKeychainAskForWhatItsItemsDemand() async throws {
    try await Self.withAsked("exit 1", "auth-reuse=0", flags: "devicePasscode") { keyhole in
      let programs = "setfattr -n user.keyhole.programs -v"
      try keyhole.refuses("\(programs) 'allow *' keychain", .denied)
      try keyhole.refuses("\(programs) 'allow *' keychain/generic/s", .denied)
      #expect(Self.asked(keyhole).map { $0.split(separator: " ")[0] } == ["keychain", "keychain/generic/s"])
      // The command has the mount decide as well.
      let attr = try keyhole.world.sh("keyhole attr keychain/generic/s keyhole.programs 'allow *'")
      #expect(attr.status == 5 && attr.error.contains("refused"))
      #expect(Self.asked(keyhole).count == 3 && Self.asked(keyhole)[2].hasPrefix("keychain/generic/s "))
      try keyhole.world.check("printf '#!/bin/sh\\nexit 0\\n' > \(keyhole.world.root)/decide")
      try keyhole.world.check("keyhole attr keychain/generic/s keyhole.programs 'ask *'")
      try keyhole.check("setfattr -x user.keyhole.programs keychain/generic/s")
      try keyhole.check("\(programs) 'allow /bin/cat' keychain; cat \(Self.value)", prints: "secret")
      try keyhole.refuses("\(programs) nonsense keychain", .invalid)
      try keyhole.check("setfattr -x user.keyhole.programs keychain; getfattr -d keychain")
    }
    // They are kept.
    try await Self.withAsked("exit 1", flags: "") { keyhole in
      try keyhole.check("setfattr -n user.keyhole.programs -v 'deny *' keychain")
      try keyhole.refuses("cat \(Self.value)", .denied)
      try keyhole.check("mkdir keychain/generic/s/new; echo new > keychain/generic/s/new/value")
      try keyhole.refuses("cat keychain/generic/s/new/value", .denied)
      try keyhole.remount()
      try keyhole.refuses("cat \(Self.value)", .denied)
      try keyhole.check("keyhole ls keychain/generic", prints: "s\n")
    }
  }

  @Test func saveByRenameAsksToo() async throws {
    try await Self.withAsked("exit 1") { keyhole in
      try keyhole.check("echo new > \(Self.item)/.new")
      try keyhole.refuses("mv \(Self.item)/.new \(Self.value)", .denied)
    }
    try await Self.withAsked("exit 0") { keyhole in
      try keyhole.check(
        "echo new > \(Self.item)/.new; mv \(Self.item)/.new \(Self.value); cat \(Self.value)", prints: "new")
    }
  }

  // The command and the wrappers open the vault by themselves; the mount decides all the same.

  @Test(arguments: [true, false])
  func commandIsAskedForAsWell(isApproved: Bool) async throws {
    try await Self.withAsked("exit \(isApproved ? 0 : 1)", "auth-reuse=0") { keyhole in
      let get = try keyhole.world.sh("keyhole get \(Self.value)")
      #expect(get.text == (isApproved ? "secret" : "") && get.status == (isApproved ? 0 : 5))
      let set = try keyhole.world.sh("echo new | keyhole set \(Self.value)")
      #expect(set.status == (isApproved ? 0 : 5))
      let weaken = try keyhole.world.sh("keyhole attr --remove \(Self.item) keyhole.access")
      #expect(weaken.status == (isApproved ? 0 : 5))
      #expect(Self.asked(keyhole).count == 3)
      #expect(Self.asked(keyhole).allSatisfy { $0 == "\(Self.item) \(Products.keyhole)" })
    }
  }

  @Test func commandThatIsInterruptedIsWithdrawn() async throws {
    try await Self.withAsked("trap 'echo ended >> \"$(dirname $0)/asked\"' EXIT; sleep 100") { keyhole in
      let get = try Program(
        [Products.keyhole, "get", Self.value], environment: keyhole.world.environment,
        directory: keyhole.world.outside)
      #expect(holds { Self.asked(keyhole).count == 1 })
      get.kill(SIGINT)
      #expect(try get.waitForEnd(until: Deadline(in: .seconds(10))) == 128 + SIGINT)
      // No request waits any more, so the next one is a question of its own.
      try keyhole.check(
        "printf '#!/bin/sh\\nexit 0\\n' > $OUT/../decide; keyhole get \(Self.value)", prints: "secret")
    }
  }

  @Test(arguments: [true, false])
  func wrapperIsAskedForAsWell(isApproved: Bool) async throws {
    try await Self.withAsked("exit \(isApproved ? 0 : 1)") { keyhole in
      try keyhole.world.check("KEYHOLE_STORE=user \(Products.wrapperProgram) secret app hush")
      #expect(holds { System.exists(keyhole / "keychain/generic/app") })
      try keyhole.check(
        """
        setfattr -n user.keyhole.access -v devicePasscode keychain/generic/app/*
        """)
      let output = try keyhole.world.sh("KEYHOLE_STORE=user \(Products.wrapperProgram) get app")
      #expect(output.text == (isApproved ? "hush\n" : "nil\n"))
      #expect(Self.asked(keyhole).count == 1)
      #expect(Self.asked(keyhole).first?.hasSuffix(" " + Products.wrapperProgram) == true)
      // Without a mount no prompt is available.
      try keyhole.unmount()
      let alone = try keyhole.world.sh("KEYHOLE_STORE=user \(Products.wrapperProgram) get app")
      #expect(alone.text == "nil\n")
    }
  }

  @Test(arguments: [
    ("userPresence", true), ("biometryAny|and|devicePasscode", true),
    ("biometryAny|and|devicePasscode", false),
  ])
  func flagsHoldOnEveryRoad(flags: String, isApproved: Bool) async throws {
    try await Self.withAsked("exit \(isApproved ? 0 : 1)", "auth-reuse=0", flags: "") { keyhole in
      let wrapper = "KEYHOLE_STORE=user \(Products.wrapperProgram)"
      try keyhole.world.check("\(wrapper) secret app hush")
      #expect(holds { System.exists(keyhole / "keychain/generic/app") })
      let item = try keyhole.sh("echo keychain/generic/app/*").lines.first ?? ""
      try keyhole.check("setfattr -n user.keyhole.access -v '\(flags)' \(item)")
      let value = isApproved ? "hush" : ""
      #expect(try keyhole.sh("cat \(item)/value").text == value)
      #expect(try keyhole.world.sh("keyhole get \(item)/value").text == value)
      #expect(try keyhole.world.sh("\(wrapper) get app").text == (isApproved ? "hush\n" : "nil\n"))
      #expect(Self.asked(keyhole).count == 3)
    }
  }

  @Test(arguments: [true, false])
  func exportAsks(isApproved: Bool) async throws {
    try await Self.withAsked("exit \(isApproved ? 0 : 1)") { keyhole in
      let export = try keyhole.world.sh(
        "keyhole export --plain -o \"$OUT/e\" keychain; grep -c secret \"$OUT/e\"")
      #expect(export.text == (isApproved ? "1\n" : "") && export.error.isEmpty == isApproved)
      #expect(Self.asked(keyhole).count == 1)
    }
  }

  @Test(FakeClock.isThere) func clockThatIsSetBackExtendsNoPermission() async throws {
    try await withWorld { outer in
      let clock = try FakeClock(outer)
      let decide = try Self.program(outer, "exit 0")
      try await withKeyhole("auth-command=\(decide)", "auth-reuse=1", environment: clock.variables) {
        keyhole in
        let asked = { try System.text(outer.root + "/asked").split(separator: "\n").count }
        try keyhole.check(
          "mkdir -p \(Self.item); setfattr -n user.keyhole.access -v userPresence \(Self.item); echo secret > \(Self.value)"
        )
        let before = try keyhole.sh("date +%s").text
        try keyhole.check("cat \(Self.value)", prints: "secret")
        #expect(try asked() == 1)
        try clock.set(-86_400)
        let after = try keyhole.sh("date +%s").text
        let isPast = (Int(after.dropLast()) ?? 0) < (Int(before.dropLast()) ?? 0)
        #expect(isPast, "the stand-in itself")
        let isOver = try holds {
          try keyhole.check("cat \(Self.value)", prints: "secret")
          return try asked() > 1
        }
        #expect(isOver)
      }
    }
  }

  @Test(.enabled(if: Privileges.isRoot, "needs root: another namespace of processes"))
  func callerInAnotherNamespaceIsUnidentifiedAsRoot() async throws {
    try await Self.withAsked("exit 0") { keyhole in
      try keyhole.check("setfattr -n user.keyhole.programs -v 'allow /usr/bin/cat' \(Self.item)")
      try keyhole.check("unshare --pid --fork cat \(Self.value)", prints: "secret")
      #expect(Self.asked(keyhole).last?.contains("an unidentified program") == true)
    }
  }

  @Test func programThatIsKilledIsWithdrawnAndForgotten() async throws {
    try await Self.withAsked("exec sleep 100") { keyhole in
      let reader = try keyhole.launch(["/bin/cat", Self.value])
      #expect(holds { Self.asked(keyhole).count == 1 })
      reader.kill(SIGKILL)
      #expect(try reader.waitForEnd(until: Deadline(in: .seconds(10))) == 128 + SIGKILL)
    }
  }
}
