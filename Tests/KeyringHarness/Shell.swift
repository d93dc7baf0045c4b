import Glibc

/// Runs a test's programs in a shell.
enum Shell {
  /// Runs a script to its end and gives what it prints; `arguments` are its `$0`, `$1`…
  static func run(
    _ script: String, _ arguments: [String], _ environment: [String], input: [UInt8] = []
  ) throws -> [UInt8] {
    let (reading, writing) = try pipe()
    let (inputReading, inputWriting) = try pipe()
    let process = try spawn(script, arguments, environment, [inputReading, writing, writing])
    for end in [writing, inputReading] { close(end) }
    // Nothing that is sent here is longer than a pipe takes at once, or else it is read while it is written.
    send(input, to: inputWriting)
    close(inputWriting)
    let output = readAll(reading)
    close(reading)
    let status = waitForEnd(process)
    guard status == 0 else {
      throw PrivateBus.Failure(
        description: "\(script) ended with \(status): \(String(decoding: output.prefix(2000), as: UTF8.self))"
      )
    }
    return output
  }

  /// Starts a script that goes on.
  static func start(
    _ script: String, _ arguments: [String], _ environment: [String], waitingForALine: Bool = false
  ) throws -> pid_t {
    let (reading, writing) = try pipe()
    let null = unsafe open("/dev/null", O_RDWR | O_CLOEXEC)
    defer { for end in [reading, null] { close(end) } }
    let process = try spawn(script, arguments, environment, [null, writing, null])
    close(writing)
    guard waitingForALine else { return process }
    var byte: UInt8 = 0
    while byte != 0x0A {
      guard unsafe read(reading, &byte, 1) == 1 else {
        throw PrivateBus.Failure(description: "\(script) ended at once")
      }
    }
    return process
  }

  @discardableResult static func waitForEnd(_ process: pid_t) -> Int32 {
    var status: Int32 = 0
    while unsafe waitpid(process, &status, 0) < 0 {
      guard errno == EINTR else {
        waitForStranger(process)
        return -1
      }
    }
    return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + (status & 0x7F)
  }

  /// One that is no child of this process.
  private static func waitForStranger(_ process: pid_t) {
    // pidfd_open(2), which Glibc's module does not show.
    while kill(process, 0) == 0, !isZombie(process) { sched_yield() }
  }

  private static func isZombie(_ process: pid_t) -> Bool {
    let file = unsafe open("/proc/\(process)/stat", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return true }
    defer { close(file) }
    let text = String(decoding: readAll(file), as: UTF8.self)
    return text[(text.lastIndex(of: ")") ?? text.startIndex)...].dropFirst(2).first == "Z"
  }

  private static func pipe() throws -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [0, 0]
    guard unsafe Glibc.pipe(&ends) == 0 else { throw PrivateBus.Failure(description: "no pipe") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
  }

  private static func send(_ bytes: [UInt8], to descriptor: Int32) {
    signal(SIGPIPE, SIG_IGN)
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  private static func readAll(_ descriptor: Int32) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 else { return bytes }
      bytes += chunk[..<count]
    }
  }

  private static func spawn(
    _ script: String, _ arguments: [String], _ environment: [String], _ streams: [Int32]
  ) throws -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    for (number, stream) in streams.enumerated() {
      unsafe posix_spawn_file_actions_adddup2(&actions, stream, Int32(number))
    }
    var words = unsafe (["/bin/sh", "-c", script] + arguments).map { unsafe strdup($0) } + [nil]
    var settings = unsafe environment.map { unsafe strdup($0) } + [nil]
    defer { unsafe (words + settings).forEach { unsafe free($0) } }
    var process = pid_t()
    // SAFETY: all strings live until the call returns.
    guard unsafe posix_spawn(&process, "/bin/sh", &actions, nil, &words, &settings) == 0 else {
      throw PrivateBus.Failure(description: "no shell")
    }
    return process
  }
}
