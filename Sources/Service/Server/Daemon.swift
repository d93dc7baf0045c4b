import CSystem
import Glibc
import Model
import Platform

/// The process in the background: how it is started, and how it tells that it is ready.
///
/// It is executed, not only forked: after a fork a process with threads may do next to nothing.
package enum Daemon {
  /// Starts this program with `arguments` in the background and returns when it is ready.
  ///
  /// - Throws: `Failure` with what it says.
  package static func start(_ arguments: [String]) throws {
    var ends: [Int32] = [0, 0]
    guard unsafe linux_pipe(&ends) == 0 else { throw Failure(nil, systemMessage(errno)) }
    defer { close(ends[0]) }
    // The options go before the `--` that the mount point stands behind.
    let all = ["keyhole", arguments[0], "--ready-descriptor", "3"] + arguments.dropFirst()
    let error = spawn(all, readyDescriptor: ends[1])
    close(ends[1])
    guard error == 0 else { throw Failure(nil, "it can't be started: \(systemMessage(error))") }
    try wait(for: ends[0])
  }

  /// Runs `body` and lets who waits know how it went.
  package static func reporting(
    to descriptor: Int32?, _ body: (_ ready: @escaping @Sendable () -> Void) throws -> Void
  ) throws {
    guard let descriptor else { return try body({}) }
    // Started through /proc/self/exe, it would be called `exe`.
    _ = unsafe linux_set_name("keyhole")
    do {
      try body {
        report("ready", to: descriptor)
        detach()
      }
    } catch let failure as Failure {
      report(failure.subject.map { "\($0)\0\(failure.reason)" } ?? failure.reason, to: descriptor)
      Glibc.exit(1)
    }
  }

  private static func report(_ text: String, to descriptor: Int32) {
    let bytes = Array(text.utf8)
    // SAFETY: the buffer says how long it is. A pipe takes this much at once.
    _ = unsafe bytes.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
    close(descriptor)
  }

  private static func wait(for descriptor: Int32) throws {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      // SAFETY: the chunk says how long it is.
      let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      bytes += chunk[..<count]
    }
    let answer = String(decoding: bytes, as: UTF8.self)
    guard answer != "ready" else { return }
    guard !answer.isEmpty else { throw Failure(nil, "the process in the background ended at once") }
    let parts = answer.split(separator: "\0", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    throw parts.count == 2 ? Failure(parts[0], parts[1]) : Failure(nil, answer)
  }

  /// Nothing of the process that started it is kept: neither its terminal nor its folder.
  private static func detach() {
    unsafe chdir("/")
    // SAFETY: a variadic call without its variable part.
    let null = unsafe open("/dev/null", O_RDWR | O_CLOEXEC)
    for standard in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] { dup2(null, standard) }
    close(null)
  }

  private static func spawn(_ arguments: [String], readyDescriptor: Int32) -> Int32 {
    var actions = unsafe posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    unsafe posix_spawn_file_actions_init(&actions)
    unsafe posix_spawnattr_init(&attributes)
    defer {
      unsafe posix_spawn_file_actions_destroy(&actions)
      unsafe posix_spawnattr_destroy(&attributes)
    }
    unsafe posix_spawn_file_actions_adddup2(&actions, readyDescriptor, 3)
    // POSIX_SPAWN_SETSID: a closed terminal must not end it.
    unsafe posix_spawnattr_setflags(&attributes, 0x80)
    var pointers = unsafe arguments.map { unsafe strdup($0) } + [nil]
    defer { unsafe pointers.forEach { unsafe free($0) } }
    var process = pid_t()
    // SAFETY: all strings live until the call returns.
    return unsafe posix_spawn(&process, "/proc/self/exe", &actions, &attributes, &pointers, environ)
  }
}
