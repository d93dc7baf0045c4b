import Glibc

/// A moment of CLOCK_REALTIME, as stat(2) and clock_gettime(2) have it.
public struct SystemTime: Hashable, Sendable {
  /// Since 1970-01-01T00:00:00Z; negative before.
  public var seconds: Int64
  /// Less than 1,000,000,000; later within the second also before 1970.
  public var nanoseconds: UInt32

  /// `nanoseconds` is below 1,000,000,000.
  public init(seconds: Int64, nanoseconds: UInt32 = 0) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  /// The present moment, as finely as the kernel knows it.
  public static var now: SystemTime { read(CLOCK_REALTIME) }

  /// Since the system was started, time in suspend included (CLOCK_BOOTTIME): setting the clock does not change it.
  package static var sinceBoot: SystemTime { read(CLOCK_BOOTTIME) }

  /// Since some moment, time in suspend not included (CLOCK_MONOTONIC).
  package static var monotonic: SystemTime { read(CLOCK_MONOTONIC) }

  /// `monotonic` as of the kernel's last tick, up to 4 ms ago: it takes no system call.
  package static var coarse: SystemTime { read(CLOCK_MONOTONIC_COARSE) }

  private static func read(_ clock: clockid_t) -> SystemTime {
    var time = Glibc.timespec()
    unsafe clock_gettime(clock, &time)
    return SystemTime(time)
  }
}

extension SystemTime: Comparable {
  /// The order in time.
  public static func < (left: SystemTime, right: SystemTime) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }
}

extension SystemTime {
  init(_ time: Glibc.timespec) {
    self.init(seconds: Int64(time.tv_sec), nanoseconds: UInt32(clamping: time.tv_nsec))
  }

  var timespec: Glibc.timespec {
    Glibc.timespec(tv_sec: Int(clamping: seconds), tv_nsec: Int(nanoseconds))
  }
}
