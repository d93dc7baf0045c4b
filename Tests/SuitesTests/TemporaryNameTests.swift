import Model
import Testing

@testable import Suites

@Suite struct TemporaryNameTests {
  /// 64 bits of nanoseconds end in the year 2554; a clock beyond it must not end the process.
  @Test(arguments: [0, 1_763_797_980, 18_446_744_073, 18_446_744_074, .max, .min] as [Int64])
  func everyClockGivesAName(seconds: Int64) {
    var name = TemporaryName(of: "/folder/suite.plist", at: Timestamp(seconds: seconds, nanoseconds: .max))
    let first = name.text
    name.avoid()
    #expect(name.time(in: first) != nil && TemporaryName.isTemporary(first))
  }

  @Test func theMomentIsInTheName() {
    let time = Timestamp(seconds: 1_763_797_980, nanoseconds: 999_999_999)
    var name = TemporaryName(of: "/folder/suite.plist", at: time)
    #expect(name.time(in: name.text) == time)
    name.avoid()
    #expect(name.time(in: name.text) == Timestamp(seconds: time.seconds, nanoseconds: 0))
  }
}
