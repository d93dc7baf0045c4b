import Glibc
import Synchronization

/// How a program ended and what it printed.
struct Output: Equatable, Sendable {
  /// The exit code; of one that a signal ended, 128 and the signal's number, as a shell says it.
  var status: Int32
  var bytes: [UInt8]
  var error: String

  var text: String { String(decoding: bytes, as: UTF8.self) }
  var lines: [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
  }
}

extension Output: CustomStringConvertible {
  var description: String {
    "status \(status), output \(text.prefix(2000).debugDescription), error \(error.debugDescription)"
  }
}

/// A program that a test started: its standard streams, and its end.
final class Program: Sendable {
  let process: pid_t
  private let input: OpenFile
  private let output: OpenFile
  private let errors: OpenFile
  private let ending: OpenFile
  private let status = Mutex<Int32?>(nil)
  private let unread = Mutex<[UInt8]>([])

  /// Starts a program by its path, in a process group of its own.
  ///
  /// `log`: a file for standard error, for a program that outlives its caller's interest in pipes.
  init(_ arguments: [String], environment: [String], directory: String, log: String? = nil) throws(Errno) {
    // What a program does not read is EPIPE here, not the end of all tests; programs get the default back.
    Glibc.signal(SIGPIPE, SIG_IGN)
    let (childInput, input) = try Self.pipe(inherited: .reading)
    let (output, childOutput) = try Self.pipe(inherited: .writing)
    let (errors, errorPipe) = try Self.pipe(inherited: .writing)
    let childErrors = if let log { try OpenFile(log, O_WRONLY | O_CREAT | O_APPEND) } else { errorPipe }
    // posix_spawn has a way to change the directory only where the module map does not show it.
    let command = ["/bin/sh", "-c", "cd -- \"$0\" && exec \"$@\"", directory] + arguments
    process = try Self.spawn(
      command, environment: environment, streams: [childInput, childOutput, childErrors])
    ending = OpenFile(descriptor: try System.processDescriptor(process))
    _ = fcntl(ending.descriptor, F_SETFD, FD_CLOEXEC)
    self.input = input
    self.output = output
    self.errors = errors
  }

  /// The end of the pipe that the program gets.
  private enum End { case reading, writing }

  /// Serialises what has no O_CLOEXEC of its own with the spawns that would inherit it.
  private static let spawning = Mutex(())

  private static func pipe(inherited: End) throws(Errno) -> (reading: OpenFile, writing: OpenFile) {
    let ends = spawning.withLock { _ -> [Int32]? in
      var ends: [Int32] = [0, 0]
      guard unsafe Glibc.pipe(&ends) == 0 else { return nil }
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      return ends
    }
    guard let ends else { throw Errno.last }
    return (OpenFile(descriptor: ends[0]), OpenFile(descriptor: ends[1]))
  }

  private static func spawn(
    _ arguments: [String], environment: [String], streams: [OpenFile]
  ) throws(Errno) -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    for (number, stream) in streams.enumerated() {
      unsafe posix_spawn_file_actions_adddup2(&actions, stream.descriptor, Int32(number))
    }
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    // Dispatch's threads block every signal, and a program inherits that.
    var none = sigset_t()
    unsafe sigemptyset(&none)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    var all = sigset_t()
    unsafe sigfillset(&all)
    unsafe posix_spawnattr_setsigdefault(&attributes, &all)
    unsafe posix_spawnattr_setpgroup(&attributes, 0)
    let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP
    unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
    var process: pid_t = 0
    let code = unsafe withStrings(arguments) { arguments in
      unsafe withStrings(environment) { environment in
        spawning.withLock { _ in
          unsafe posix_spawn(&process, "/bin/sh", &actions, &attributes, arguments, environment)
        }
      }
    }
    guard code == 0 else { throw Errno(code: code) }
    return process
  }

  /// C strings with the nil that ends such a list.
  private static func withStrings<Result>(
    _ strings: [String], body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
  ) -> Result {
    var copies = unsafe strings.map { unsafe strdup($0) } + [nil]
    defer { unsafe copies.forEach { unsafe free($0) } }
    return unsafe copies.withUnsafeMutableBufferPointer { buffer in
      guard let start = buffer.baseAddress else { preconditionFailure("The list has its nil.") }
      return unsafe body(start)
    }
  }
}

// MARK: - Talking to it

