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

  @Test func thoseOfAViewHaveItsNameAndGoWithIt() {
    let refusals = Refusals()
    let id = ItemID(rawValue: "1")
    func change(_ kind: Change.Kind, _ name: ExactString, previous: ExactString? = nil) -> Change {
      Change(kind, .document(id, name), previous: previous.map { .document(id, $0) }, origin: .local)
    }
    for path in ["views/a", "templates/a", "views/b", "views/ab", "keychain/generic/a"] {
      refusals.note(path: path, .locked)
    }
    refusals.follow(change(.modified, "views/a"))
    #expect(refusals.recent.count == 5)
    refusals.follow(change(.moved, "views/b", previous: "views/a"))
    #expect(
      refusals.recent.map(\.path) == ["views/b", "templates/b", "views/ab", "keychain/generic/a"])
    refusals.follow(change(.deleted, "views/b"))
    #expect(refusals.recent.map(\.path) == ["views/ab", "keychain/generic/a"])
  }

  @Test func thoseOfALockAreSettledByTheUnlock() {
    let refusals = Refusals()
    refusals.note(path: "views/a", .locked)
    refusals.note(path: "views/a", .noSpace)
    refusals.follow(Change(.locked, .keychain, origin: .local))
    #expect(refusals.recent.map(\.isSettled) == [false, false])
    refusals.follow(Change(.unlocked, .keychain, origin: .local))
    #expect(refusals.recent.map(\.isSettled) == [true, false])
    // The view's new name changes nothing of that, and the next lock does not either.
    let id = ItemID(rawValue: "1")
    refusals.follow(
      Change(.moved, .document(id, "views/b"), previous: .document(id, "views/a"), origin: .local))
    refusals.follow(Change(.locked, .keychain, origin: .local))
    #expect(refusals.recent.map(\.isSettled) == [true, false])
    refusals.note(path: "views/b", .locked)
    #expect(refusals.recent.map(\.isSettled) == [true, false, false])
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
