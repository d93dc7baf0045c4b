import Glibc

/// A limit of getrlimit(2) for this process.
package enum ResourceLimit: UInt32, Sendable {
  /// RLIMIT_CORE: the size of a core file, in bytes.
  case coreFile = 4
  /// RLIMIT_NOFILE: one more than the greatest number of a descriptor.
  case descriptors = 7
  /// RLIMIT_MEMLOCK: the memory that may be locked, in bytes.
  case lockedMemory = 8

  /// `UInt64.max`: without limit.
  package struct Values: Sendable {
    /// The limit in force.
    package var current: UInt64
    /// The most that the process may raise it to.
    package var highest: UInt64

    package init(current: UInt64, highest: UInt64) {
      (self.current, self.highest) = (current, highest)
    }
  }

  /// getrlimit(2).
  package var values: Values {
    var limit = rlimit()
    // Can't fail: the number is a known one.
    unsafe getrlimit(__rlimit_resource_t(rawValue), &limit)
    return Values(current: UInt64(limit.rlim_cur), highest: UInt64(limit.rlim_max))
  }

  /// setrlimit(2). Lowering never fails; the highest value can't be raised again.
  package func set(_ values: Values) {
    var limit = rlimit(rlim_cur: rlim_t(values.current), rlim_max: rlim_t(values.highest))
    unsafe setrlimit(__rlimit_resource_t(rawValue), &limit)
  }
}
