package import Model
import VaultRecords

/// A sum of 256-bit terms modulo 2²⁵⁶, one for each entry of a collection. Without the key of the terms there is no way to find an
/// other set of entries with the same sum.
package struct SetDigest: Hashable, Sendable {
  /// The lowest first.
  private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

  package init() {}

  /// 32 bytes, big-endian. - Throws: `damaged` for another number of bytes.
  package init(_ bytes: Span<UInt8>) throws(StoreError) {
    var reader = FieldReader(bytes)
    words.3 = try reader.integer(UInt64.self)
    words.2 = try reader.integer(UInt64.self)
    words.1 = try reader.integer(UInt64.self)
    words.0 = try reader.integer(UInt64.self)
    guard bytes.count == 32 else { throw .damaged(what: "a digest") }
  }

  package var bytes: [UInt8] {
    var writer = FieldWriter(capacity: 32)
    for word in [words.3, words.2, words.1, words.0] { writer.put(raw: word) }
    return writer.bytes
  }

  package static func += (left: inout SetDigest, right: SetDigest) {
    var carry = false
    (left.words.0, carry) = add(left.words.0, right.words.0, carry)
    (left.words.1, carry) = add(left.words.1, right.words.1, carry)
    (left.words.2, carry) = add(left.words.2, right.words.2, carry)
    (left.words.3, _) = add(left.words.3, right.words.3, carry)
  }

  package static func -= (left: inout SetDigest, right: SetDigest) {
    var inverse = right
    inverse.words = (~right.words.0, ~right.words.1, ~right.words.2, ~right.words.3)
    left += inverse
    var one = SetDigest()
    one.words.0 = 1
    left += one
  }

  private static func add(_ a: UInt64, _ b: UInt64, _ carry: Bool) -> (UInt64, Bool) {
    let (sum, first) = a.addingReportingOverflow(b)
    let (total, second) = sum.addingReportingOverflow(carry ? 1 : 0)
    return (total, first || second)
  }

  package static func == (left: SetDigest, right: SetDigest) -> Bool { left.words == right.words }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.3)
  }
}
