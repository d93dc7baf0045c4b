public import Platform

/// A point in time as the kernel keeps it: seconds since 1970-01-01T00:00:00Z, and nanoseconds.
public struct Timestamp: Hashable, Comparable, Sendable {
  /// Whole seconds since 1970-01-01T00:00:00Z; negative before.
  public var seconds: Int64
  /// 0 … 999,999,999.
  public var nanoseconds: UInt32

  /// `nanoseconds` is below 1,000,000,000.
  public init(seconds: Int64, nanoseconds: UInt32 = 0) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  /// The order in time.
  public static func < (left: Timestamp, right: Timestamp) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }
}

extension Timestamp {
  /// The moment of the system's clock, exactly.
  public init(_ time: SystemTime) {
    self.init(seconds: time.seconds, nanoseconds: time.nanoseconds)
  }

  /// The present moment (CLOCK_REALTIME), as finely as the kernel knows it.
  public static var now: Timestamp { Timestamp(SystemTime.now) }
}

extension SystemTime {
  /// The moment as the system's calls take it, exactly.
  public init(_ time: Timestamp) {
    self.init(seconds: time.seconds, nanoseconds: time.nanoseconds)
  }
}
