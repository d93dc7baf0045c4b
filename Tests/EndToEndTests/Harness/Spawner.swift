import Dispatch
import Glibc
import Synchronization

/// Starts programs without lending them the test's handles, not even for the moment before they run.
///
/// A program begins as a copy of the process that starts it, and closes the copied descriptors when it runs. For
/// Keyhole each close of a copy is one that commits, so a `cat` that looks whether something has been committed yet
/// would commit it, in its own test and in those beside it. Here one thread with a table of descriptors of its own,
/// made before there were any handles, starts all programs.
final class Spawner: Sendable {
  static let shared = Spawner()

  private let jobs = Mutex<[@Sendable () -> Void]>([])
  private let waiting = DispatchSemaphore(value: 0)
  private let place = Mutex("")

  private init() {
    // A program that ends before it has read its input is no reason to end the tests.
    _ = signal(SIGPIPE, SIG_IGN)
    let started = DispatchSemaphore(value: 0)
    _ = Thread { [self] in
      System.separateDescriptors()
      place.withLock { $0 = "/proc/" + System.target(ofLink: "/proc/thread-self") + "/fd/" }
      started.signal()
      while true {
        waiting.wait()
        jobs.withLock { $0.removeFirst() }()
      }
    }
    started.wait()
  }

  /// Runs on the thread that has no handles.
  private func perform<Success: Sendable>(
    _ body: @escaping @Sendable () throws(Errno) -> Success
  ) throws(Errno) -> Success {
    let done = DispatchSemaphore(value: 0)
    let result = Mutex<Result<Success, Errno>?>(nil)
    let job: @Sendable () -> Void = {
      let value = Result { () throws(Errno) in try body() }
      result.withLock { $0 = value }
      done.signal()
    }
    jobs.withLock { $0.append(job) }
    waiting.signal()
    done.wait()
    guard let result = result.withLock({ $0 }) else { throw Errno(code: EIO) }
    return try result.get()
  }
}

extension Spawner {
  struct Spawned: Sendable {
    let process: pid_t
    let input: OpenFile
    let output: OpenFile
    let errors: OpenFile
  }

  /// Starts a program by its path, in a process group of its own, with pipes for its streams.
  ///
  /// `log`: a file for standard error instead.
  func spawn(
    _ arguments: [String], environment: [String], log: String?
  ) throws(Errno) -> Spawned {
    let (process, ends) = try perform { () throws(Errno) in
      let input = try Self.pipe()
      let output = try Self.pipe()
      let errors = try Self.pipe()
      let childErrors =
        if let log { try OpenFile(log, O_WRONLY | O_CREAT | O_APPEND) } else { errors.writing }
      let streams = [input.reading, output.writing, childErrors]
      let process = try Self.spawn(arguments, environment: environment, streams: streams)
      return (process, [input.writing, output.reading, errors.reading])
    }
    defer { _ = try? perform { () throws(Errno) in for end in ends { try end.close() } } }
    let place = place.withLock { $0 }
    // The thread's descriptors are not the test's; its pipes can be opened where they are shown.
    return Spawned(
      process: process, input: try OpenFile("\(place)\(ends[0].descriptor)", O_WRONLY),
      output: try OpenFile("\(place)\(ends[1].descriptor)", O_RDONLY),
      errors: try OpenFile("\(place)\(ends[2].descriptor)", O_RDONLY))
  }

  private static func pipe() throws(Errno) -> (reading: OpenFile, writing: OpenFile) {
    var ends: [Int32] = [0, 0]
    _ = try System.check { unsafe Glibc.pipe(&ends) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
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
    // The signals that this process blocks or ignores are none of the program's affair.
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
        unsafe posix_spawn(&process, "/bin/sh", &actions, &attributes, arguments, environment)
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
