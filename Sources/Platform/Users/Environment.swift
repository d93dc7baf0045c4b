import CSystem
import Glibc

/// The variables of this process's environment.
package enum Environment {
  /// getenv(3); nil: it is not set.
  package static func value(_ name: String) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    return unsafe String(cString: value)
  }

  /// setenv(3). Not while another thread reads any.
  package static func set(_ name: String, to value: String) {
    unsafe setenv(name, value, 1)
  }

  /// clearenv(3): removes all variables. Not while another thread reads any.
  package static func clear() throws(Errno) {
    try Errno.checking { linux_clear_environment() }
  }

  /// unsetenv(3): takes a variable out, and returns what it was; nil: it was not set. Not while another thread reads any.
  package static func remove(_ name: String) -> String? {
    guard let value = value(name) else { return nil }
    _ = unsafe unsetenv(name)
    return value
  }

  /// A variable that is set to an absolute path; the XDG base directory specification has others ignored.
  package static func absolutePath(_ name: String) -> String? {
    value(name).flatMap { $0.hasPrefix("/") ? $0 : nil }
  }
}
