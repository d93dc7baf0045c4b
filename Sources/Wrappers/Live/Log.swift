import Glibc

/// One line on standard error for what a wrapper can't throw. It names places and reasons, never a value.
package enum Log {
  package static func note(_ subject: String, _ reason: String) {
    let bytes = Array("keyhole: \(subject): \(reason)\n".utf8)
    // SAFETY: the buffer says how long it is.
    _ = unsafe bytes.withUnsafeBytes { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
