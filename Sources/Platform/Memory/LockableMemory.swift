import CSystem
import Glibc

/// The memory that the system keeps from swap.
package enum LockableMemory {
  /// Whether the kernel has memfd_secret(2), whose memory no other process, core file or hibernation gets.
  package static var hasSecretMemory: Bool {
    let descriptor = linux_memfd_secret()
    guard descriptor >= 0 else { return false }
    close(descriptor)
    return true
  }
}
