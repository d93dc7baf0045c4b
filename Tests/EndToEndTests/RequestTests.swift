import Glibc
import Testing

/// Programs that have neither a window nor a terminal, and programs that type for a person.
@Suite(
  .timeLimit(.minutes(3)), .enabled(if: System.exists("/usr/bin/pinentry-curses"), "needs pinentry-curses"))
struct RequestTests {
  private static let item = "keychain/generic/s/p"

  /// A mount whose vault has the passphrase `horse`, and an item about which a plain yes is asked for.
  private static func withItem(
    _ options: String = "auth-reuse=0,auth-requests=yes", environment: [String] = [],
    body: (MountedKeyhole) throws -> Void
  ) async throws {
    try await withKeyhole(options, environment: environment) { keyhole in
      // The former secret is what an undo brings back.
      try keyhole.check("mkdir -p \(item); echo former > \(item)/value; echo secret > \(item)/value")
      try keyhole.check("echo horse | keyhole passphrase --weak --cost 14 2> /dev/null")
      try keyhole.check("setfattr -n user.keyhole.programs -v 'ask *' \(item)")
      try body(keyhole)
    }
  }

  /// Starts a program without a terminal, and waits until its request is listed.
  private static func waitingReader(
    _ keyhole: MountedKeyhole, of path: String = item + "/value"
  ) throws -> (Program, number: String) {
    let reader = try keyhole.launch(["/usr/bin/setsid", "-w", "/usr/bin/cat", path])
    var number = ""
    #expect(
      try holds {
        number = String(try keyhole.sh("keyhole requests | cut -f 1").text.dropLast())
        return !number.isEmpty
      })
    return (reader, number)
  }

  private static func terminal(_ keyhole: MountedKeyhole, _ command: String) throws -> Terminal {
    let world = keyhole.world
    return try Terminal(
      ["/bin/sh", "-c", command], environment: world.environment, directory: keyhole.mount,
      errors: world.outside + "/errors")
  }

  @Test func approvedWithThePassphraseOnAnotherTerminal() async throws {
    try await Self.withItem { keyhole in
      let (reader, number) = try Self.waitingReader(keyhole)
      try keyhole.check(
        "keyhole requests | cut -f 2,3", prints: "read\t\(Self.item)\n")
      try keyhole.check("keyhole requests --json | jq -r '.[].program'", prints: "/usr/bin/cat\n")
      let terminal = try Self.terminal(keyhole, "keyhole approve \(number)")
      try terminal.wait(for: "/usr/bin/cat")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("wrong\r")
      try terminal.wait(for: "Wrong passphrase; 2 tries are left")
      try terminal.type("horse\r")
      let approval = try terminal.finish()
      #expect(approval.status == 0, "\(approval)")
      #expect(try reader.finish().text == "secret")
      try keyhole.check("keyhole requests")
      // It was for once.
      let (next, again) = try Self.waitingReader(keyhole)
      try keyhole.check("keyhole deny \(again)")
      let output = try next.finish()
      #expect(output.status == 1 && output.error.contains("Permission denied"), "\(output)")
      try keyhole.check(
        "keyhole log | cut -f 2 | tail -n 4", prints: "listed\napproved\nlisted\nrefused\n")
    }
  }

  /// Commands that change protection are known by their file, as those that open secrets.
  @Test(arguments: [
    "allow cat s/p", "attr s/p keyhole.programs 'deny *'", "config auth-reuse 60", "undo s/p",
  ])
  func aCommandIsNamed(command: String) async throws {
    try await Self.withItem { keyhole in
      let program = try keyhole.launch(["/usr/bin/setsid", "-w", "/bin/sh", "-c", "keyhole \(command)"])
      var name = ""
      #expect(
        try holds {
          name = try keyhole.sh("keyhole requests --json | jq -r '.[].program'").text
          return !name.isEmpty
        })
      #expect(name.hasSuffix("/keyhole\n"), "\(name)")
      try keyhole.check("keyhole deny $(keyhole requests | cut -f 1)")
      #expect(try program.finish().status == 5)
      try keyhole.check("keyhole log | grep -c unidentified || true", prints: "0\n")
    }
  }

  /// It would hold for the process alone, which leads its session.
  @Test func sessionThatEndsWithTheProcessIsNotApproved() async throws {
    try await Self.withItem { keyhole in
      let (reader, number) = try Self.waitingReader(keyhole)
      let terminal = try Self.terminal(keyhole, "keyhole approve --session \(number)")
      #expect(try terminal.finish().status == 1)
      let error = try System.text(keyhole.world.outside + "/errors")
      let begin = "keyhole: request \(number): "
      #expect(error.hasPrefix(begin) && error.contains("approve it once"), "\(error)")
      try keyhole.check("keyhole deny \(number)")
      #expect(try reader.finish().status == 1)
    }
  }

  @Test func approvedForAlwaysWritesTheRule() async throws {
    try await Self.withItem { keyhole in
      let (reader, number) = try Self.waitingReader(keyhole)
      let terminal = try Self.terminal(keyhole, "keyhole approve --always \(number)")
      // The person sees how long it holds: a program may have typed the command.
      try terminal.wait(for: "FOR ALWAYS")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("horse\r")
      let approval = try terminal.finish()
      #expect(approval.status == 0, "\(approval)")
      #expect(try reader.finish().text == "secret")
      try keyhole.check("setsid -w cat \(Self.item)/value", prints: "secret")
      try keyhole.check(
        "keyhole rules \(Self.item)",
        prints: "\(Self.item)\tallow /usr/bin/cat\n\(Self.item)\task *\notherwise\tno other programs\n")
    }
  }

  /// An empty passphrase leads to the further choices.
  @Test func sessionIsNotOfferedOnATerminalThatIsNoLogin() async throws {
    try await Self.withItem { keyhole in
      let terminal = try Self.terminal(keyhole, "cat \(Self.item)/value > $OUT/read")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("\r")
      try terminal.wait(for: "Type once or always or never")
      try terminal.type("never\r")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("horse\r")
      #expect(try terminal.finish().status == 1)
      try keyhole.check("keyhole rules \(Self.item) | head -n 1", prints: "\(Self.item)\tdeny /usr/bin/cat\n")
    }
  }

  @Test func requestEndsWithTheQuestionsTimeAndWhereItIsNotWanted() async throws {
    try await Self.withItem("auth-timeout=1,auth-requests=yes") { keyhole in
      let output = try keyhole.sh("setsid -w cat \(Self.item)/value")
      #expect(output.error.contains("Connection timed out"), "\(output)")
    }
    try await Self.withItem("auth-requests=no") { keyhole in
      try keyhole.refuses("setsid -w cat \(Self.item)/value", .denied)
    }
  }

  /// A program without a window and a terminal opens a secret of a locked vault.
  @Test func aLockedSecretWaitsForThePassphrase() async throws {
    try await Self.withItem { keyhole in
      try keyhole.check(
        "mkdir -p keychain/generic/s/free; printf free > keychain/generic/s/free/value; keyhole lock")
      let free = "keychain/generic/s/free/value"
      let (reader, number) = try Self.waitingReader(keyhole, of: free)
      try keyhole.check("keyhole requests | cut -f 2,3", prints: "unlock\t\(free)\n")
      try keyhole.check("keyhole requests --json | jq -r '.[].operation'", prints: "unlock\n")
      let always = try keyhole.sh("keyhole approve --always \(number)")
      #expect(always.status != 0 && always.error.contains("approve it without an option"), "\(always)")
      let terminal = try Self.terminal(keyhole, "keyhole approve \(number)")
      try terminal.wait(for: "/usr/bin/cat")
      try terminal.wait(for: "is locked")
      try terminal.wait(for: "Passphrase:")
      try terminal.type("wrong\r")
      try terminal.wait(for: "2 tries are left")
      try terminal.type("horse\r")
      let approval = try terminal.finish(within: LockTests.patience)
      #expect(approval.status == 0, "\(approval)")
      #expect(try reader.finish().text == "free")
      try keyhole.check("keyhole requests")
      try keyhole.check("keyhole lock")
      let (refused, next) = try Self.waitingReader(keyhole, of: free)
      try keyhole.check("keyhole deny \(next)")
      let output = try refused.finish()
      #expect(output.status == 1 && output.error.contains("Required key not available"), "\(output)")
      // That was a refusal, as in a dialog; to unlock in another way lets each reader go on.
      try keyhole.check("echo horse | keyhole unlock; keyhole lock", within: LockTests.patience)
      let (last, _) = try Self.waitingReader(keyhole, of: free)
      try keyhole.check("echo horse | keyhole unlock", within: LockTests.patience)
      #expect(try last.finish().text == "free")
    }
  }

  @Test func allowWritesARuleAndRulesPrintsThem() async throws {
    try await withKeyhole("auth-requests=no") { keyhole in
      try keyhole.check("mkdir -p \(Self.item); echo secret > \(Self.item)/value")
      try keyhole.check("echo horse | keyhole passphrase --weak --cost 14 2> /dev/null")
      try keyhole.check("keyhole allow /usr/bin/head \(Self.item) && keyhole allow cat keychain/generic/s")
      try keyhole.check(
        "keyhole rules \(Self.item)",
        prints: "\(Self.item)\tallow /usr/bin/head\nkeychain/generic/s\tallow /usr/bin/cat\notherwise\task\n")
      try keyhole.check("cat \(Self.item)/value", prints: "secret")
      #expect(try keyhole.sh("keyhole allow no-such-program \(Self.item)").error.contains("no such program"))
      #expect(try keyhole.sh("keyhole rules defaults").error.contains("only the keychain"))
      try keyhole.check("keyhole requests --json", prints: "[]\n")
    }
  }

  /// Where the script starts a program that opens the secret, the rule does not fit.
  @Test func aRuleForAScriptIsNotedSo() async throws {
    try await withKeyhole("auth-command=/usr/bin/true") { keyhole in
      try keyhole.check("mkdir -p \(Self.item); echo secret > \(Self.item)/value")
      try keyhole.check("printf '#!/bin/sh\\n' > \"$OUT/script\"; chmod +x \"$OUT/script\"")
      for command in [
        "allow $OUT/script \(Self.item)", "attr \(Self.item) keyhole.programs \"deny $OUT/script\"",
      ] {
        let output = try keyhole.sh("keyhole \(command)")
        #expect(
          output.status == 0 && output.error.contains("/script is a script: the rule fits"), "\(output)")
      }
      try keyhole.check("keyhole rules \(Self.item) | cut -f 2 | grep -c 'deny .*/script'", prints: "1\n")
      try keyhole.check("keyhole allow -q $OUT/script \(Self.item)")
    }
  }

  @Test func openWithoutWaitingIsInTheLog() async throws {
    try await Self.withItem { keyhole in
      let output = try keyhole.sh("grep -r secret \(Self.item)")
      #expect(output.error.contains("Resource temporarily unavailable"), "\(output)")
      try keyhole.check("keyhole log | cut -f 2 | tail -n 1", prints: "wouldWait\n")
    }
  }
}

