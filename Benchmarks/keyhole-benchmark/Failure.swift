import Glibc

/// Why a benchmark can't go on, said for people.
struct Failure: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) {
    self.description = description
  }

  /// The error of a system call for `what`.
  static func system(_ what: String) -> Failure {
    Failure("\(what): \(unsafe String(cString: strerror(errno)))")
  }
}

/// Passes on the result of a system call, or what went wrong on `what`.
@discardableResult
func checked<Result: SignedInteger>(
  _ result: Result, _ what: @autoclosure () -> String
) throws(Failure) -> Result {
  guard result >= 0 else { throw Failure.system(what()) }
  return result
}
