import Glibc

/// A program that a test runs, killed when it is late.
final class Child {
  let process: pid_t
  /// Its standard output and error.
  private let output: Int32
  private var isOver = false

  init(_ arguments: [String], environment: [String] = []) throws(Failure) {
    var ends: [Int32] = [0, 0]
    guard unsafe pipe(&ends) == 0 else { throw Failure("pipe") }
    defer { close(ends[1]) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    output = ends[0]
    process = try Self.spawn(arguments, environment + Self.inherited, output: ends[1])
  }

  deinit {
    if !isOver { end() }
    close(output)
  }

  /// Kills the program where it still runs.
  func end() {
    kill(process, SIGKILL)
    _ = reap()
  }

  /// Waits for the end. - Throws: when it fails, with what it printed.
  @discardableResult
  func finish(within limit: Duration = .seconds(50)) throws -> String {
    let printed = try readAll(until: .now + limit)
    let status = reap()
    isOver = true
    guard status == 0 else { throw Failure("a program ended with status \(status): \(printed)") }
    return printed
  }

  private func readAll(until deadline: ContinuousClock.Instant) throws -> String {
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 4096)
    while true {
      var entry = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
      let left = max((deadline - .now) / .milliseconds(1), 0)
      guard unsafe poll(&entry, 1, Int32(left)) > 0 else { throw Failure("a program took too long") }
      let count = unsafe read(output, &part, part.count)
      guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
      bytes += part[..<count]
    }
  }

  private func reap() -> Int32 {
    var status: Int32 = 0
    while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
    return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
  }
}

extension Child {
  private static let inherited = ["PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C.UTF-8"]

  private static func spawn(
    _ arguments: [String], _ environment: [String], output: Int32
  ) throws(Failure) -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    for stream in Int32(1)...2 { unsafe posix_spawn_file_actions_adddup2(&actions, output, stream) }
    // Dispatch's threads block every signal, and a program inherits that.
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    unsafe sigemptyset(&none)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var words = unsafe arguments.map { unsafe strdup($0) } + [nil]
    var variables = unsafe environment.map { unsafe strdup($0) } + [nil]
    defer { unsafe (words + variables).forEach { unsafe free($0) } }
    var process: pid_t = 0
    let code = unsafe posix_spawnp(&process, arguments[0], &actions, &attributes, &words, &variables)
    guard code == 0 else { throw Failure("start \(arguments[0]): error \(code)") }
    return process
  }
}

/// Where the build put the programs under test.
enum Products {
  /// The folder of the test bundle, which on Linux is a program itself.
  static let folder: String = {
    if let folder = unsafe getenv("KEYHOLE_PRODUCTS") { return unsafe String(cString: folder) }
    var path = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = unsafe readlink("/proc/self/exe", &path, path.count)
    let bytes = path.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }
    return String(decoding: bytes.prefix(upTo: bytes.lastIndex(of: UInt8(ascii: "/")) ?? 0), as: UTF8.self)
  }()
}