extension Program {
  /// Writes to its standard input.
  func send(_ text: String) throws(Errno) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty { rest = rest.dropFirst(try input.write(Array(rest))) }
  }

  func closeInput() {
    try? input.close()
  }

  /// The next line of its standard output, without the newline; nil where there is none any more.
  func line(within duration: Duration = .seconds(20)) throws -> String? {
    let deadline = Deadline(in: duration)
    while true {
      let line = unread.withLock { unread -> String? in
        guard let end = unread.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        defer { unread.removeSubrange(...end) }
        return String(decoding: unread[..<end], as: UTF8.self)
      }
      if let line { return line }
      try Self.wait(for: [(output, POLLIN)], until: deadline, "a line of the program")
      let part = try output.read()
      if part.isEmpty { return nil }
      unread.withLock { $0 += part }
    }
  }

  /// Sends `bytes`, reads everything, and waits for the end; a program that is late is killed.
  func finish(sending bytes: [UInt8] = [], within duration: Duration = .seconds(30)) throws -> Output {
    let deadline = Deadline(in: duration)
    do {
      let (printed, errors) = try exchange(bytes, until: deadline)
      let status = try waitForEnd(until: deadline)
      return Output(status: status, bytes: printed, error: String(decoding: errors, as: UTF8.self))
    } catch {
      kill()
      throw error
    }
  }

  private func exchange(_ bytes: [UInt8], until deadline: Deadline) throws -> ([UInt8], [UInt8]) {
    var rest = bytes[...]
    var printed = unread.withLock { $0 }
    var complaints: [UInt8] = []
    var open: Set<Int32> = [output.descriptor, errors.descriptor]
    if rest.isEmpty { closeInput() }
    while !open.isEmpty {
      let waiting = [(output, POLLIN), (errors, POLLIN)].filter { open.contains($0.0.descriptor) }
      let ready = try Self.wait(
        for: waiting + (rest.isEmpty ? [] : [(input, POLLOUT)]), until: deadline, "the end of the program")
      if ready.contains(input.descriptor), !rest.isEmpty {
        // A program that does not want its input any more is not at fault.
        let count = (try? input.write(Array(rest.prefix(4096)))) ?? rest.count
        rest = rest.dropFirst(count)
        if rest.isEmpty { closeInput() }
      }
      for file in [output, errors] where ready.contains(file.descriptor) {
        let part = try file.read()
        if part.isEmpty { open.remove(file.descriptor) }
        if file === output { printed += part } else { complaints += part }
      }
    }
    return (printed, complaints)
  }

  /// The descriptors that are ready.
  @discardableResult
  static func wait(
    for files: [(OpenFile, Int32)], until deadline: Deadline, _ what: String
  ) throws -> Set<Int32> {
    var entries = files.map { pollfd(fd: $0.0.descriptor, events: Int16($0.1), revents: 0) }
    let count = try System.check { unsafe poll(&entries, nfds_t(entries.count), deadline.milliseconds) }
    if count == 0 { throw TimedOut(what: what) }
    return Set(entries.filter { $0.revents != 0 }.map(\.fd))
  }
}

// MARK: - Its end

extension Program {
  /// Ready to be read when the program has ended.
  var end: OpenFile { ending }

  var hasEnded: Bool {
    status.withLock { status in
      if status == nil { status = Self.reap(process, WNOHANG) }
      return status != nil
    }
  }

  @discardableResult
  func waitForEnd(until deadline: Deadline) throws -> Int32 {
    try Self.wait(for: [(ending, POLLIN)], until: deadline, "the end of process \(process)")
    return status.withLock { status in
      let result = status ?? Self.reap(process, 0) ?? -1
      status = result
      return result
    }
  }

  /// Ends the program and what it started, and nothing else: the group is its own.
  func kill(_ signal: Int32 = SIGKILL) {
    status.withLock { status in
      // After it was reaped the number may be another's.
      guard status == nil else { return }
      _ = Glibc.kill(-process, signal)
    }
  }

  /// Sends a signal to the program alone.
  func signal(_ signal: Int32) {
    status.withLock { status in
      guard status == nil else { return }
      _ = Glibc.kill(process, signal)
    }
  }

  private static func reap(_ process: pid_t, _ flags: Int32) -> Int32? {
    var status: Int32 = 0
    guard unsafe waitpid(process, &status, flags) == process else { return nil }
    return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
  }
}
