import CSystem
import Glibc

/// This process.
package enum CurrentProcess {
  /// Gives memory that was freed back to the system, after something large was read: malloc_trim(3).
  package static func returnUnusedMemory() { linux_return_unused_memory() }

  /// Takes code and constants of the program and its libraries out of this process's resident memory, for a process that
  /// is about to rest: madvise(2) MADV_DONTNEED. What is needed again comes back from the page cache.
  package static func forgetCode() { linux_forget_code() }

  package static var number: Int32 { getpid() }
  package static var parent: Int32 { getppid() }

  /// The words of the command line behind the program's name; nil: a word that is not UTF-8.
  package static var arguments: [String?] {
    // SAFETY: the C runtime gives `argc` pointers to strings that end with NUL and live as long as the process.
    let words = unsafe UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc))
    return unsafe words.dropFirst().map { word in
      unsafe word.flatMap { unsafe String(validatingCString: $0) }
    }
  }

  /// The last part of the name that the program was called by, which the caller chooses; empty: it has none.
  package static var programName: String {
    // SAFETY: as above; without any word the first pointer is null.
    guard let name = unsafe CommandLine.unsafeArgv[0] else { return "" }
    return unsafe String(cString: name).split(separator: "/").last.map(String.init) ?? ""
  }

  /// The same words, byte for byte.
  package static var argumentBytes: [[UInt8]] {
    // SAFETY: as above.
    let words = unsafe UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc))
    return unsafe words.dropFirst().compactMap { word in
      unsafe word.map { unsafe Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    }
  }

  /// gethostname(2); empty where it can't be had.
  package static var hostName: [UInt8] {
    var name = [CChar](repeating: 0, count: 256)
    // SAFETY: the last byte stays 0.
    guard unsafe gethostname(&name, name.count - 1) == 0 else { return [] }
    return name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
  }

  /// atexit(3): calls a function when the process ends by exit(3) or by a return of main, on the thread that ends it.
  package static func atExit(_ body: @escaping @convention(c) () -> Void) {
    atexit(body)
  }

  /// exit(3): what `atExit` got is called.
  package static func exit(_ status: Int32) -> Never { Glibc.exit(status) }

  /// prctl(2) PR_SET_NAME: what ps(1) shows, up to 15 bytes. One that is started through /proc/self/exe is called `exe`.
  package static func setName(_ name: String) {
    // SAFETY: the string is alive during the call.
    _ = unsafe linux_set_name(name)
  }

  /// chdir(2) to `/`, so that the process keeps no file system in use.
  package static func leaveFolder() {
    // SAFETY: the string is alive during the call.
    _ = unsafe chdir("/")
  }

  /// dup2(2): the three standard streams become /dev/null.
  package static func leaveStandardStreams() {
    guard let null = try? Descriptor("/dev/null", .readingAndWriting) else { return }
    for stream in [StandardStream.input, .output, .errors] { dup2(null.number, stream.number) }
    // One of the three was closed before, and is this one now.
    if null.number <= StandardStream.errors.number { _ = null.release() }
  }

  /// prctl(2) PR_SET_CHILD_SUBREAPER: a process that descends from this one becomes its child when its parent ends.
  package static func adoptOrphans() throws(Errno) {
    try Errno.retrying { linux_adopt_orphans() }
  }

  /// kill(2) with SIGKILL of each process of this one's group, itself too.
  package static func killGroup() {
    kill(0, SIGKILL)
  }

  /// close_range(2): closes every descriptor from a number on, whatever uses it.
  package static func closeDescriptors(from first: UInt32) {
    _ = linux_close_from(first)
  }
}

/// Other processes by their numbers, which the kernel gives again: see `ProcessHandle`.
package enum ProcessNumber {
  /// kill(2) with signal 0: whether a process has the number, which may belong to another user.
  package static func isTaken(_ number: Int32) -> Bool {
    number > 0 && (kill(number, 0) == 0 || Errno.current != .ESRCH)
  }

  /// kill(2) with signal 0: whether a process has the number and this user may send it signals.
  package static func takesSignals(_ number: Int32) -> Bool { number > 0 && kill(number, 0) == 0 }

  /// kill(2): a process that has ended gets nothing.
  package static func send(_ signal: Signal, to number: Int32) {
    if number > 0 { kill(number, signal.rawValue) }
  }

  /// kill(2) of each process of the group that this process leads.
  package static func send(_ signal: Signal, toGroup number: Int32) {
    if number > 1 { kill(-number, signal.rawValue) }
  }

  /// waitid(2) with WNOWAIT: whether a signal ended a child, which stays to be waited for. False also where it has not ended,
  /// or is no child.
  package static func wasEndedBySignal(_ child: Int32) -> Bool {
    var information = unsafe siginfo_t()
    guard unsafe waitid(P_PID, id_t(bitPattern: child), &information, WEXITED | WNOWAIT | WNOHANG) == 0 else {
      return false
    }
    // Where no child has ended, the number of the signal is 0.
    return unsafe information.si_signo == SIGCHLD && information.si_code != 1 /* CLD_EXITED */
  }

  /// Signals that end a process where it does nothing about them (signal(7)).
  package enum Signal: Int32, Sendable {
    case hangUp = 1
    case interrupt = 2
    case quit = 3
    case kill = 9
    case user1 = 10
    case user2 = 12
    case pipe = 13
    case alarm = 14
    case terminate = 15
    /// A file that would become larger than RLIMIT_FSIZE; where it is ignored, that is the error EFBIG.
    case fileSizeLimit = 25
  }
}
