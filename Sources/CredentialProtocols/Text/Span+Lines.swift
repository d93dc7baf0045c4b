import Model

extension Span<UInt8> {
  /// Whether the bytes are UTF-8, found without a copy.
  var isText: Bool {
    var check = UTF8Check()
    for index in indices where !check.append(self[index]) { return false }
    return check.isComplete
  }

  /// The offset of the first carriage return, line feed or NUL; nil: there is none.
  ///
  /// In protocols of lines such a byte in a value would be read as the beginning of another one (CVE-2020-5260,
  /// CVE-2024-52006).
  var firstLineBreak: Int? {
    indices.first { self[$0] == 0x0A || self[$0] == 0x0D || self[$0] == 0 }
  }

  /// The range without one line feed at the end, as files of one line have it.
  var rangeWithoutFinalLineFeed: Range<Int> {
    isEmpty || self[count - 1] != 0x0A ? 0..<count : 0..<count - 1
  }

  /// The ranges of the lines, without their line feeds. An empty last line is none.
  var lineRanges: [Range<Int>] {
    var (ranges, start) = ([Range<Int>](), 0)
    for index in indices where self[index] == 0x0A {
      ranges.append(start..<index)
      start = index + 1
    }
    if start < count { ranges.append(start..<count) }
    return ranges
  }
}
