import Testing

@testable import KeychainSelection

@Suite struct EnrolledSetTests {
  @Test func enrolledFingersAreWhatTheListSays() throws {
    let list =
      "found 1 devices\nFingerprints for user a on Mock (press):\n - #0: left-thumb\n - #1: right-thumb\n"
    let digest = try #require(EnrolledSet.digest(ofList: list))
    let turned = "x\nFingerprints for user a on Mock (press):\n - #0: right-thumb\n - #1: left-thumb\n"
    #expect(EnrolledSet.digest(ofList: turned) == digest)
    for (old, new) in [("left-thumb", "left-index-finger"), ("Mock", "Other"), (" - #1: right-thumb\n", "")] {
      #expect(EnrolledSet.digest(ofList: list.replacing(old, with: new)) != digest)
    }
    #expect(EnrolledSet.digest(ofList: "User a has no fingers enrolled for Mock.\n") == nil)
  }
}
