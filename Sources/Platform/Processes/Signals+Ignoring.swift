import Glibc

extension Signals {
  /// Ignores a signal while `body` runs; afterwards it has the effect that it had before.
  package static func ignoring<Value, Failure: Error>(
    _ signal: Signal, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let previous = Glibc.signal(signal.rawValue, SIG_IGN)
    defer { _ = Glibc.signal(signal.rawValue, previous) }
    return try body()
  }

  /// signal(2) SIG_IGN of SIGXFSZ: a file that would become larger than RLIMIT_FSIZE is the error EFBIG then.
  package static func ignoreFileSizeLimit() {
    _ = Glibc.signal(SIGXFSZ, SIG_IGN)
  }
}
