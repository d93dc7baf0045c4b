import Glibc

/// Folders of one test, and programs that use them.
struct OtherProcess: ~Copyable {
  let root: String
  /// The session bus of the programs; empty: none.
  private let bus: String
  var suites: String { root + "/config" }
  var vault: String { root + "/data/keyhole" }

  init(bus: String = "") {
    self.bus = bus
    let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    var template = Array("\(folder)/wrappers.XXXXXX".utf8CString)
    precondition(unsafe mkdtemp(&template) != nil, "no temporary folder")
    root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { _ = Self.wait(Self.start("/bin/rm", ["-r", "-f", "--one-file-system", root], [])) }

  /// Runs the program of the fixtures to its end; what it prints, or nil where it fails.
  func run(_ arguments: String...) -> String? {
    guard let process = begin(arguments), Self.wait(process) == 0 else { return nil }
    return output
  }

  /// Starts the program, and leaves it running.
  func begin(_ arguments: [String], program: String = "WrapperProgram") -> pid_t? {
    Self.start(
      Self.folder + "/" + program, arguments,
      [
        "HOME=\(root)", "XDG_CONFIG_HOME=\(suites)", "XDG_DATA_HOME=\(root)/data",
        "XDG_STATE_HOME=\(root)/state", "KEYHOLE_STORE=user", "SWIFT_BACKTRACE=enable=no",
        "LD_LIBRARY_PATH=\(Self.variable("LD_LIBRARY_PATH"))", "DBUS_SESSION_BUS_ADDRESS=\(bus)",
      ], output: root + "/output")
  }

  /// The output of the last program so far.
  var output: String { Self.text(root + "/output") }

  static func wait(_ process: pid_t?) -> Int32 {
    guard let process else { return -1 }
    var status: Int32 = 0
    while unsafe waitpid(process, &status, 0) < 0 { if errno != EINTR { return -1 } }
    return status
  }

  private static func start(
    _ path: String, _ arguments: [String], _ environment: [String], output: String = "/dev/null"
  ) -> pid_t? {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    let words = unsafe ([path] + arguments).map { unsafe strdup($0) } + [nil]
    let variables = unsafe environment.map { unsafe strdup($0) } + [nil]
    defer { unsafe (words + variables).forEach { unsafe free($0) } }
    var process: pid_t = 0
    return unsafe posix_spawn(&process, path, &actions, nil, words, variables) == 0 ? process : nil
  }

  private static func variable(_ name: String) -> String {
    unsafe getenv(name).map { unsafe String(cString: $0) } ?? ""
  }

  private static func text(_ path: String) -> String {
    guard let file = unsafe fopen(path, "r") else { return "" }
    defer { unsafe fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = unsafe fread(&bytes, 1, bytes.count, file)
    return String(decoding: bytes.prefix(count), as: UTF8.self)
  }

  /// The folder of the program that runs the tests, where the fixtures are too.
  private static let folder: String = {
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = unsafe readlink("/proc/self/exe", &buffer, buffer.count)
    let own = String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return String(own.prefix(upTo: own.lastIndex(of: "/") ?? own.startIndex))
  }()
}

/// Whether a condition comes to hold, asked again and again until it does or the time is over.
func holds(within duration: Duration = .seconds(30), _ condition: () -> Bool) -> Bool {
  let end = ContinuousClock.now + duration
  while !condition() {
    if ContinuousClock.now > end { return condition() }
    sched_yield()
  }
  return true
}
