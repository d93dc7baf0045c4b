import Model

/// A hash that is the same in every process and on every day: it goes into files. FNV-1a, eight bytes a step.
struct StableHash {
  private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

  mutating func combine(_ word: UInt64) {
    value = (value ^ word) &* 0x0000_0100_0000_01B3
    value ^= value >> 29
  }

  mutating func combine(_ bytes: Span<UInt8>) {
    combine(UInt64(bytes.count))
    var (word, count): (UInt64, Int) = (0, 0)
    for index in bytes.indices {
      word = word << 8 | UInt64(bytes[index])
      count += 1
      if count == 8 {
        combine(word)
        (word, count) = (0, 0)
      }
    }
    if count > 0 { combine(word) }
  }

  static func of(_ bytes: Span<UInt8>) -> UInt64 {
    var hash = StableHash()
    hash.combine(bytes)
    return hash.value
  }

  static func of(_ value: SettingValue) -> UInt64 {
    var hash = StableHash()
    hash.combine(value)
    return hash.value
  }

  private mutating func combine(_ setting: SettingValue) {
    switch setting {
    case .string(let text): combine(1, text.utf8.span)
    case .integer(let number): combine(2, UInt64(truncatingIfNeeded: number), number < 0 ? 1 : 0)
    case .real(let number): combine(3, number.bitPattern)
    case .bool(let isTrue): combine(4, isTrue ? 1 : 0)
    case .date(let date):
      combine(5, UInt64(bitPattern: date.seconds))
      if date.fraction != nil { combine(date.sinceReference.bitPattern) }
    case .data(let bytes): combine(6, bytes.span)
    case .uid(let number): combine(7, number)
    case .array(let items):
      combine(8, UInt64(items.count))
      for item in items { combine(item) }
    case .dictionary(let entries):
      // A sum, because the entries have no order.
      combine(9, UInt64(entries.count))
      combine(entries.reduce(0) { $0 &+ Self.of($1.key, $1.value) })
    }
  }

  private static func of(_ key: ExactString, _ value: SettingValue) -> UInt64 {
    var hash = StableHash()
    hash.combine(key.utf8.span)
    hash.combine(value)
    return hash.value
  }

  private mutating func combine(_ words: UInt64...) {
    for word in words { combine(word) }
  }

  private mutating func combine(_ kind: UInt64, _ bytes: Span<UInt8>) {
    combine(kind)
    combine(bytes)
  }
}
