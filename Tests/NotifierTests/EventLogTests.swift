import Model
import Synchronization
import Testing

@testable import Notifier

@Suite(.timeLimit(.minutes(1))) struct EventLogTests {
  private let log = EventLog { Timestamp(seconds: 0) }

  private func append(_ name: ExactString) {
    log.append(ChangeEvent(.created, path: "defaults/\(name)", origin: .local))
  }

  private func line(_ number: Int, _ name: String) -> String {
    "{\"seq\":\(number),\"kind\":\"created\",\"path\":\"defaults/\(name)\",\"origin\":\"mount\"}\n"
  }

  @Test func readerFromTheBeginningGetsEveryLine() {
    let reader = EventReader(log)
    #expect(reader.read(at: 0, count: 4096).isEmpty && !reader.hasMore)
    append("a")
    append("b")
    #expect(reader.hasMore)
    #expect(reader.read(at: 0, count: 4096).untimed == line(1, "a") + line(2, "b"))
    #expect(!reader.hasMore)
  }

  /// A mapping sees what is there, at the offsets that the file's size tells, and its reader goes on as before.
  @Test func pageHasWhatIsThereAndNeverWaits() throws {
    #expect(log.page(at: 0, count: 4096) == [0x20] && log.page(at: 1, count: 4096) == [])
    append("a")
    let reader = EventReader(log)
    let page = try #require(log.page(at: 0, count: 4096))
    #expect(page.count == log.end && page.dropFirst().untimed == line(1, "a"))
    #expect(log.page(at: 0, count: 1) == [0x20])
    #expect(log.page(at: 7, count: 5) == Array(page[7..<12]))
    #expect(log.page(at: 1 << 20, count: 4096) == [])
    #expect(log.page(at: .max, count: 4096) == [])
    #expect(reader.read(at: 0, count: 4096).untimed == line(1, "a"))
  }

  @Test func pageThatIsNoLongerKeptIsNone() {
    for number in 0..<1_100 { append(ExactString("\(number)")) }
    #expect(log.page(at: 0, count: 4096) == nil)
    #expect(log.page(at: log.end - 5, count: 4096)?.count == 5)
  }

  @Test(arguments: [1, 2, 7, 100]) func piecesOfAnySizeAddUp(size: Int) {
    for index in 0..<20 { append(ExactString("\(index)")) }
    let reader = EventReader(log)
    var text: [UInt8] = []
    // A single byte at the very beginning is the blank that is there for `tail`.
    while case let piece = reader.read(at: text.count, count: size), !piece.isEmpty { text += piece }
    let expected = (0..<20).map { line($0 + 1, "\($0)") }.joined()
    #expect(text.drop { $0 == 0x20 }.untimed == expected)
  }

  @Test func readerSeeks() {
    append("a")
    let end = log.end
    append("b")
    let reader = EventReader(log)
    #expect(reader.read(at: end, count: 4096).untimed == line(2, "b"))
    #expect(reader.read(at: end, count: 4096).untimed == line(2, "b"))
    #expect(reader.read(at: log.end, count: 4096).isEmpty)
    #expect(reader.read(at: log.end + 100, count: 4096).isEmpty)
  }

  @Test func lastThousandLinesAreKeptAndTheRestIsAnOverflow() {
    for index in 0..<2_500 { append(ExactString("\(index)")) }
    let reader = EventReader(log)
    let lines = readAll(reader)
    #expect(lines.first?.contains("\"kind\":\"overflow\"") == true)
    #expect(lines.first?.contains("\"seq\":1500,") == true)
    #expect(lines.dropFirst().map { $0 + "\n" } == (1_500..<2_500).map { line($0 + 1, "\($0)") })
  }

  @Test func readerThatFallsBehindIsToldOnceAndGoesOn() {
    append("a")
    let reader = EventReader(log)
    var offset = reader.read(at: 0, count: 30).count
    for index in 0..<1_500 { append(ExactString("\(index)")) }
    var text: [UInt8] = []
    while case let piece = reader.read(at: offset, count: 1_000), !piece.isEmpty {
      text += piece
      offset += piece.count
    }
    append("last")
    text += reader.read(at: offset, count: 1_000)
    let lines = text.untimed.split(separator: "\n", omittingEmptySubsequences: false)
    // The line that it was in ends where it was.
    #expect(lines.first == "" && lines.filter { $0.contains("overflow") }.count == 1)
    #expect(lines.dropFirst(2).first == line(502, "500").dropLast())
    #expect(lines.count == 1_004 && lines.dropLast().last == line(1_502, "last").dropLast())
  }

  /// pread(2) takes any offset; behind a gap it is added to the distance to the log's.
  @Test func offsetAtTheEndOfTheNumbersIsBeyondTheEnd() {
    for index in 0..<1_500 { append(ExactString("\(index)")) }
    for last in [Int.max - 1, Int.max] {
      let reader = EventReader(log)
      #expect(reader.read(at: last, count: 1).isEmpty)
      #expect(!reader.read(at: 0, count: 4096).isEmpty)
      #expect(reader.read(at: last, count: 1).isEmpty)
      #expect(reader.read(at: last, count: 4096).isEmpty)
      #expect(reader.read(at: -1, count: 4096).isEmpty && reader.read(at: 0, count: 0).isEmpty)
      #expect(!reader.read(at: 0, count: 4096).isEmpty)
    }
  }

  @Test func largeReadIsNeverFull() {
    for index in 0..<1_000 { append(ExactString("\(index) \(String(repeating: "x", count: 200))")) }
    let reader = EventReader(log)
    #expect(reader.read(at: 0, count: 128 * 1024).count < 128 * 1024)
  }

  @Test func waitersAreCalledOnce() {
    let reader = EventReader(log)
    let calls = Counter()
    reader.wait(log.ticket()) { calls.add() }
    let withdrawn = log.ticket()
    reader.wait(withdrawn) { calls.add() }
    log.withdraw(withdrawn)
    #expect(calls.value == 0)
    append("a")
    append("b")
    #expect(calls.value == 1)
    reader.wait(log.ticket()) { calls.add() }
    #expect(calls.value == 2)
  }

  @Test func pathsAreEscapedAndMovesNameBoth() {
    log.append(
      ChangeEvent(.moved, path: #"defaults/a"b/c\d"#, from: "defaults/s/ö%0A", origin: .external))
    let text = EventReader(log).read(at: 0, count: 4096).untimed
    #expect(
      text
        == #"{"seq":1,"kind":"moved","path":"defaults/a\"b/c\\d","from":"defaults/s/ö%0A","origin":"external"}"#
        + "\n")
  }

  private func readAll(_ reader: EventReader) -> [String] {
    var text: [UInt8] = []
    while case let piece = reader.read(at: text.count, count: 5_000), !piece.isEmpty { text += piece }
    return text.untimed.split(separator: "\n").map(String.init)
  }
}

private final class Counter: Sendable {
  private let count = Atomic(0)

  var value: Int { count.load(ordering: .relaxed) }

  func add() { count.wrappingAdd(1, ordering: .relaxed) }
}

extension Sequence<UInt8> {
  /// As text, without the times.
  fileprivate var untimed: String {
    String(decoding: Array(self), as: UTF8.self).replacing(/"time":"[^"]*",/, with: "")
  }
}
