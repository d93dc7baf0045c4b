import Model
import TestSupport
import Testing

@Suite struct SettingDateTests {
  private let codec = TextCodec()

  @Test(
    arguments: [
      (0, "2001-01-01T00:00:00Z"), (0.5, "2001-01-01T00:00:00.5Z"), (-0.25, "2000-12-31T23:59:59.75Z"),
      (-1.0001, "2000-12-31T23:59:58.9999Z"), (816_940_380.123456, "2026-11-21T07:53:00.123456Z"),
      (0.1, "2001-01-01T00:00:00.1Z"), (1 / 3.0, "2001-01-01T00:00:00.3333333333333333Z"),
      (1.23e-7, "2001-01-01T00:00:00.000000123Z"), (-1.23e-7, "2000-12-31T23:59:59.999999877Z"),
      (-0.0, "2001-01-01T00:00:00Z"), (1e-12, "2001-01-01T00:00:00Z"), (-1e-12, "2001-01-01T00:00:00Z"),
    ] as [(Double, String)])
  func aMomentIsOneText(moment: Double, text: String) throws {
    let date = try #require(SettingDate(sinceReference: moment))
    #expect(date.description == text)
    #expect(codec.value(of: text, as: .date) == .date(date))
    if abs(moment) > 1e-9 { #expect(date.sinceReference == moment) }
  }

  @Test func everyDateIsReadBackFromItsText() throws {
    var generator = SplitMix64(seed: 5)
    for _ in 0..<2_000 {
      let exponent = Double.random(in: -12...15, using: &generator)
      let moment = Double.random(in: -1...1, using: &generator) * pow10(exponent)
      let date = try #require(SettingDate(sinceReference: moment))
      #expect(codec.value(of: date.description, as: .date) == .date(date), "\(moment)")
      let isSecondRoundedDown = Double(date.seconds - 978_307_200) <= date.sinceReference
      #expect(isSecondRoundedDown, "\(moment)")
    }
  }

  @Test(arguments: [
    "2026-11-21T07:53:00.Z", "2026-11-21T07:53.5Z", "2026-11-21T07:53:00.5.5Z", "2026-11-21T07:53:00,5Z",
    "2026-11-21T07:53:00.5", "2026-11-21T07:53:00.1234567890123456789012345678901Z", "2026-11-21.5T07:53:00Z",
    "2026-11-21T07:53:00Z.5", "2026-11-21T07:53:0.5Z",
  ])
  func whatIsNoFractionIsRefused(text: String) {
    #expect(codec.value(of: text, as: .date) == nil)
  }

  @Test func fractionsHaveOffsetsAndBothForms() {
    let date = SettingValue.date(.since2001(816_940_380.5))
    #expect(codec.value(of: "2026-11-21T08:53:00.5+01:00", as: .date) == date)
    #expect(codec.value(of: "20261121T075300.500Z", as: .date) == date)
    #expect(codec.value(of: "2026-11-21T07:53:00.0Z", as: .date) == .date(1_795_247_580))
  }

  @Test func whatIsFarAwayIsNoDate() {
    for moment in [Double.nan, .infinity, -.infinity, 1e19, .greatestFiniteMagnitude] {
      #expect(SettingDate(sinceReference: moment) == nil)
    }
    #expect(SettingDate(seconds: .max).seconds > 1 << 62 && SettingDate(seconds: .min).seconds < -1 << 62)
  }

  private func pow10(_ exponent: Double) -> Double {
    var power = 1.0
    for _ in 0..<Int(abs(exponent)) { power *= 10 }
    return exponent < 0 ? 1 / power : power
  }
}

extension SettingDate {
  static func since2001(_ seconds: Double) -> SettingDate { SettingDate(sinceReference: seconds) ?? 0 }
}
