package import Model

/// An item's random 16 bytes: what its rows are found by and what everything of it is sealed to.
package struct ItemKey: Hashable, Comparable {
  package var high: UInt64
  package var low: UInt64

  /// A version 4 UUID (RFC 9562) from the system's generator.
  package static func random() -> ItemKey {
    let high = UInt64.random(in: .min ... .max) & ~0xF000 | 0x4000
    let low = UInt64.random(in: .min ... .max) & ~(0b11 << 62) | 0b10 << 62
    return ItemKey(high: high, low: low)
  }

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// nil: not 16 bytes.
  package init?(_ bytes: Span<UInt8>) {
    guard bytes.count == 16 else { return nil }
    (high, low) = (0, 0)
    for index in 0..<8 { high = high << 8 | UInt64(bytes[index]) }
    for index in 8..<16 { low = low << 8 | UInt64(bytes[index]) }
  }

  /// As the bytes are ordered.
  package static func < (left: ItemKey, right: ItemKey) -> Bool {
    (left.high, left.low) < (right.high, right.low)
  }

  package var bytes: [UInt8] {
    var writer = FieldWriter(capacity: 16)
    writer.put(raw: high)
    writer.put(raw: low)
    return writer.bytes
  }
}

extension ItemKey {
  /// nil: not a UUID in lower-case text.
  package init?(_ id: ItemID) {
    let text = id.rawValue.utf8Span.span
    guard text.count == 36 else { return nil }
    self.init(high: 0, low: 0)
    for index in text.indices {
      let byte = text[index]
      if index == 8 || index == 13 || index == 18 || index == 23 {
        guard byte == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let digit = Self.value(ofDigit: byte) else { return nil }
      high = high << 4 | low >> 60
      low = low << 4 | digit
    }
  }

  package var id: ItemID { ItemID(rawValue: text) }

  package var text: String {
    var bytes = InlineArray<36, UInt8>(repeating: UInt8(ascii: "-"))
    var position = 0
    for nibble in 0..<32 {
      if nibble == 8 || nibble == 12 || nibble == 16 || nibble == 20 { position += 1 }
      let word = nibble < 16 ? high : low
      bytes[position] = Self.digit(word >> UInt64(60 - nibble % 16 * 4) & 15)
      position += 1
    }
    return ExactString(utf8: bytes.span)?.string ?? ""
  }

  private static func digit(_ value: UInt64) -> UInt8 {
    UInt8(truncatingIfNeeded: value) + UInt8(ascii: value < 10 ? "0" : "W")
  }

  private static func value(ofDigit byte: UInt8) -> UInt64? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(byte - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(byte - UInt8(ascii: "a") + 10)
    default: nil
    }
  }
}
