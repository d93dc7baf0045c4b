/// A day and time in UTC, in the Gregorian calendar without a beginning, as property lists write dates.
struct CivilDate {
  var year: Int64
  var month: Int64
  var day: Int64
  var hour: Int64
  var minute: Int64
  var second: Int64

  private static let day: Int64 = 86400
  /// Days from 0000-03-01 to 1970-01-01.
  private static let epoch: Int64 = 719_468
  /// Days in 400 years.
  private static let era: Int64 = 146_097

  /// Seconds since 1970, or nil where there is no such date. Year: at most 12 digits.
  ///
  /// A day beyond the month's end counts on into the next, as Foundation reads it.
  var seconds: Int64? {
    guard (1...12).contains(month), (1...31).contains(day), (0...24).contains(hour),
      (0...59).contains(minute), (0...60).contains(second)
    else { return nil }
    let (march, shifted) = month > 2 ? (year, month - 3) : (year - 1, month + 9)
    let century = march >= 0 ? march / 400 : (march - 399) / 400
    let yearOfEra = march - century * 400
    let dayOfYear = (153 * shifted + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    let days = century * Self.era + dayOfEra - Self.epoch
    // 12 digits of a year lead beyond 64 bits.
    return Int64(exactly: Int128(days) * Int128(Self.day) + Int128(hour * 3600 + minute * 60 + second))
  }
}

extension CivilDate {
  /// - Parameter seconds: since 1970, in `PropertyLists.dates`.
  init(seconds: Int64) {
    let days = (seconds >= 0 ? seconds : seconds - (Self.day - 1)) / Self.day
    let time = seconds - days * Self.day
    let shifted = days + Self.epoch
    let century = (shifted >= 0 ? shifted : shifted - (Self.era - 1)) / Self.era
    let dayOfEra = shifted - century * Self.era
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let march = (5 * dayOfYear + 2) / 153
    month = march < 10 ? march + 3 : march - 9
    year = century * 400 + yearOfEra + (month <= 2 ? 1 : 0)
    day = dayOfYear - (153 * march + 2) / 5 + 1
    (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60)
  }

  /// `YYYY-MM-DDThh:mm:ssZ`.
  var text: String {
    let sign = year < 0 ? "-" : ""
    return sign + Self.pad(abs(year), 4) + "-" + Self.pad(month, 2) + "-" + Self.pad(day, 2)
      + "T" + Self.pad(hour, 2) + ":" + Self.pad(minute, 2) + ":" + Self.pad(second, 2) + "Z"
  }

  private static func pad(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
