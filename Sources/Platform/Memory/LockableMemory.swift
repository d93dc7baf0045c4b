import CSystem
import Glibc

/// The memory that the system lets this process keep from swap.
package enum LockableMemory {
  /// RLIMIT_MEMLOCK of getrlimit(2), in bytes; `UInt64.max`: without limit.
  package struct Limit: Sendable {
    /// The limit in force.
    package var current: UInt64
    /// The most that the process may raise it to.
    package var highest: UInt64

    package init(current: UInt64, highest: UInt64) {
      (self.current, self.highest) = (current, highest)
    }
  }

  package static var limit: Limit {
    var limit = rlimit()
    unsafe getrlimit(__rlimit_resource_t(8 /* RLIMIT_MEMLOCK, a macro */), &limit)
    return Limit(current: UInt64(limit.rlim_cur), highest: UInt64(limit.rlim_max))
  }

  /// Whether the kernel has memfd_secret(2), whose memory no other process, core file or hibernation gets.
  package static var hasSecretMemory: Bool {
    let descriptor = linux_memfd_secret()
    guard descriptor >= 0 else { return false }
    close(descriptor)
    return true
  }
}
