import CSystem
import Glibc

/// A program that was started and is read from.
///
/// It gets a group of its own, so that all of it can be ended, and standard streams as asked; nothing else.
package final class Child {
  package let process: Int32
  /// Its standard output, to be read.
  package let output: Int32
  /// Its standard input, to be written; -1: it has ours.
  package private(set) var input: Int32
  private let hasOwnGroup: Bool
  private var status: Int32?

  package enum Input {
    case shared
    /// In a session of its own, so that all that it starts can be ended with it.
    case piped
    case pipedInOurGroup
    /// /dev/null.
    case nothing
  }

  package enum Errors {
    case shared
    /// They go to /dev/null.
    case discarded
  }

  package init(
    _ words: [String], input kind: Input = .shared, errors: Errors = .shared, environment: [String]? = nil
  ) throws(SpawnFailure) {
    let (outputEnd, theirOutput) = try Self.pipe(for: words[0])
    let isPiped = kind == .piped || kind == .pipedInOurGroup
    let (theirInput, inputEnd): (Int32, Int32)
    do throws(SpawnFailure) {
      (theirInput, inputEnd) = isPiped ? try Self.pipe(for: words[0]) : (-1, -1)
    } catch {
      for end in [outputEnd, theirOutput] { close(end) }
      throw error
    }
    (output, input, hasOwnGroup) = (outputEnd, inputEnd, kind == .piped)
    var actions = unsafe posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    unsafe posix_spawn_file_actions_init(&actions)
    unsafe posix_spawnattr_init(&attributes)
    defer {
      unsafe posix_spawn_file_actions_destroy(&actions)
      unsafe posix_spawnattr_destroy(&attributes)
      for end in [theirOutput, theirInput] where end >= 0 { close(end) }
    }
    unsafe posix_spawn_file_actions_adddup2(&actions, theirOutput, STDOUT_FILENO)
    if theirInput >= 0 { unsafe posix_spawn_file_actions_adddup2(&actions, theirInput, STDIN_FILENO) }
    if kind == .nothing {
      unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    }
    if errors == .discarded {
      unsafe posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    }
    Self.prepare(&attributes, ownGroup: kind == .piped)
    var pointers = unsafe words.map { unsafe strdup($0) } + [nil]
    var variables = unsafe (environment ?? []).map { unsafe strdup($0) } + [nil]
    defer { unsafe (pointers + variables).forEach { unsafe free($0) } }
    var process = pid_t()
    // SAFETY: all strings live until the call returns.
    let error =
      environment == nil
      ? unsafe posix_spawnp(&process, words[0], &actions, &attributes, &pointers, environ)
      : unsafe posix_spawnp(&process, words[0], &actions, &attributes, &pointers, &variables)
    self.process = process
    guard error == 0 else {
      for end in [outputEnd, inputEnd] where end >= 0 { close(end) }
      throw SpawnFailure(program: words[0], errno: error)
    }
  }

  /// Runs a program on our own terminal, with variables added to ours, and returns its exit status.
  ///
  /// `onStart` gets the number of its process.
  package static func run(
    _ words: [String], variables: [String], onStart: (Int32) -> Void = { _ in }
  ) throws(SpawnFailure) -> Int32 {
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    prepare(&attributes, ownGroup: false)
    // env(1) adds them: so ours need not be copied.
    let all = variables.isEmpty ? words : ["/usr/bin/env"] + variables + words
    var pointers = unsafe all.map { unsafe strdup($0) } + [nil]
    defer { unsafe pointers.forEach { unsafe free($0) } }
    var process = pid_t()
    // SAFETY: all strings live until the call returns.
    let error = unsafe posix_spawn(&process, all[0], nil, &attributes, &pointers, environ)
    guard error == 0 else { throw SpawnFailure(program: all[0], errno: error) }
    onStart(process)
    return status(of: process)
  }

  private static func status(of process: pid_t) -> Int32 {
    var raw: Int32 = 0
    while unsafe waitpid(process, &raw, 0) < 0, errno == EINTR {}
    return raw & 0x7F == 0 ? (raw >> 8) & 0xFF : 128 + (raw & 0x7F)
  }

  /// Its exit status; 128 and more: a signal ended it.
  @discardableResult
  package func wait() -> Int32 {
    if let status { return status }
    let result = Self.status(of: process)
    status = result
    return result
  }

  /// Ends it, with all it started if it has a group of its own, and closes the pipes.
  package func end() {
    if status == nil { kill(hasOwnGroup ? -process : process, SIGKILL) }
    wait()
    for end in [output, input] where end >= 0 { close(end) }
  }

  /// Asks it to end, and ends it where it does not within three seconds.
  package func terminate() {
    if status == nil {
      kill(process, SIGTERM)
      _ = waitForEnd(seconds: 3)
    }
    end()
  }

  package func closeInput() {
    if input >= 0 { close(input) }
    input = -1
  }

  /// False: nothing came within so many seconds.
  package func waitForOutput(seconds: Int) -> Bool {
    let deadline = ContinuousClock.now + .seconds(Int32(clamping: seconds))
    return (try? Poll.wait(for: [Poll.Entry(output)], until: deadline)) == [true]
  }

  /// All that it prints until it closes its output; nil: that is not so by then, or it is more than `limit` bytes.
  package func readOutput(limit: Int, until deadline: ContinuousClock.Instant) -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count <= limit {
      guard (try? Poll.wait(for: output, until: deadline)) == true,
        let chunk = try? Files.readSome(output)
      else { return nil }
      if chunk.isEmpty { return bytes }
      bytes += chunk
    }
    return nil
  }

  /// False: it has not ended within so many seconds.
  package func waitForEnd(seconds: Int) -> Bool {
    ProcessHandle(process: process)?.waitForEnd(seconds: seconds) ?? false
  }

  private static func pipe(for program: String) throws(SpawnFailure) -> (Int32, Int32) {
    var ends: [Int32] = [0, 0]
    guard unsafe linux_pipe(&ends) == 0 else { throw SpawnFailure(program: program, errno: errno) }
    return (ends[0], ends[1])
  }

  /// Signals that this process blocks or ignores are none of the program's affair.
  private static func prepare(_ attributes: inout posix_spawnattr_t, ownGroup: Bool) {
    var none = sigset_t()
    unsafe sigemptyset(&none)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    var all = sigset_t()
    unsafe sigfillset(&all)
    unsafe posix_spawnattr_setsigdefault(&attributes, &all)
    // POSIX_SPAWN_SETSID where it gets a group of its own: it must not take signals of the terminal.
    let session: Int16 = ownGroup ? 0x80 : 0
    unsafe posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) | session)
  }
}
