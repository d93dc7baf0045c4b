import CSystem
import Glibc

/// Signals of this process by their numbers, as they come, whichever thread gets them: sigaction(2). Those that the process
/// ignores stay ignored, but for SIGCHLD. One for a process, until that ends.
package final class SignalQueue: Sendable {
  /// A signal that this process got.
  package struct Received: Sendable {
    package let number: Int32
    /// The kernel sent it (SI_KERNEL): a terminal does, to all of its foreground group.
    package let isFromKernel: Bool
  }

  private let pipe: PipeEnds

  /// Readable while signals wait. For `Poll`.
  package var number: Int32 { pipe.reader.number }

  /// - Throws: EMFILE, ENFILE.
  package init(_ numbers: [Int32]) throws(Errno) {
    pipe = try PipeEnds()
    try pipe.reader.setNonBlocking()
    try pipe.writer.setNonBlocking()
    // SAFETY: the array says how long it is. The pipe is open as long as the process handles signals.
    unsafe linux_note_signals(numbers, numbers.count, pipe.writer.number)
  }

  /// Lets this thread use a terminal in the background: SIGTTIN and SIGTTOU are blocked.
  package static func useTerminalInBackground() {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    for number in [SIGTTIN, SIGTTOU] { unsafe sigaddset(&set, number) }
    unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  /// Takes the next one; nil: there is none.
  package func next() -> Received? {
    // Two bytes are written at once, and so are there together.
    guard let bytes = try? pipe.reader.read(2), bytes.count == 2 else { return nil }
    return Received(number: Int32(truncatingIfNeeded: bytes[0]), isFromKernel: bytes[1] == 1)
  }
}

extension SignalQueue {
  /// kill(2) of one process.
  package static func send(_ signal: Int32, to process: Int32) {
    if process > 0 { kill(process, signal) }
  }

  /// Stops this process and its group as Ctrl-Z does, also where SIGTSTP comes as a value. Returns when the process is
  /// continued; at once where the group is orphaned, and so has no shell that would continue it. On the main thread only.
  package static func stopGroup() { linux_stop_group() }

  /// kill(2) of the other processes of this one's group.
  package static func sendToOthers(_ signal: Int32) { linux_signal_others(signal) }

  /// The number of a signal by its name, as kill(1) takes it: `HUP`, `SIGHUP` or `1`. nil: there is none that a program can
  /// handle.
  package static func number(named name: String) -> Int32? {
    if let number = Int32(name) {
      return number > 0 && number < 32 && number != SIGKILL && number != SIGSTOP ? number : nil
    }
    let upper = name.uppercased()
    return names[upper.hasPrefix("SIG") ? String(upper.dropFirst(3)) : upper]
  }

  private static let names: [String: Int32] = [
    "HUP": 1, "INT": 2, "QUIT": 3, "USR1": 10, "USR2": 12, "ALRM": 14, "TERM": 15, "CONT": 18, "URG": 23,
    "WINCH": 28, "IO": 29, "PWR": 30,
  ]
}

extension Signals {
  /// The signals that this thread blocks: bit N - 1 for the signal N.
  package static var blocked: UInt64 {
    var set = sigset_t()
    unsafe pthread_sigmask(SIG_BLOCK, nil, &set)
    var bits: UInt64 = 0
    for number in Int32(1)..<65 where unsafe sigismember(&set, number) == 1 {
      bits |= 1 << UInt64(clamping: number &- 1)
    }
    return bits
  }

  /// Ends this process by the signal of a number, so that its parent sees that; by the exit code 128 and the number where the
  /// signal does not end it.
  package static func end(byNumber number: Int32) -> Never {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    unsafe sigaddset(&set, number)
    Glibc.signal(number, SIG_DFL)
    unsafe pthread_sigmask(SIG_UNBLOCK, &set, nil)
    raise(number)
    _exit(128 &+ number)
  }
}
