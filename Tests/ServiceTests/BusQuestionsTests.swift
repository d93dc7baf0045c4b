import Model
import Store
import Testing

@testable import Service

/// How long the calls of one client wait for requests that are listed.
@Suite struct BusQuestionsTests {
  private let questions = BusQuestions()
  private let start = ContinuousClock.now

  private func subject(_ item: String, _ operation: AccessOperation = .read) -> BusQuestions.Subject {
    BusQuestions.Subject(item: ItemID(rawValue: item), operation: operation)
  }

  private func begin(_ key: UInt64, _ item: String, after seconds: Int) -> Bool {
    questions.begin(key, subject(item), at: start + .seconds(seconds))
  }

  private func list(_ key: UInt64, after seconds: Int) -> Duration {
    questions.list(key, at: start + .seconds(seconds))
  }

  @Test func allCallsWaitTogether() {
    #expect(begin(1, "a", after: 0) && list(1, after: 0) == .seconds(20))
    #expect(begin(2, "b", after: 5) && list(2, after: 5) == .seconds(15))
    #expect(begin(3, "c", after: 20) && list(3, after: 21) == .zero)
  }

  @Test func oneRequestForTheSame() {
    #expect(begin(1, "a", after: 0) && list(1, after: 0) == .seconds(20))
    // It waits with the first call.
    #expect(begin(2, "a", after: 19) && list(2, after: 19) == .seconds(1))
    #expect(!begin(3, "a", after: 20))
    #expect(questions.begin(4, subject("a", .write), at: start + .seconds(20)))
    questions.end(1)
    #expect(!begin(5, "a", after: 20))
    questions.end(2)
    #expect(begin(6, "a", after: 20))
  }

  @Test func callWaitsAgainWhenNothingIsListed() {
    #expect(begin(1, "a", after: 0) && list(1, after: 0) == .seconds(20))
    questions.end(1)
    #expect(begin(2, "a", after: 60) && list(2, after: 60) == .seconds(20))
  }

  @Test func answerBeforeTheListingCountsForNothing() {
    #expect(begin(1, "a", after: 0))
    questions.end(1)
    #expect(list(1, after: 0) == .zero)
    #expect(begin(2, "a", after: 30) && list(2, after: 30) == .seconds(20))
  }
}
