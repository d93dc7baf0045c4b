public import Glibc

/// Programs that a test runs. They get the test's variables.
public enum Program {
  /// Runs a program to its end, and gives what it prints. - Throws: where it fails, with the beginning of that.
  @discardableResult
  public static func run(_ words: [String], input: String = "") throws -> String {
    let (reading, writing) = try pipe()
    let (inputReading, inputWriting) = try pipe()
    defer { close(reading) }
    let process: pid_t
    do {
      defer { for end in [writing, inputReading] { close(end) } }
      process = try spawn(words, [inputReading, writing, writing])
    } catch {
      close(inputWriting)
      throw error
    }
    // Shorter than what a pipe takes at once.
    _ = unsafe input.utf8CString.withUnsafeBytes { unsafe write(inputWriting, $0.baseAddress, $0.count - 1) }
    close(inputWriting)
    let output = readAll(reading)
    let status = waitForEnd(process)
    guard status == 0 else {
      throw EtcdNodes.Failure(description: "\(words) ended with \(status): \(output.prefix(2000))")
    }
    return output
  }

  /// Starts a program that goes on; what it prints goes behind the end of a file.
  public static func start(_ words: [String], output: String) throws -> pid_t {
    let file = unsafe open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    let null = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
    defer { for end in [file, null] { close(end) } }
    return try spawn(words, [null, file, file])
  }

  /// Without waiting.
  public static func hasEnded(_ process: pid_t) -> Bool {
    var information = unsafe siginfo_t()
    let result = unsafe waitid(P_PID, id_t(process), &information, WEXITED | WNOHANG | WNOWAIT)
    return unsafe result != 0 || information.si_signo != 0
  }

  @discardableResult
  public static func waitForEnd(_ process: pid_t) -> Int32 {
    var status: Int32 = 0
    while unsafe waitpid(process, &status, 0) < 0 {
      if errno != EINTR { return -1 }
    }
    return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + (status & 0x7F)
  }

  static func pipe() throws -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [0, 0]
    guard unsafe Glibc.pipe(&ends) == 0 else { throw EtcdNodes.Failure(description: "no pipe") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
  }

  private static func readAll(_ descriptor: Int32) -> String {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
      bytes += chunk[..<count]
    }
  }

  static func spawn(_ words: [String], _ streams: [Int32]) throws -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    for (number, stream) in streams.enumerated() {
      unsafe posix_spawn_file_actions_adddup2(&actions, stream, Int32(number))
    }
    var strings = unsafe words.map { unsafe strdup($0) } + [nil]
    defer { unsafe strings.forEach { unsafe free($0) } }
    var process = pid_t()
    // SAFETY: all strings live until the call returns.
    guard unsafe posix_spawnp(&process, words[0], &actions, nil, &strings, environ) == 0 else {
      throw EtcdNodes.Failure(description: "\(words[0]) can't be started: is it installed?")
    }
    return process
  }
}
