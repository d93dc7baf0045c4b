import Glibc
import Model
import Platform
import Testing

@testable import Mount

@Suite struct RefusalsTests {
  @Test func lastTwentyAreKeptTheNewestLast() {
    let refusals = Refusals()
    #expect(refusals.recent.isEmpty)
    for index in 1...25 { refusals.note(path: "defaults/s/\(index)", .noSpace) }
    #expect(refusals.recent.map(\.path) == (6...25).map { "defaults/s/\($0)" })
    #expect(refusals.recent.allSatisfy { $0.reason == StoreError.noSpace.message })
    #expect(zip(refusals.recent, refusals.recent.dropFirst()).allSatisfy { $0.time <= $1.time })
  }

  @Test func oneAttemptStandsThereOnce() {
    let refusals = Refusals()
    for path in ["a", "a", "b", "a"] { refusals.note(path: path, .noSpace) }
    refusals.note(path: "a", .locked)
    #expect(refusals.recent.map(\.path) == ["a", "b", "a", "a"])
  }

  @Test(arguments: [
    (StoreError.notFound, false), (.noSuchAttribute, false), (.unsupported(reason: ""), false),
    (.exists, false), (.isDirectory, false), (.notDirectory, false), (.resultTooLarge, false),
    (.invalidValue(reason: ""), true), (.readOnly(reason: ""), true), (.locked, true), (.noSpace, true),
    (.accessDenied(reason: ""), true), (.damaged(what: ""), true), (.tooLarge(limit: 1), true),
    (.system(.EIO, operation: ""), true),
  ])
  func whatExplainsItselfIsNotTold(error: StoreError, isWorthTelling: Bool) {
    #expect(error.isWorthTelling == isWorthTelling)
  }
}
