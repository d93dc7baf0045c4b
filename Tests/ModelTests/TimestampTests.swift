import Model
import TestSupport
import Testing

@Suite struct TimestampTests {
  @Test(
    arguments: [
      ("1970-01-01T00:00:00Z", 0), ("2026-11-21T07:53:00Z", 1_795_247_580),
      ("2000-02-29T23:59:59Z", 951_868_799),
      ("1969-12-31T23:59:59Z", -1), ("0001-01-01T00:00:00Z", -62_135_596_800),
      ("9999-12-31T23:59:59Z", 253_402_300_799), ("0000-03-01T00:00:00Z", -62_162_035_200),
      ("+010000-01-01T00:00:00Z", 253_402_300_800), ("-000001-12-31T00:00:00Z", -62_167_305_600),
    ] as [(String, Int64)])
  func canonicalTextIsOneMoment(text: String, seconds: Int64) {
    #expect(Timestamp(iso8601: text)?.seconds == seconds)
    #expect(Timestamp(seconds: seconds, nanoseconds: 5).iso8601 == text)
  }

  @Test(arguments: [
    "2026-11-21T08:53:00+01:00", "2026-11-21T08:53:00+0100", "2026-11-21T08:53:00+01",
    "2026-11-21T02:23:00-05:30",
    "2026-11-20T23:53:00-08", "2026-11-21T07:53:00-00:00", "2026-11-22T07:52:00+23:59", "20261121T075300Z",
    "20261121T085300+0100", "2026-11-21T07:53Z", "20261121T0753Z", "20261120T2353-08",
    "+002026-11-21T07:53:00Z",
    "+000000002026-11-20T23:53-08:00",
  ])
  func everyOffsetAndFormNamesTheSameMoment(text: String) {
    #expect(Timestamp(iso8601: text)?.seconds == 1_795_247_580)
  }

  @Test(arguments: [
    "", "2026-11-21", "2026-11-21T07:53:00", "2026-11-21 07:53:00Z", "2026-11-21T07:53:00.0Z",
    "2026-11-21T07:53:00,5Z",
    "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
    "2026-04-31T00:00:00Z", "2026-01-00T00:00:00Z", "2026-11-21T24:00:00Z", "2026-11-21T07:60:00Z",
    "2026-12-31T23:59:60Z", "2026-11-21T07:53:00+24:00", "2026-11-21T07:53:00+01:60", "2026-11-21T07:53:00+1",
    "2026-11-21T07:53:00Z ", "2026-11-21t07:53:00z", "12026-11-21T07:53:00Z", "+2026-11-21T07:53:00Z",
    "2026-1121T07:53:00Z", "20261121T07:53:00Z", "+999999999999-01-01T00:00:00Z", "2026-W47-6T07:53:00Z",
  ])
  func whatIsNoMomentIsRefused(text: String) {
    #expect(Timestamp(iso8601: text) == nil)
  }

  @Test func everyMomentReadsBack() {
    var generator = SplitMix64(seed: 3)
    let edges: [Int64] = [.min, .max, .min + 1, 0, -1, 86_399, 86_400, -86_400, -86_401]
    let wide = (0..<1_000).map { _ in Int64(truncatingIfNeeded: generator.next()) }
    let usual = (0..<3_000).map { _ in Int64.random(in: -70_000_000_000...300_000_000_000, using: &generator)
    }
    for seconds in edges + wide + usual {
      #expect(Timestamp(iso8601: Timestamp(seconds: seconds).iso8601)?.seconds == seconds)
    }
  }

  @Test func daysFollowEachOther() {
    var previous = Timestamp(seconds: -86_400 * 800_000).iso8601
    for day in -799_999...3_000_000 where day % 101 == 0 || (-800...1_200).contains(day) {
      let text = Timestamp(seconds: Int64(day) * 86_400).iso8601
      #expect(text.hasPrefix("+") || text.hasPrefix("-") || previous.hasPrefix("-") || previous < text)
      previous = text
    }
  }
}
