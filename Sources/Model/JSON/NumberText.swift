/// The text of a number, checked as it grows.
struct NumberText: Sendable {
  enum Grammar {
    /// Any decimal or exponent form: `+1`, `.5`, `5.`, `007`.
    case any
    /// The syntax of a number in RFC 8259.
    case json
  }

  private enum Place {
    case start, sign, zero, digits, point, fraction, exponentMark, exponentSign, exponent
  }

  private let grammar: Grammar
  private var place = Place.start
  private var text: [UInt8] = []
  private var exponentDigits = 0

  init(_ grammar: Grammar) {
    self.grammar = grammar
  }

  mutating func append(_ byte: UInt8) -> Bool {
    let isDigit = ASCII.isDigit(byte)
    guard let next = isDigit ? place(afterDigit: byte) : place(afterMark: byte) else { return false }
    place = next
    text.append(byte)
    return next != .exponent || staysFinite()
  }

  /// The number as a real; nil where the text is incomplete, or too large for a double.
  var real: Double? {
    guard isComplete, let number = Double(String(decoding: text, as: UTF8.self)) else { return nil }
    return number.isFinite ? number : nil
  }

  /// The number as JSON means it: an integer where there is neither a fraction nor an exponent.
  var value: SettingValue? {
    guard place == .digits || place == .zero else { return real.map(SettingValue.real) }
    guard let number = Int128(String(decoding: text, as: UTF8.self)) else { return nil }
    return SettingValue.integers.contains(number) ? .integer(number) : nil
  }
}

extension NumberText {
  private var isComplete: Bool {
    switch place {
    case .zero, .digits, .fraction, .exponent: true
    case .start, .sign, .point, .exponentMark, .exponentSign: false
    }
  }

  private func place(afterDigit byte: UInt8) -> Place? {
    switch place {
    case .start, .sign: grammar == .json && byte == ASCII.zero ? .zero : .digits
    case .zero: nil
    case .digits: .digits
    case .point, .fraction: .fraction
    case .exponentMark, .exponentSign, .exponent: .exponent
    }
  }

  private func place(afterMark byte: UInt8) -> Place? {
    switch byte {
    case ASCII.minus: placeAfterSign(isPlus: false)
    case ASCII.plus: placeAfterSign(isPlus: true)
    case ASCII.point: placeAfterPoint
    case UInt8(ascii: "e"), UInt8(ascii: "E"): placeAfterExponentMark
    default: nil
    }
  }

  private func placeAfterSign(isPlus: Bool) -> Place? {
    switch place {
    case .start: isPlus && grammar == .json ? nil : .sign
    case .exponentMark: .exponentSign
    default: nil
    }
  }

  private var placeAfterPoint: Place? {
    switch place {
    case .start, .sign: grammar == .json ? nil : .point
    case .zero: .point
    case .digits: grammar == .json ? .point : .fraction
    default: nil
    }
  }

  private var placeAfterExponentMark: Place? {
    switch place {
    case .zero, .digits, .fraction: .exponentMark
    default: nil
    }
  }

  /// More digits of a positive exponent never make a number smaller. A few are enough to tell; the rest is
  /// judged at the end, so that a long exponent costs no time.
  private mutating func staysFinite() -> Bool {
    exponentDigits += 1
    let isNegative = text[text.count - 1 - exponentDigits] == ASCII.minus
    return isNegative || exponentDigits > 8 || real != nil
  }
}
