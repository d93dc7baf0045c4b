import Glibc
import Synchronization

/// How a program ended and what it printed.
struct Output: Equatable, Sendable {
  /// The exit code; of one that a signal ended, 128 and the signal's number, as a shell says it.
  var status: Int32
  var bytes: [UInt8]
  var error: String

  init(status: Int32, bytes: [UInt8], error: String) {
    (self.status, self.bytes) = (status, bytes)
    // libpam-wrapper says so in every program where another user's tests were ended: it looks into /tmp.
    let lines = error.split(separator: "\n", omittingEmptySubsequences: false)
    self.error = lines.filter { !$0.hasPrefix("PWRAP_ERROR[") }.joined(separator: "\n")
  }

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
    // posix_spawn has a way to change the directory only where the module map does not show it.
    let command = ["/bin/sh", "-c", "cd -- \"$0\" && exec \"$@\"", directory] + arguments
    let spawned = try Spawner.shared.spawn(command, environment: environment, log: log)
    process = spawned.process
    input = spawned.input
    output = spawned.output
    errors = spawned.errors
    ending = OpenFile(descriptor: try System.processDescriptor(process))
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
