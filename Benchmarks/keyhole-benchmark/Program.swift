import Glibc

/// Another program, run to its end.
struct Program {
  var path: String
  var arguments: [String]

  /// Runs it with its output in a file, and fails unless it ends with 0.
  func run(output: String = "/dev/null") throws(Failure) {
    try start(output: output).wait()
  }

  /// Starts it with its output in a file.
  func start(output: String) throws(Failure) -> Running {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)

    let words = unsafe ([path] + arguments).map { unsafe strdup($0) } + [nil]
    defer { unsafe words.forEach { unsafe free($0) } }
    var process: pid_t = 0
    let result = unsafe posix_spawn(&process, path, &actions, nil, words, environ)
    guard result == 0 else { throw Failure("\(path): \(unsafe String(cString: strerror(result)))") }
    return Running(program: self, process: process)
  }

  struct Running {
    let program: Program
    let process: pid_t

    /// Returns when it has ended, and fails unless with 0.
    func wait() throws(Failure) {
      var status: Int32 = 0
      while unsafe waitpid(process, &status, 0) < 0 {
        guard errno == EINTR else { throw Failure.system(program.path) }
      }
      guard status == 0 else {
        let words = [program.path] + program.arguments
        throw Failure("\(words.joined(separator: " ")): failed (wait status \(status))")
      }
    }
  }
}

/// The mount under measurement, by its command.
struct Keyhole {
  var command: String
  var mountpoint: String
  var scratch: String

  func mount(_ options: String = "keychain=vault") throws(Failure) {
    try Program(path: command, arguments: ["mount", "-o", options, mountpoint]).run()
  }

  func unmount() throws(Failure) {
    try Program(path: command, arguments: ["unmount", mountpoint]).run()
  }

  /// Resident bytes of the process that serves the mount.
  func residentMemory() throws(Failure) -> Int { try residentMemory(of: processIdentifier()) }

  func residentMemory(of process: Int) throws(Failure) -> Int {
    let kibibytes = number(after: "VmRSS:", in: try text(of: "/proc/\(process)/status"))
    guard let kibibytes else { throw Failure("/proc/\(process)/status: no VmRSS") }
    return kibibytes * 1024
  }

  /// The memory that is resident when a mount has come to rest: within five seconds it gives back what it has freed.
  func memoryAtRest() throws(Failure) -> Int {
    let process = try processIdentifier()
    sleep(8)
    return try residentMemory(of: process)
  }

  /// How often each of its threads has gone to sleep.
  func sleeps(of process: Int) throws(Failure) -> [Int: Int] {
    var sleeps: [Int: Int] = [:]
    for thread in try threads(of: process) {
      guard let status = try? text(of: "/proc/\(process)/task/\(thread)/status") else { continue }
      sleeps[thread] = number(after: "\nvoluntary_ctxt_switches:", in: status)
    }
    return sleeps
  }

  func processIdentifier() throws(Failure) -> Int {
    let output = scratch + "/status.json"
    try Program(path: command, arguments: ["status", "--json"]).run(output: output)
    guard let process = number(after: "\"pid\"", in: try text(of: output)) else {
      throw Failure("\(command) status --json: no pid")
    }
    return process
  }

  /// The first number after a word, whatever stands between them.
  private func number(after word: String, in text: String) -> Int? {
    var rest = Substring(text)
    while !rest.isEmpty, !rest.hasPrefix(word) { rest.removeFirst() }
    return Int(rest.dropFirst(word.count).drop { !$0.isNumber }.prefix { $0.isNumber })
  }
}
