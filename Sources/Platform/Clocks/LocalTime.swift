import Glibc

/// A moment in the time zone of this process: localtime_r(3), which reads TZ and /etc/localtime.
package struct LocalTime {
  package let year: Int
  package let month: Int
  package let day: Int
  package let hour: Int
  package let minute: Int

  /// nil: the year is beyond what the C library counts.
  package init?(secondsSince1970 seconds: Int64) {
    var time = time_t(seconds)
    var parts = unsafe tm()
    // SAFETY: both live during the call.
    guard unsafe localtime_r(&time, &parts) != nil else { return nil }
    year = unsafe Int(parts.tm_year) + 1900
    month = unsafe Int(parts.tm_mon) + 1
    day = unsafe Int(parts.tm_mday)
    hour = unsafe Int(parts.tm_hour)
    minute = unsafe Int(parts.tm_min)
  }
}
