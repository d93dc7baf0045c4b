package import Model

/// 256 bits that are added up over all rows of a vault of format 1, modulo 2²⁵⁶.
package struct Witness: Equatable {
  private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

  package init() {}

  /// 32 bytes, big-endian; missing ones count as zero.
  package init(_ bytes: [UInt8]) {
    var words = [UInt64](repeating: 0, count: 4)
    for (index, byte) in bytes.prefix(32).enumerated() {
      words[index / 8] = words[index / 8] << 8 | UInt64(byte)
    }
    self.words = (words[0], words[1], words[2], words[3])
  }

  package init(reading reader: inout FieldReader) throws(StoreError) {
    words.0 = try reader.integer(UInt64.self)
    words.1 = try reader.integer(UInt64.self)
    words.2 = try reader.integer(UInt64.self)
    words.3 = try reader.integer(UInt64.self)
  }

  package var bytes: [UInt8] {
    var writer = FieldWriter(capacity: 32)
    for word in [words.0, words.1, words.2, words.3] { writer.put(raw: word) }
    return writer.bytes
  }

  package static func += (left: inout Witness, right: Witness) {
    var carry = false
    (left.words.3, carry) = add(left.words.3, right.words.3, carry)
    (left.words.2, carry) = add(left.words.2, right.words.2, carry)
    (left.words.1, carry) = add(left.words.1, right.words.1, carry)
    (left.words.0, _) = add(left.words.0, right.words.0, carry)
  }

  package static func == (left: Witness, right: Witness) -> Bool { left.words == right.words }

  private static func add(_ a: UInt64, _ b: UInt64, _ carry: Bool) -> (UInt64, Bool) {
    let (sum, first) = a.addingReportingOverflow(b)
    let (total, second) = sum.addingReportingOverflow(carry ? 1 : 0)
    return (total, first || second)
  }
}
