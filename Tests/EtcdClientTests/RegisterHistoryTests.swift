import EtcdHarness
import TestSupport
import Testing

@Suite struct RegisterHistoryTests {
  private typealias Operation = RegisterHistory.Operation

  private func operation(_ kind: RegisterHistory.Kind, _ begin: Int64, _ end: Int64?) -> Operation {
    Operation(client: 0, kind, begin: begin, end: end)
  }

  private func isLinearizable(_ operations: Operation...) -> Bool {
    RegisterHistory(operations).violation == nil
  }

  @Test func oneAfterTheOther() {
    #expect(
      isLinearizable(operation(.read(nil), 0, 1), operation(.write(1), 2, 3), operation(.read(1), 4, 5)))
    #expect(!isLinearizable(operation(.write(1), 0, 1), operation(.read(nil), 2, 3)))
    #expect(
      !isLinearizable(operation(.write(1), 0, 1), operation(.write(2), 2, 3), operation(.read(1), 4, 5)))
  }

  @Test func readDuringAWriteSeesEither() {
    #expect(
      isLinearizable(operation(.write(1), 0, 10), operation(.read(nil), 1, 2), operation(.read(1), 3, 4)))
    #expect(
      !isLinearizable(operation(.write(1), 0, 10), operation(.read(1), 1, 2), operation(.read(nil), 3, 4)))
  }

  @Test func valueThatWasNotWrittenIsAViolation() {
    #expect(!isLinearizable(operation(.read(9), 0, 1)))
    // Nor may it be read before it is written.
    #expect(!isLinearizable(operation(.read(1), 0, 1), operation(.write(1), 2, 3)))
  }

  @Test func writesAtTheSameTimeHaveOneOrderForAll() {
    let writes = [operation(.write(1), 0, 10), operation(.write(2), 0, 10)]
    let same = writes + [operation(.read(1), 11, 12), operation(.read(1), 11, 12)]
    let different = writes + [operation(.read(1), 11, 12), operation(.read(2), 11, 12)]
    #expect(RegisterHistory(same).violation == nil)
    #expect(RegisterHistory(different).violation != nil)
  }

  @Test func exchangeNeedsTheValue() {
    #expect(
      isLinearizable(operation(.write(1), 0, 1), operation(.exchange(1, 2), 2, 3), operation(.read(2), 4, 5)))
    #expect(!isLinearizable(operation(.write(1), 0, 1), operation(.exchange(nil, 2), 2, 3)))
    // A lost update: two exchanges of the same value.
    #expect(!isLinearizable(operation(.exchange(nil, 1), 0, 5), operation(.exchange(nil, 2), 0, 5)))
  }

  @Test func writeWithoutAReplyMayHappenLateOrNever() {
    #expect(
      isLinearizable(operation(.write(1), 0, nil), operation(.read(nil), 5, 6), operation(.read(nil), 7, 8)))
    #expect(
      isLinearizable(operation(.write(1), 0, nil), operation(.read(nil), 5, 6), operation(.read(1), 7, 8)))
    // But once, and not undone.
    #expect(
      !isLinearizable(operation(.write(1), 0, nil), operation(.read(1), 5, 6), operation(.read(nil), 7, 8)))
    #expect(
      !isLinearizable(
        operation(.write(1), 0, nil), operation(.read(1), 1, 2), operation(.write(2), 3, 4),
        operation(.read(1), 5, 6)))
    // Not before it is called.
    #expect(!isLinearizable(operation(.read(1), 0, 1), operation(.write(1), 2, nil)))
  }

  @Test func exchangesWithoutRepliesFollowEachOther() {
    #expect(
      isLinearizable(
        operation(.exchange(nil, 1), 0, nil), operation(.exchange(1, 2), 1, nil), operation(.read(2), 5, 6)))
    #expect(!isLinearizable(operation(.exchange(1, 2), 1, nil), operation(.read(2), 5, 6)))
  }

  /// Histories made by a register are linearizable; with one read changed to an older value they mostly are not.
  @Test func madeHistoriesAreJudged() {
    var random = SplitMix64(seed: 7)
    var found = 0
    for _ in 0..<200 {
      var operations = made(60, &random)
      #expect(RegisterHistory(operations).violation == nil)
      guard let last = operations.indices.last(where: { operations[$0].kind.isRead }) else { continue }
      operations[last].kind = .read(nil)
      if RegisterHistory(operations).violation != nil { found += 1 }
    }
    #expect(found > 150)
  }

  /// Four clients, each with one operation at a time, which happens at a random moment while it runs.
  private func made(_ count: Int, _ random: inout SplitMix64) -> [Operation] {
    var value: Int?
    var free = [Int64](repeating: 0, count: 4)
    var moments: [(time: Int64, client: Int, begin: Int64, end: Int64)] = []
    for number in 0..<count {
      let client = number % 4
      let begin = free[client] + .random(in: 1...10, using: &random)
      let time = begin + .random(in: 0...20, using: &random)
      let end = time + .random(in: 0...20, using: &random)
      free[client] = end
      moments.append((time, client, begin, end))
    }
    var operations: [Operation] = []
    for (number, moment) in moments.sorted(by: { ($0.time, $0.client) < ($1.time, $1.client) }).enumerated() {
      let kind: RegisterHistory.Kind
      switch Int.random(in: 0..<3, using: &random) {
      case 0: kind = .write(number)
      case 1: kind = .exchange(value, number)
      default: kind = .read(value)
      }
      if !kind.isRead { value = number }
      let isLost = Int.random(in: 0..<8, using: &random) == 0
      operations.append(
        Operation(
          client: moment.client, kind, begin: moment.begin, end: isLost && !kind.isRead ? nil : moment.end))
    }
    return operations
  }
}

extension RegisterHistory.Kind {
  var isRead: Bool { if case .read = self { true } else { false } }
}
