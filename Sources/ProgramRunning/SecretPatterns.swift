import Platform
import SecretMemory

/// The forms in which the value of a secret appears in a program's output: as it is, and encoded by the usual libraries.
package enum SecretPatterns {
  /// Shorter values are not masked: they would be found in too much else.
  package static let shortest = 8
  /// Longer values are not masked: the search would take too much locked memory.
  package static let longest = 64 * 1024

  /// The way in which a form stands in an output.
  enum Kind {
    /// As it is.
    case text
    /// As digits, which may be broken into lines.
    case digits
  }

  /// Calls `body` with each form. Some may be equal.
  static func forEach(
    of value: Span<UInt8>, _ body: (Span<UInt8>, Kind) throws(SecretMemoryError) -> Void
  ) throws(SecretMemoryError) {
    func text(_ form: Span<UInt8>) throws(SecretMemoryError) { try body(form, .text) }
    func digits(_ form: Span<UInt8>) throws(SecretMemoryError) { try body(form, .digits) }
    try text(value)
    if value.firstOffset(of: 0x0A) != nil {
      // The line discipline of a terminal sends a line feed as two bytes (ONLCR of termios(3)).
      try encode(value, text, escape: lineEnds)
      try lines(of: value, text)
    }
    for alphabet in [Base64Digits.standard, .url] {
      for shift in 0..<3 { try base64(value, alphabet, shift, digits) }
    }
    for form in [HexDigits.lower, .upper] {
      try encode(value, digits) { byte, add throws(SecretMemoryError) in try form.add(byte, add) }
    }
    for form in URLForm.all { try encode(value, text, escape: form.escape) }
    for form in JSONForm.all { try encodeJSON(value, form, text) }
  }

  /// The lines that are long enough, without blanks at their ends: programs print a key or a file line by line.
  private static func lines(
    of value: Span<UInt8>, _ body: (Span<UInt8>) throws(SecretMemoryError) -> Void
  ) throws(SecretMemoryError) {
    var start = 0
    while start < value.count {
      var end = start
      while end < value.count, value[end] != 0x0A { end += 1 }
      let next = end + 1
      while start < end, value[start].isBlankOrReturn { start += 1 }
      while end > start, value[end - 1].isBlankOrReturn { end -= 1 }
      if end - start >= shortest { try body(value.extracting(start..<end)) }
      start = next
    }
  }

  typealias Add = (UInt8) throws(SecretMemoryError) -> Void
  typealias Escape = (UInt8, Add) throws(SecretMemoryError) -> Void

  private static func encode(
    _ value: Span<UInt8>, _ body: (Span<UInt8>) throws(SecretMemoryError) -> Void, escape: Escape
  ) throws(SecretMemoryError) {
    var text = try PatternText(capacity: value.count * 3)
    for index in value.indices {
      try escape(value[index]) { byte throws(SecretMemoryError) in try text.add(byte) }
    }
    try body(text.span)
  }

  private static func lineEnds(_ byte: UInt8, _ add: Add) throws(SecretMemoryError) {
    if byte == 0x0A { try add(0x0D) }
    try add(byte)
  }

  /// The digits that the value alone decides where so many bytes stand before it in a group of three: RFC 4648. With none
  /// before it also the digit at the end that it decides in part, as the end of a text has it.
  private static func base64(
    _ value: Span<UInt8>, _ alphabet: Base64Digits, _ shift: Int,
    _ body: (Span<UInt8>) throws(SecretMemoryError) -> Void
  ) throws(SecretMemoryError) {
    var text = try PatternText(capacity: value.count * 2)
    let bits = (shift + value.count) * 8
    // The first digit that holds no bit of what stands before.
    var digit = (shift * 8 + 5) / 6
    while digit * 6 + 6 <= bits {
      try text.add(alphabet.digit(sixBits(of: value, at: digit * 6 - shift * 8)))
      digit += 1
    }
    try body(text.span)
    guard shift == 0, digit * 6 < bits else { return }
    try text.add(alphabet.digit(sixBits(of: value, at: digit * 6)))
    try body(text.span)
  }

  /// The bits from an offset on; those behind the end are 0.
  private static func sixBits(of value: Span<UInt8>, at start: Int) -> UInt8 {
    var bits: UInt8 = 0
    for bit in start..<start + 6 {
      let byte = bit / 8 < value.count ? value[bit / 8] : 0
      bits = bits << 1 | byte >> UInt8(7 - bit % 8) & 1
    }
    return bits
  }
}

extension UInt8 {
  fileprivate var isBlankOrReturn: Bool { self == 0x20 || self == 0x09 || self == 0x0D }
}

/// A form that grows in locked memory.
struct PatternText: ~Copyable {
  private var bytes: SecretBytes
  private var count = 0

  init(capacity: Int) throws(SecretMemoryError) { bytes = try SecretBytes(count: capacity) }

  var span: Span<UInt8> {
    @_lifetime(borrow self)
    borrowing get { bytes.span.extracting(..<count) }
  }

  mutating func add(_ byte: UInt8) throws(SecretMemoryError) {
    if count == bytes.count { try bytes.resize(to: count * 2 + 64) }
    bytes[count] = byte
    count += 1
  }
}
