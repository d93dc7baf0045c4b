import CSystem
import Glibc

/// Signals that this process gets: signal(7).
package enum Signals {
  package typealias Signal = ProcessNumber.Signal

  /// pthread_sigmask(3) SIG_BLOCK: they stay pending on this thread, and on those that it starts from now on.
  package static func block(_ signals: [Signal]) {
    var set = set(of: signals)
    unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  /// signal(2) SIG_IGN, for the whole process.
  package static func ignore(_ signals: [Signal]) {
    for signal in signals { Glibc.signal(signal.rawValue, SIG_IGN) }
  }

  /// Whether the process ignores a signal.
  package static func ignores(_ signal: Signal) -> Bool {
    var action = sigaction()
    guard unsafe sigaction(signal.rawValue, nil, &action) == 0 else { return false }
    // SAFETY: SIG_IGN is the number 1 in the place of an address; functions can't be compared.
    return unsafe unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
  }

  /// Ignores a signal while `body` runs; afterwards it has the effect that it had before.
  package static func ignoring<Value, Failure: Error>(
    _ signal: Signal, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let previous = Glibc.signal(signal.rawValue, SIG_IGN)
    defer { _ = Glibc.signal(signal.rawValue, previous) }
    return try body()
  }

  /// Runs `body`, which writes to a pipe: where its reader is gone it gets EPIPE, and this thread no SIGPIPE, whatever the
  /// process does with that.
  package static func withoutBrokenPipe(_ body: () -> Void) {
    var pending = sigset_t()
    unsafe sigpending(&pending)
    let wasPending = unsafe sigismember(&pending, SIGPIPE) == 1
    var (set, previous) = (set(of: [.pipe]), sigset_t())
    unsafe pthread_sigmask(SIG_BLOCK, &set, &previous)
    body()
    var none = timespec()
    // SAFETY: both are alive during the call, which does not wait. It takes the signal that `body` has raised, if it has.
    if !wasPending { while unsafe sigtimedwait(&set, nil, &none) == -1, errno == EINTR {} }
    unsafe pthread_sigmask(SIG_SETMASK, &previous, nil)
  }

  /// Ends this process by a signal, so that its parent sees that.
  package static func end(by signal: Signal) -> Never {
    var set = set(of: [signal])
    Glibc.signal(signal.rawValue, SIG_DFL)
    unsafe pthread_sigmask(SIG_UNBLOCK, &set, nil)
    raise(signal.rawValue)
    _exit(128 &+ signal.rawValue)
  }

  fileprivate static func set(of signals: [Signal]) -> sigset_t {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    for signal in signals { unsafe sigaddset(&set, signal.rawValue) }
    return set
  }
}

/// signalfd(2): blocked signals, read as they come. Closed with its last reference.
package final class SignalDescriptor: Sendable {
  private let descriptor: Descriptor

  /// Readable while one of the signals is pending. For `Poll` and for Dispatch.
  package var number: Int32 { descriptor.number }

  /// - Throws: EMFILE, ENFILE.
  package init(_ signals: [Signals.Signal]) throws(Errno) {
    var set = Signals.set(of: signals)
    // SAFETY: the set is alive during the call.
    descriptor = Descriptor(owning: try Errno.retrying { unsafe linux_signal_descriptor(&set) })
  }

  /// Takes the next pending one; nil: there is none.
  package func next() -> Signals.Signal? {
    Signals.Signal(rawValue: linux_next_signal(number))
  }
}
