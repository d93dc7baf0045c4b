import CSystem
import Glibc

// Not while another thread reads any.
extension Environment {
  /// setenv(3).
  package static func set(_ name: String, to value: String) {
    unsafe setenv(name, value, 1)
  }

  /// clearenv(3): removes all of them.
  package static func clear() throws(Errno) {
    try Errno.checking { linux_clear_environment() }
  }
}
