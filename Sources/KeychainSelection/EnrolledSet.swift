import CSystem
import Glibc
import Model

/// The fingers that are enrolled for the user at this moment, as fprintd tells.
package enum EnrolledSet {
  /// fprintd is started by the bus when it is asked.
  private static let patience = Duration.seconds(5)

  /// nil: nothing tells, or no finger is enrolled.
  package static func digest() -> String? {
    guard let entry = unsafe getpwuid(getuid()), let name = unsafe entry.pointee.pw_name else { return nil }
    let words = ["fprintd-list", unsafe String(cString: name)]
    guard let program = Program(words), let list = program.output(within: patience) else { return nil }
    return digest(ofList: list)
  }

  /// A digest of what fprintd-list(1) prints: lines such as `Fingerprints for user anna on Mock (press):`, and below
  /// each ` - #0: right-index-finger`. nil: no finger is enrolled.
  static func digest(ofList text: String) -> String? {
    var (device, fingers) = (Substring(), [String]())
    for line in text.split(separator: "\n") {
      if let finger = line.wholeMatch(of: /\s*- #\d+: (.+)/) {
        fingers.append("\(device)\n\(finger.1)")
      } else if line.hasPrefix("Fingerprints for user") {
        device = line
      }
    }
    guard !fingers.isEmpty else { return nil }
    let digest = SHA256Hasher.hash(Array(fingers.sorted().joined(separator: "\n").utf8))
    return digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

/// A program that says something and ends. It is killed where it has not when it is dropped.
private final class Program {
  private static let longestOutput = 64 * 1024
  private let process: pid_t
  private let end: Int32

  /// nil: it can't be started.
  init?(_ words: [String]) {
    var ends: [Int32] = [-1, -1]
    guard unsafe linux_pipe(&ends) == 0 else { return nil }
    defer { close(ends[1]) }
    guard let process = Self.start(words, ends[1]) else {
      close(ends[0])
      return nil
    }
    (self.process, end) = (process, ends[0])
  }

  deinit {
    kill(process, SIGKILL)
    // A program that uses this library may wait for all its children itself: then it is gone already.
    while waitpid(process, nil, 0) < 0, errno == EINTR {}
    close(end)
  }

  /// All that it prints until it closes its output; nil: that took too long.
  func output(within duration: Duration) -> String? {
    let deadline = ContinuousClock.now + duration
    var text: [UInt8] = []
    while text.count < Self.longestOutput, let chunk = read(before: deadline) {
      if chunk.isEmpty { return String(decoding: text, as: UTF8.self) }
      text += chunk
    }
    return nil
  }

  /// Empty: there is no more. nil: it failed, or took too long.
  private func read(before deadline: ContinuousClock.Instant) -> ArraySlice<UInt8>? {
    let rest = (deadline - .now) / Duration.milliseconds(1)
    var entry = pollfd(fd: end, events: Int16(POLLIN), revents: 0)
    let isThere = unsafe poll(&entry, 1, Int32(max(0, rest)))
    if isThere < 0, errno == EINTR { return read(before: deadline) }
    guard isThere > 0 else { return nil }
    var chunk = [UInt8](repeating: 0, count: 4096)
    let count = unsafe Glibc.read(end, &chunk, chunk.count)
    return count < 0 ? nil : chunk[..<count]
  }

  private static func start(_ words: [String], _ output: Int32) -> pid_t? {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    unsafe posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    var pointers = unsafe words.map { unsafe strdup($0) } + [nil]
    defer { unsafe pointers.forEach { unsafe free($0) } }
    var process = pid_t()
    // SAFETY: all strings live until the call returns.
    guard unsafe posix_spawnp(&process, words[0], &actions, nil, &pointers, environ) == 0 else { return nil }
    return process
  }
}
