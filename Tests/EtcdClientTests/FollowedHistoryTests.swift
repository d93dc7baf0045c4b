import EtcdHarness
import TestSupport
import Testing

@Suite struct FollowedHistoryTests {
  private typealias Operation = FollowedHistory.Operation

  private func write(_ client: Int, _ value: Int, _ begin: Int64, _ end: Int64?) -> Operation {
    Operation(client: client, .write(value), begin: begin, end: end)
  }

  private func read(_ client: Int, _ value: Int, _ begin: Int64, _ end: Int64) -> Operation {
    Operation(client: client, .read(value), begin: begin, end: end)
  }

  private func fits(_ operations: Operation...) -> Bool { FollowedHistory(operations).contradiction == nil }

  @Test func copiesMayBeBehind() {
    #expect(fits())
    #expect(fits(write(0, 1, 0, 1), read(1, 0, 2, 3), read(1, 1, 4, 5)))
    #expect(fits(write(0, 1, 0, 1), write(0, 2, 2, 3), read(1, 1, 4, 5), read(1, 2, 6, 7), read(2, 0, 8, 9)))
  }

  @Test func copiesDoNotGoBack() {
    #expect(!fits(write(0, 1, 0, 1), read(1, 1, 2, 3), read(1, 0, 4, 5)))
    #expect(!fits(write(0, 1, 0, 9), write(1, 2, 0, 9), read(2, 1, 1, 2), read(2, 2, 3, 4), read(2, 1, 5, 6)))
    // Of reads at the same time none is first.
    #expect(fits(write(0, 1, 0, 1), read(1, 1, 2, 5), read(1, 0, 3, 6)))
  }

  @Test func clientsReadTheirOwnWrites() {
    #expect(!fits(write(0, 1, 0, 1), read(0, 0, 2, 3)))
    #expect(fits(write(0, 1, 0, 1), write(1, 2, 0, 1), read(0, 2, 2, 3), read(1, 2, 2, 3)))
    // Each would have to come after the other.
    #expect(!fits(write(0, 1, 0, 1), write(1, 2, 0, 1), read(0, 2, 2, 3), read(1, 1, 2, 3)))
  }

  @Test func allClientsReadOneOrder() {
    let writes = [write(0, 1, 0, 10), write(1, 2, 0, 10)]
    let one = [read(2, 1, 1, 2), read(2, 2, 3, 4)]
    #expect(FollowedHistory(writes + one + [read(3, 1, 5, 6), read(3, 2, 7, 8)]).contradiction == nil)
    #expect(FollowedHistory(writes + one + [read(3, 2, 5, 6), read(3, 1, 7, 8)]).contradiction != nil)
  }

  @Test func acknowledgedWriteThatIsLostIsFound() {
    let last = [read(0, 1, 20, 21), read(1, 1, 20, 21)]
    #expect(FollowedHistory([write(0, 1, 0, 1), write(1, 2, 2, 3)] + last).contradiction != nil)
    #expect(FollowedHistory([write(0, 1, 0, 1), write(1, 2, 2, nil)] + last).contradiction == nil)
    // At the same time, either may be the last one.
    #expect(FollowedHistory([write(0, 1, 0, 3), write(1, 2, 2, 4)] + last).contradiction == nil)
  }

  @Test func unknownWriteThatWasReadCounts() {
    #expect(fits(write(0, 1, 0, nil), read(1, 1, 1, 2), read(1, 1, 3, 4)))
    #expect(!fits(write(0, 1, 0, nil), read(1, 1, 1, 2), read(1, 0, 3, 4)))
    #expect(
      !fits(
        write(0, 1, 0, nil), read(1, 1, 1, 2), write(1, 2, 3, 4), read(1, 2, 5, 6), read(2, 2, 7, 8),
        read(2, 1, 9, 10)))
  }

  @Test func valueThatWasNotWrittenIsFound() {
    #expect(!fits(read(0, 9, 0, 1)))
    #expect(!fits(read(0, 1, 0, 1), write(0, 1, 2, 3)))
  }

  /// Reads of copies that follow a store always fit; with one value that goes back, they never do.
  @Test func storesThatAreFollowedFit() {
    var random = SplitMix64(seed: 7)
    for _ in 0..<200 {
      var history = FollowedHistory()
      var (stored, copies, reads): ([Int], [Int], [Operation]) = ([0], [0, 0, 0], [])
      for time in 0..<Int64(60) {
        let client = Int.random(in: 0..<3, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0:
          stored.append(stored.count)
          copies[client] = stored.count - 1
          history.add(write(client, stored.count - 1, 2 * time, 2 * time + 1))
        case 1: copies[client] = Int.random(in: copies[client]..<stored.count, using: &random)
        default:
          reads.append(read(client, stored[copies[client]], 2 * time, 2 * time + 1))
          history.add(reads[reads.count - 1])
        }
      }
      #expect(history.contradiction == nil)
      guard let last = reads.last, last.kind != .read(0) else { continue }
      history.add(read(last.client, 0, 1000, 1001))
      #expect(history.contradiction != nil)
    }
  }
}
