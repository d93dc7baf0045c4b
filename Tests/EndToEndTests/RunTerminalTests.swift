import Glibc
import Testing

/// `keyhole run` on a terminal: directly, and with a pseudo-terminal between where output is masked.
@Suite(.timeLimit(.minutes(3))) struct RunTerminalTests {
  /// An interactive shell with job control, and the person before it.
  /// Stops the command in the foreground.
  private static func stop(_ terminal: Terminal) throws {
    try terminal.type("\u{1A}")
    try terminal.wait(for: "Stopped")
    try terminal.wait(for: "PROMPT> ")
  }

  /// The terminal has the modes that it had before the command.
  private static func checkModes(_ terminal: Terminal) throws {
    try terminal.type("echo n=$(stty -a | grep -c 'isig icanon')\r")
    try terminal.wait(for: "n=1")
  }

  private static func withShell(_ mask: String, body: (World, Terminal, _ run: String) throws -> Void)
    async throws
  {
    try await withWorld { world in
      try world.check("printf hunter2-hunter2 | keyhole set keychain/generic/my.app/KEY")
      let terminal = try Terminal(
        ["/bin/bash", "-c", "exec env PS1=\"$PROMPT\" bash --norc --noediting -i 2>&1"],
        environment: world.environment + ["PROMPT=$? PROMPT> ", "HISTFILE=", "VIMINIT=set nocompatible"],
        directory: world.outside, errors: world.outside + "/errors")
      try terminal.wait(for: "0 PROMPT> ")
      // Then what is typed is not taken for what is printed.
      try terminal.type("stty -echo\r")
      try terminal.wait(for: "PROMPT> ")
      try body(world, terminal, "keyhole run \(mask) my.app/KEY -- ")
      try terminal.type("exit\r")
      _ = try terminal.finish()
    }
  }

  @Test(arguments: ["", "--mask"]) func commandHasATerminal(mask: String) async throws {
    try await Self.withShell(mask) { _, terminal, run in
      try terminal.type(run + "sh -c 'test -t 0 && test -t 1 && test -t 2 && stty size; echo \"<$KEY>\"'\r")
      try terminal.wait(for: "24 80")
      try terminal.wait(for: mask.isEmpty ? "<hunter2-hunter2>" : "<[masked]>")
      try terminal.wait(for: "0 PROMPT> ")
      // Pipes stay pipes, each by itself.
      try terminal.type("echo | " + run + "sh -c '! test -t 0 && test -t 1; echo r=$?'\r")
      try terminal.wait(for: "r=0")
      // With a mask, what is typed before the command's end is the command's.
      try terminal.wait(for: "0 PROMPT> ")
      try terminal.type(run + "sh -c 'test -t 0 && ! test -t 1 && test -t 2; echo r=$?' | cat\r")
      try terminal.wait(for: "r=0")
      try terminal.wait(for: "0 PROMPT> ")
      // The terminal itself, for what a program asks beside its standard input.
      try terminal.type("echo | " + run + "sh -c 'echo asks; read line < /dev/tty; echo \"<$line>\"'\r")
      try terminal.wait(for: "asks")
      try terminal.type("answer\r")
      try terminal.wait(for: "<answer>")
      try terminal.wait(for: "0 PROMPT> ")
    }
  }

  @Test(arguments: ["", "--mask"]) func windowMayChange(mask: String) async throws {
    try await Self.withShell(mask) { _, terminal, run in
      try terminal.type(
        run + "bash -c 'trap \"kill \\$!; stty size; exit\" WINCH; sleep 100 & echo ready; wait'\r")
      try terminal.wait(for: "ready")
      try terminal.resize(rows: 31, columns: 101)
      try terminal.wait(for: "31 101")
      try terminal.wait(for: "0 PROMPT> ")
    }
  }

  @Test(arguments: ["", "--mask"]) func interruptReachesTheCommand(mask: String) async throws {
    try await Self.withShell(mask) { _, terminal, run in
      try terminal.type(run + "sh -c 'echo ready; exec sleep 100'\r")
      try terminal.wait(for: "ready")
      try terminal.type("\u{03}")
      try terminal.wait(for: "130 PROMPT> ")
      // A script ends with its command, as without `keyhole run`.
      try terminal.type("bash -c '\(run) sh -c \"echo ready; exec sleep 100\"; echo on'\r")
      try terminal.wait(for: "ready")
      try terminal.type("\u{03}")
      try terminal.wait(for: "130 PROMPT> ")
      // A command that handles it decides by itself, and gets it once.
      try terminal.type(
        run + "bash -c 'trap \"let n++\" INT; echo ready; read line; echo \"n=$n\"; exit 7'\r")
      try terminal.wait(for: "ready")
      try terminal.type("\u{03}")
      try terminal.type("\r")
      try terminal.wait(for: "n=1")
      try terminal.wait(for: "7 PROMPT> ")
    }
  }

  /// As without `keyhole run`: what a command does not read is the next one's.
  @Test(
    .enabled(
      if: (try? System.text("/proc/sys/dev/tty/legacy_tiocsti")) != "0\n",
      "needs TIOCSTI, which this kernel refuses"),
    arguments: ["", "--mask"])
  func whatIsTypedAheadIsTheNextCommands(mask: String) async throws {
    let command = #"""
      import fcntl, struct, sys, termios, time
      print("ready", flush=True)
      print("<" + sys.stdin.buffer.raw.read(64).decode().strip() + ">", flush=True)
      # Two lines of which it reads nothing.
      while struct.unpack("i", fcntl.ioctl(0, termios.FIONREAD, b"0000"))[0] < 10: time.sleep(0.005)
      """#
    try await Self.withShell(mask) { world, terminal, run in
      try world.check("cat > \"$OUT/command.py\"", sending: Array(command.utf8))
      try terminal.type(run + "python3 command.py; read a; read b; echo \"[$a,$b]\"; (exit 4)\r")
      try terminal.wait(for: "ready")
      try terminal.type("one\rtwo\rthree\r")
      try terminal.wait(for: "<one>")
      try terminal.wait(for: "[two,three]")
      try terminal.wait(for: "4 PROMPT> ")
      try Self.checkModes(terminal)
    }
  }

  @Test(arguments: ["", "--mask"]) func commandIsStoppedAndContinued(mask: String) async throws {
    try await Self.withShell(mask) { _, terminal, run in
      try terminal.type(run + "sh -c 'echo ready; read line; echo \"<$line>\"; exit 5'\r")
      try terminal.wait(for: "ready")
      try Self.stop(terminal)
      try Self.checkModes(terminal)
      try terminal.wait(for: "PROMPT> ")
      try terminal.type("fg\r")
      try terminal.wait(for: "keyhole run")
      try terminal.type("line\r")
      try terminal.wait(for: "<line>")
      try terminal.wait(for: "5 PROMPT> ")
      // In the background it prints, and the shell keeps the terminal.
      try terminal.type(run + "sh -c 'echo printed' & wait; echo waited\r")
      try terminal.wait(for: "printed")
      try terminal.wait(for: "waited")
      try terminal.wait(for: "PROMPT> ")
    }
  }

  /// bash(1) sends a job that runs no signal when `fg` brings it to the foreground.
  @Test(arguments: ["", "--mask"]) func jobOfTheBackgroundGetsTheKeyboard(mask: String) async throws {
    try await Self.withShell(mask) { world, terminal, run in
      // Without a mask, the kernel stops a job that reads in the background; so it waits for a line of another pipe first.
      try world.check(#"mkfifo "$OUT/go""#)
      let job = run + "sh -c 'echo ready; read go < go; echo asks; read line; echo \"<$line>\"; exit 6'"
      try terminal.type(job + " &\r")
      try terminal.wait(for: "ready")
      try terminal.type("fg\r")
      try terminal.wait(for: "keyhole run")
      try world.check(#"echo > "$OUT/go""#)
      try terminal.wait(for: "asks")
      try terminal.type("line\r")
      try terminal.wait(for: "<line>")
      try terminal.wait(for: "6 PROMPT> ")
      // Stopped, and continued in the background first.
      try terminal.type(job + "\r")
      try terminal.wait(for: "ready")
      try Self.stop(terminal)
      try terminal.type("bg\r")
      try terminal.wait(for: "&")
      try terminal.type("fg\r")
      try terminal.wait(for: "keyhole run")
      try world.check(#"echo > "$OUT/go""#)
      try terminal.wait(for: "asks")
      try terminal.type("line\r")
      try terminal.wait(for: "<line>")
      try terminal.wait(for: "6 PROMPT> ")
      try Self.checkModes(terminal)
    }
  }

  @Test(
    .enabled(if: System.exists("/usr/bin/vim"), "needs vim"), arguments: ["", "--mask"])
  func vimEditsAndStops(mask: String) async throws {
    try await Self.withShell(mask) { world, terminal, run in
      try terminal.type("TERM=xterm " + run + "vim -n file\r")
      try terminal.wait(for: "[New]")
      try terminal.type("i")
      try terminal.wait(for: "INSERT")
      // The whole screen is the editor's: nothing is masked in it.
      try terminal.type("\u{12}=$KEY\r")
      try terminal.wait(for: "hunter2-hunter2")
      try terminal.type("\u{1B}:w\r")
      try terminal.wait(for: "written")
      try Self.stop(terminal)
      try terminal.type("fg\r")
      try terminal.wait(for: "hunter2-hunter2")
      try terminal.type(":q\r")
      try terminal.wait(for: "0 PROMPT> ")
      #expect(try System.text(world.outside + "/file") == "hunter2-hunter2\n")
    }
  }

  @Test(
    .enabled(if: System.exists("/usr/bin/less"), "needs less"), arguments: ["", "--mask"])
  func lessReadsItsKeysFromTheTerminal(mask: String) async throws {
    try await Self.withShell(mask) { world, terminal, run in
      let less = "sh -c 'echo $$ > pid; exec less \"$@\"' sh"
      for command in [
        "seq 1001 1500 | \(run)\(less)", "\(run)seq 1001 1500 | \(less)",
        "seq 1001 1500 > f; \(run)\(less) f",
      ] {
        try terminal.type(command + "\r")
        try terminal.wait(for: "1010")
        try terminal.type("G")
        try terminal.wait(for: "(END)")
        // less(1) does not see a signal that comes between its last output and its next read.
        let process = try System.text(world.outside + "/pid").dropLast()
        #expect(try holds { try Self.state(of: process) == "S" })
        try terminal.type("\u{1A}")
        try terminal.wait(for: "Stopped")
        try terminal.wait(for: "PROMPT> ")
        try terminal.type("fg\r")
        try terminal.wait(for: "(END)")
        try terminal.type("q")
        try terminal.wait(for: "PROMPT> ")
      }
    }
  }

  /// R, S or T … (proc(5)).
  private static func state(of process: some StringProtocol) throws -> Character? {
    try System.text("/proc/\(process)/stat").split(separator: ")").last?.dropFirst().first
  }

  /// A server that takes one user's password, so that psql(1) has its prompt.
  @Test(
    .enabled(if: System.exists("/usr/bin/psql"), "needs postgresql-client"), arguments: ["", "--mask"])
  func psqlHasItsPrompt(mask: String) async throws {
    try await Self.withShell(mask) { world, terminal, _ in
      let server = try StandInPostgres(world, password: "hunter2-hunter2")
      defer { server.end() }
      try terminal.type(
        "keyhole run \(mask) PGPASSWORD=my.app/KEY -- psql -X -h 127.0.0.1 -p \(server.port) -U u d\r")
      try terminal.wait(for: "d=> ")
      try terminal.type("\\! echo shell\r")
      try terminal.wait(for: "shell")
      try terminal.type("\\echo `echo $PGPASSWORD`\r")
      try terminal.wait(for: mask.isEmpty ? "hunter2-hunter2" : "[masked]")
      try terminal.wait(for: "d=> ")
      // Ctrl-C empties the line, Ctrl-D ends it.
      try terminal.type("select")
      try terminal.type("\u{03}")
      try terminal.wait(for: "d=> ")
      try terminal.type("\u{04}")
      try terminal.wait(for: "0 PROMPT> ")
    }
  }

  private static let sshd = ["/usr/sbin/sshd", Products.project + "/.build/sshd/usr/sbin/sshd"].first {
    System.exists($0)
  }

  /// The key is a secret of Keyhole, which ssh-add(1) gives to an agent: ssh(1) closes the descriptors from 3 on that it was
  /// started with.
  @Test(
    .enabled(if: sshd != nil && System.exists("/usr/bin/ssh"), "needs openssh-server"),
    arguments: ["", "--mask"])
  func sshLogsInByAKeyOfKeyhole(mask: String) async throws {
    try await Self.withShell(mask) { world, terminal, _ in
      let folder = world.outside
      let server =
        "\(Self.sshd ?? "") -i -f /dev/null -o HostKey=\(folder)/host -o AuthorizedKeysFile=\(folder)/authorized "
        + "-o StrictModes=no -o UsePAM=no -o PidFile=none"
      try System.write(
        folder + "/login",
        """
        ssh-add -q - < "$KEY"
        ssh -F /dev/null -o "ProxyCommand=\(server)" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
          -o LogLevel=ERROR here 'echo asks; read line; echo "<$line>"; exit 9'
        status=$?
        ssh-agent -k > /dev/null
        exit $status
        """)
      try world.check(
        """
        ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f key; mv key.pub authorized
        keyhole set keychain/generic/ssh/key < key; rm key
        """)
      try terminal.type(
        "keyhole run \(mask) --file KEY=keychain/generic/ssh/key -- ssh-agent sh login\r")
      try terminal.wait(for: "asks")
      try terminal.type("line\r")
      try terminal.wait(for: "<line>")
      try terminal.wait(for: "9 PROMPT> ")
    }
  }

  /// Ctrl-C ends the command and nothing else, each time: the shell goes on with its prompt.
  @Test(arguments: ["", "--mask"]) func interruptEndsTheCommandEachTime(mask: String) async throws {
    try await Self.withShell(mask) { world, terminal, run in
      for _ in 0..<20 {
        try terminal.type(run + "sh -c 'echo $$ > pid; echo ready; exec sleep 100'\r")
        try terminal.wait(for: "ready")
        try terminal.type("\u{03}")
        try terminal.wait(for: "130 PROMPT> ")
        #expect(!System.exists("/proc/\(try System.text(world.outside + "/pid").dropLast())"))
      }
    }
  }

  /// Whatever ends `keyhole run`, the command learns that its terminal is gone.
  @Test func commandEndsWithTheTerminalBetween() async throws {
    try await Self.withShell("--mask") { world, terminal, run in
      try terminal.type(run + "sh -c 'echo $PPID $$ > pids; echo ready; exec sleep 100'\r")
      try terminal.wait(for: "ready")
      try world.check(
        """
        read monitor command < pids
        kill -9 $(ps -o ppid= -p $monitor); tail --pid=$command -f /dev/null; tail --pid=$monitor -f /dev/null
        """, within: .seconds(20))
      try terminal.wait(for: "137 PROMPT> ")
      try terminal.type("stty sane -echo\r")
      try terminal.wait(for: "PROMPT> ")
    }
  }
}