// MARK: - Programs that type for a person

extension RequestTests {
  /// A program sends keys to a terminal of the user's, with the command that approves its own request.
  @Test(.enabled(if: System.exists("/usr/bin/tmux"), "needs tmux"))
  func keysThatAProgramSendsToATerminalApproveNothing() async throws {
    try await Self.withItem { keyhole in
      let (reader, number) = try Self.waitingReader(keyhole)
      let tmux = "tmux -S \(keyhole.world.outside)/tmux -f /dev/null"
      try keyhole.check("\(tmux) new-session -d -x 100 -y 30 /bin/sh")
      defer { _ = try? keyhole.sh("\(tmux) kill-server") }
      try keyhole.check(
        "\(tmux) send-keys 'keyhole approve \(number); echo ended=$? > \(keyhole.world.outside)/ended; exec cat' Enter"
      )
      let screen = { try keyhole.sh("\(tmux) capture-pane -p").text }
      #expect(try holds { try screen().contains("Passphrase:") })
      // Whatever it types: the passphrase it does not know. Afterwards cat(1) takes it, and not the shell, whose yes(1) would
      // fill the screen.
      #expect(
        try holds {
          try keyhole.check("\(tmux) send-keys yes Enter")
          return try keyhole.sh("cat $OUT/ended 2> /dev/null").text == "ended=5\n"
        })
      try keyhole.check("keyhole requests | cut -f 1", prints: number + "\n")
      try keyhole.check("keyhole deny \(number)")
      #expect(try reader.finish().status == 1)
    }
  }

  /// A program types into a window of the user's display (XTEST).
  @Test(
    .enabled(
      if: System.exists("/usr/bin/xdotool") && System.exists("/usr/bin/pinentry-gtk-2"), "needs xdotool"))
  func keysThatAProgramSendsToAWindowApproveNothing() async throws {
    try await withWorld { outer in
      try outer.check(
        "mkdir \(outer.root)/bin; ln -s /usr/bin/pinentry-gtk-2 \(outer.root)/bin/pinentry")
      let server = try VirtualDisplay(outer)
      defer { server.end() }
      let display = server.variable
      let path = "PATH=\(outer.root)/bin:\(Products.folder):/usr/local/bin:/usr/bin:/bin"
      try await Self.withItem(environment: [display, path]) { keyhole in
        // A passphrase is asked for in that window.
        let reader = try keyhole.launch(["/usr/bin/setsid", "-w", "/usr/bin/cat", Self.item + "/value"])
        for _ in 0..<3 {
          try keyhole.check(
            "\(display) timeout 60 xdotool search --sync --onlyvisible --class pinentry windowfocus > /dev/null; "
              + "\(display) xdotool type yes; \(display) xdotool key Return")
        }
        let output = try reader.finish()
        #expect(output.status == 1 && output.text.isEmpty, "\(output)")
      }
    }
  }

  /// A program logs in as its own user, and makes a terminal there: sshd(8) makes one for root only.
  private static let sshd = ["/usr/sbin/sshd", Products.project + "/.build/sshd/usr/sbin/sshd"].first {
    System.exists($0)
  }

  @Test(.enabled(if: sshd != nil && System.exists("/usr/bin/ssh"), "needs openssh-server"))
  func loginToOneselfApprovesNothing() async throws {
    try await Self.withItem { keyhole in
      let folder = keyhole.world.outside
      try keyhole.check(
        """
        ssh-keygen -q -t ed25519 -N '' -f \(folder)/host; ssh-keygen -q -t ed25519 -N '' -f \(folder)/key
        cp \(folder)/key.pub \(folder)/authorized
        """)
      // One connection, by standard input and output.
      let server =
        "\(Self.sshd ?? "") -i -f /dev/null -o HostKey=\(folder)/host -o AuthorizedKeysFile=\(folder)/authorized "
        + "-o StrictModes=no -o UsePAM=no -o PidFile=none"
      let (reader, number) = try Self.waitingReader(keyhole)
      let command = keyhole.world.environment.filter {
        $0.hasPrefix("XDG_") || $0.hasPrefix("HOME=") || $0.hasPrefix("PATH=")
      }
      .map { "'\($0)'" }.joined(separator: " ")
      let terminal = try Self.terminal(
        keyhole,
        "stty raw -echo; ssh -F /dev/null -o 'ProxyCommand=\(server)' -o StrictHostKeyChecking=no "
          + "-o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -i \(folder)/key here "
          + "\"env \(command) TERM=linux script -qefc 'keyhole approve \(number)' /dev/null\"")
      for _ in 0..<3 {
        try terminal.wait(for: "Passphrase:")
        try terminal.type("yes\r")
      }
      let approval = try terminal.finish()
      #expect(approval.status == 5, "\(approval)")
      try keyhole.check("keyhole requests | cut -f 1", prints: number + "\n")
      try keyhole.check("keyhole deny \(number)")
      #expect(try reader.finish().status == 1)
    }
  }
}
