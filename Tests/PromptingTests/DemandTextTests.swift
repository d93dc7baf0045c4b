import Store
import Testing

@testable import PromptHelper

@Suite struct DemandTextTests {
  @Test(arguments: [
    Demand.consent, .passcode, .biometry, .biometryOfSet("abc"), .any([.passcode, .biometry]),
    .all([.biometryOfSet("abc"), .any([.passcode, .consent])]), .any([]),
  ])
  func textIsReadBack(demand: Demand) {
    #expect(Demand(text: demand.text) == demand)
  }

  @Test(arguments: [
    "", "nonsense", "any", "any passcode", "any nonsense .", ".", "passcode .", "consent consent",
    "biometry-of",
    "all passcode . .",
  ])
  func otherTextIsNoDemand(text: String) {
    #expect(Demand(text: text) == nil)
  }

  /// Each level is a call of the function in itself.
  @Test func nestingHasALimit() {
    let deep = 100_000
    let text = String(repeating: "any ", count: deep) + "consent" + String(repeating: " .", count: deep)
    #expect(Demand(text: text) == nil)
  }
}
