/// The search for digits in an output that breaks them into lines: base64(1) and xxd(1) do so after 76 and 60 of them.
///
/// An end of line behind 16 bytes or more is passed over, one after the other is not.
struct DigitLines {
  private static let shortestLine = 16

  private var state = PatternAutomaton.State()
  /// The positions of the bytes that were passed over, of those that may lie in an occurrence.
  private var breaks: [Int] = []
  /// How many bytes the line has.
  private var column = 0
  /// The byte before, of an end of line that was passed over.
  private var lineEnd: UInt8?
  /// Where the longest end of the output begins that is the beginning of a pattern, by the position in the stream.
  private(set) var start = 0
  /// Where the longest pattern begins that the output ends with; behind the end: it ends with none.
  private(set) var matchStart = 0

  /// How many bytes an occurrence has at most.
  static func longest(of patterns: PatternAutomaton) -> Int {
    patterns.longest + 2 * (patterns.longest / shortestLine + 2)
  }

  /// Takes the byte at a position.
  mutating func take(_ byte: UInt8, at position: Int, _ patterns: PatternAutomaton) {
    let isPassedOver = isPassedOver(byte)
    if isPassedOver {
      lineEnd = byte
      if state.depth > 0 { breaks.append(position) }
    } else {
      if lineEnd != nil { column = 0 }
      lineEnd = nil
      column += 1
      state = patterns.next(state, byte)
    }
    start = beginning(of: state.depth, before: position + 1)
    // Of an end of line nothing new is found.
    matchStart = isPassedOver ? position + 1 : beginning(of: state.match, before: position + 1)
    // As a rule there is none.
    if let first = breaks.first, first < start { breaks.removeAll { $0 < start } }
  }

  private func isPassedOver(_ byte: UInt8) -> Bool {
    switch (byte, lineEnd) {
    case (0x0D, nil), (0x0A, nil): column >= Self.shortestLine
    case (0x0A, 0x0D): true
    default: false
    }
  }

  private func beginning(of count: Int, before end: Int) -> Int {
    guard count > 0 else { return end }
    var start = end - count
    for index in breaks.indices.reversed() where breaks[index] >= start { start -= 1 }
    return start
  }
}
