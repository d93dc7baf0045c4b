import Glibc
import Testing

/// Programs that connect to the mount's control socket and are not what they seem, or say nothing.
@Suite(.timeLimit(.minutes(5))) struct IntruderTests {
  private typealias Access = AccessTests

  /// The protocol as another language speaks it: `honest` asks as itself; `sender` has a child send the request;
  /// `late` executes another program after the request.
  private static let client = """
    import glob, os, socket, struct, sys, time
    how, item = sys.argv[1:]
    folder = os.environ["XDG_RUNTIME_DIR"] + "/keyhole"
    s = socket.socket(socket.AF_UNIX); s.connect(glob.glob(folder + "/*.control")[0]); s.settimeout(20)
    s.set_inheritable(True)
    def send(kind, body, challenge):
      s.sendall(struct.pack("<B3xIIQ", kind, len(body), 0xFFFFFFFF, challenge) + body)
    def exactly(count):
      data = b""
      while len(data) < count:
        part = s.recv(count - len(data))
        if not part: raise EOFError
        data += part
      return data
    def receive():
      while True:
        kind, body, secret, challenge = struct.unpack("<B3xIIQ", exactly(20))
        body = exactly(body); secret = exactly(secret) if secret != 0xFFFFFFFF else b""
        if kind != 40: return kind, body, secret
    def greet():
      send(1, struct.pack("<IQB", 5, 0, 10), 0)
      return struct.unpack("<IQ", receive()[1][:12])[1]
    def ask(challenge):
      name = item.encode()
      send(20, struct.pack("<I", len(name)) + name, challenge)
    def report():
      try: print("got", receive()[2].decode(), flush=True)
      except (EOFError, OSError): print("nothing", flush=True)
    if how == "honest":
      ask(greet()); report()
    elif how == "sender":
      end, start = os.pipe()
      if os.fork() == 0:
        os.read(end, 1)
        try: ask(greet()); report()
        except Exception: print("nothing", flush=True)
        os._exit(0)
      os.write(start, b"x"); os.execv("/usr/bin/tail", ["tail", "--pid", str(os.getpid() + 1), "-f", "/dev/null"])
    elif how == "late":
      challenge = greet(); end, start = os.pipe()
      if os.fork() == 0:
        os.close(start); os.read(end, 1); report(); os._exit(0)
      os.set_inheritable(start, False)
      ask(challenge); os.execv("/usr/bin/tail", ["tail", "-f", "/dev/null"])
    """

  /// audit.md M1: connect, fork, and execute a program that the rules let in.
  @Test func connectionIsNotThatOfTheProgramThatItsMakerBecomes() async throws {
    try await Access.withAsked("[ \"$KEYHOLE_OPERATION\" = change ]", "auth-reuse=0", flags: "") { keyhole in
      try keyhole.world.check("cat > $OUT/client.py", sending: Array(Self.client.utf8))
      let id = try keyhole.world.sh(
        "sqlite3 -readonly \"$DATA/keyhole/vault.db\" 'select lower(hex(uuid)) from item' | sed -E 's/(.{8})(.{4})(.{4})(.{4})/\\1-\\2-\\3-\\4-/'"
      ).text.dropLast()
      let rules = { (program: String) in
        try keyhole.check(
          "setfattr -n user.keyhole.programs -v \"allow $(readlink -f \(program))\"$'\\ndeny *' \(Access.item)"
        )
      }
      try rules("/usr/bin/python3")
      try keyhole.world.check("/usr/bin/python3 $OUT/client.py honest \(id)", prints: "got secret\n")
      try rules("/usr/bin/tail")
      for how in ["honest", "sender", "late"] {
        let program = try Program(
          ["/usr/bin/python3", keyhole.world.outside + "/client.py", how, String(id)],
          environment: keyhole.world.environment, directory: keyhole.world.outside)
        defer { program.kill() }
        let line = try program.line()
        #expect(line == "got " || line == "nothing", "\(how): \(line ?? "")")
      }
    }
  }

  /// Reads an item twice by the rule for Python, and then as another program, or where the path of a program is its own choice.
  private static let changing = """
    import ctypes, os, sys
    how, item = sys.argv[1:]
    def read():
      try: print(open(item).read(), flush=True)
      except OSError as error: print(os.strerror(error.errno), flush=True)
    read(); read()
    if how == "executes": os.execv("/usr/bin/cat", ["cat", item])
    if how == "separates":
      if ctypes.CDLL(None).unshare(0x10020000) != 0: print("can't separate")
      read()
    if how == "stays": read()
    """

  @Test(arguments: [
    ("stays", "secret\nsecret\nsecret\n"), ("separates", "secret\nsecret\nPermission denied\n"),
    ("executes", "secret\nsecret\ncat: "),
  ])
  func processThatWasLetInIsLookedAtAgain(_ how: String, _ expected: String) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        mkdir -p keychain/generic/s/p; printf secret > keychain/generic/s/p/value
        setfattr -n user.keyhole.programs -v "allow $(readlink -f /usr/bin/python3)"$'\\ndeny *' keychain/generic/s/p
        """)
      try keyhole.world.check("cat > $OUT/changing.py", sending: Array(Self.changing.utf8))
      let result = try keyhole.world.sh(
        "/usr/bin/python3 $OUT/changing.py \(how) \(keyhole / "keychain/generic/s/p/value") 2>&1")
      #expect(
        result.text.hasPrefix(expected) && (how != "executes" || result.text.hasSuffix("denied\n")),
        "\(result.text)")
      let log = try keyhole.world.sh("keyhole log").text
      #expect(
        log.split(separator: "\n").count { $0.contains("python3") && $0.contains("allowed") }
          == (how == "stays" ? 3 : 2), "\(log)")
    }
  }

  /// Says nothing, or half a greeting, over many connections, until it is killed.
  private static let idler = """
    import glob, os, resource, socket, sys, time
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, 4096), limit))
    path = glob.glob(os.environ["XDG_RUNTIME_DIR"] + "/keyhole/*.control")[0]
    held = []
    for number in range(int(sys.argv[1])):
      s = socket.socket(socket.AF_UNIX); s.connect(path); held.append(s)
      try:
        if number % 2: s.sendall(b"\\x01\\x00")
      except OSError: pass
    print("ready", flush=True); sys.stdin.read()
    """

  private static func idle(_ keyhole: MountedKeyhole, _ count: Int) throws -> Program {
    let program = try Program(
      ["/usr/bin/python3", "-c", idler, "\(count)"], environment: keyhole.world.environment,
      directory: keyhole.world.outside)
    try #require(try program.line() == "ready")
    return program
  }

  private static func isLocked(_ keyhole: MountedKeyhole) throws -> Bool {
    try System.text(keyhole / ".keyhole/status").contains("\"locked\": true")
  }

  /// audit.md M7, on a mount.
  @Test func idleAndSlowConnectionsDelayNoLock() async throws {
    try await withKeyhole("auto-lock=1") { keyhole in
      try keyhole.check("mkdir -p \(LockTests.item); printf secret > \(LockTests.item)/value")
      let idler = try Self.idle(keyhole, 700)
      defer { idler.kill() }
      #expect(try holds { try Self.isLocked(keyhole) })
      try keyhole.check(
        "keyhole unlock < /dev/null; printf other > \(LockTests.item)/value", within: .seconds(20))
      let time = try ContinuousClock().measure { try keyhole.world.check("keyhole lock") }
      #expect(time < .seconds(10))
      #expect(try Self.isLocked(keyhole))
    }
  }

  /// accept(2) fails with EMFILE: what waits is turned away, and the socket serves on.
  @Test func acceptWithoutDescriptorsGoesOn() async throws {
    try await withKeyhole(launcher: ["/usr/bin/prlimit", "--nofile=56:56"]) { keyhole in
      try keyhole.check("mkdir -p \(LockTests.item); printf secret > \(LockTests.item)/value")
      let idlers = try (0..<3).map { _ in try Self.idle(keyhole, 100) }
      defer { for idler in idlers { idler.kill() } }
      #expect(try holds { try keyhole.world.sh("keyhole lock").status == 0 })
      #expect(try Self.isLocked(keyhole))
      for idler in idlers { idler.kill() }
      #expect(
        try holds { try keyhole.world.sh("keyhole unlock < /dev/null").status == 0 })
      try keyhole.check("cat \(LockTests.item)/value", prints: "secret")
    }
  }

  /// audit.md L12: a dialog shows the texts of a mount only.
  @Test func dialogIsStartedByKeyholeOnly() async throws {
    try await withWorld { world in
      let output = try world.sh("printf 'program /usr/bin/ssh\\n\\n' | keyhole authenticate")
      #expect(output.status == 1 && output.bytes.isEmpty)
      #expect(output.error.contains("is started by a mount, or"))
    }
  }

  /// audit.md L7: pages of a secret that a program mapped.
  @Test func mappedPagesOfASecretGoWithItsMapping() async throws {
    let script = """
      import ctypes, mmap, os, sys
      libc = ctypes.CDLL(None, use_errno=True); name, how = sys.argv[1:]
      def pages(file):
        span, counts = (ctypes.c_uint64 * 2)(0, 0), (ctypes.c_uint64 * 5)()
        if libc.syscall(451, file, span, counts, 0): print("cachestat", ctypes.get_errno()); sys.exit()
        return counts[0]
      def empty(file):
        for _ in range(2_000_000):
          if pages(file) == 0: return True
        return False
      file = os.open(name, os.O_RDONLY); other = os.open(name, os.O_RDONLY)
      memory = mmap.mmap(file, 6, mmap.MAP_PRIVATE, mmap.PROT_READ)
      print(memory[:], pages(other) > 0)
      if how == "close": memory.close(); os.close(file)
      else: os.system("keyhole lock")
      print(empty(other))
      """
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir -p \(LockTests.item); printf secret > \(LockTests.item)/value")
      for how in ["close", "lock"] {
        let output = try keyhole.sh("python3 -c '\(script)' \(LockTests.item)/value \(how)")
        // cachestat(2) is Linux 6.5's.
        guard output.text != "cachestat 38\n" else { return }
        #expect(output == Output(status: 0, bytes: Array("b'secret' True\nTrue\n".utf8), error: ""), "\(how)")
      }
    }
  }
}
