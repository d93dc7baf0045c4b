import Glibc

/// This process.
package enum CurrentProcess {
  package static var number: Int32 { getpid() }
  package static var parent: Int32 { getppid() }

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

  /// Signals that end a process (signal(7)).
  package enum Signal: Int32, Sendable {
    case kill = 9
    case alarm = 14
    case terminate = 15
  }
}
