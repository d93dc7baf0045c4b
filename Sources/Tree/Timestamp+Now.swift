import Glibc
public import Model

extension Timestamp {
  /// CLOCK_REALTIME.
  public static var now: Timestamp {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec))
  }
}
