import Model
import Synchronization
import TestSupport

extension SplitMix64 {
  /// Any Unicode string but one with a NUL; full of what has to be escaped somewhere.
  mutating func string(upTo length: Int = 12) -> ExactString {
    let scalars = (0..<Int.random(in: 0...length, using: &self)).map { _ in scalar() }
    var text = String.UnicodeScalarView()
    text.append(contentsOf: scalars)
    return ExactString(String(text))
  }

  private mutating func scalar() -> Unicode.Scalar {
    let range: ClosedRange<UInt32> =
      switch Int.random(in: 0..<6, using: &self) {
      case 0: 1...0x1F
      case 1: 0x7F...0x7FF
      case 2: 0x800...0x1_0FFF
      case 3: 0x1_0000...0x10_FFFF
      default: 0x20...0x7F
      }
    let scalar = Unicode.Scalar(UInt32.random(in: range, using: &self))
    return scalar ?? "\u{E000}"
  }

  mutating func bytes(upTo length: Int = 12) -> [UInt8] {
    (0..<Int.random(in: 0...length, using: &self)).map { _ in UInt8.random(in: 0...255, using: &self) }
  }

  /// Any real; NaN only as the one that `nan` reads as.
  mutating func real() -> Double {
    let number = Double(bitPattern: next())
    if number.isNaN { return .nan }
    return Bool.random(using: &self) ? number : Double.random(in: -1e6...1e6, using: &self).rounded()
  }

  /// Any date that property lists hold, half of them with a fraction.
  mutating func date() -> SettingDate {
    let seconds = Int64.random(in: -8_000_000_000_000_000...8_000_000_000_000_000, using: &self)
    let moment = Double(seconds >> Int64.random(in: 0...50, using: &self))
    guard Bool.random(using: &self) else { return SettingDate(sinceReference: moment) ?? 0 }
    return SettingDate(sinceReference: moment + Double.random(in: 0..<1, using: &self)) ?? 0
  }

  mutating func integer() -> Int128 {
    let wide = Int128.random(in: SettingValue.integers, using: &self)
    return wide >> Int128(Int.random(in: 0..<64, using: &self))
  }

  /// A value; `plainJSON` leaves out what JSON can't say and what jq would change.
  mutating func value(depth: Int = 3, plainJSON: Bool = false) -> SettingValue {
    switch Int.random(in: 0..<(depth > 0 ? 9 : 7), using: &self) {
    case 0: .string(string())
    case 1: .integer(plainJSON ? integer() % 1_000_000 : integer())
    case 2: .bool(.random(using: &self))
    case 3: plainJSON ? .bool(true) : .real(real())
    case 4: plainJSON ? .string("") : .date(date())
    case 5: plainJSON ? .integer(0) : .data(bytes())
    case 6: .string(string())
    case 7: .array(children(depth: depth, plainJSON: plainJSON))
    default: .dictionary(members(depth: depth, plainJSON: plainJSON))
    }
  }

  private mutating func children(depth: Int, plainJSON: Bool) -> [SettingValue] {
    (0..<Int.random(in: 0...4, using: &self)).map { _ in value(depth: depth - 1, plainJSON: plainJSON) }
  }

  private mutating func members(depth: Int, plainJSON: Bool) -> [ExactString: SettingValue] {
    children(depth: depth, plainJSON: plainJSON).reduce(into: [:]) { $0[string()] = $1 }
  }
}

/// Stands in for the engine's parser: what it wrote it knows again.
final class RememberingPropertyLists: PropertyListCoding {
  private let values = Mutex<[SettingValue]>([])

  func xml(_ value: SettingValue) throws(StoreError) -> [UInt8] {
    values.withLock { values in
      values.append(value)
      return Array("<plist>\(values.count - 1)</plist>\n".utf8)
    }
  }

  func value(xml text: some Collection<UInt8>) -> SettingValue? {
    let line = String(decoding: text, as: UTF8.self).filter { !$0.isWhitespace }
    guard line.hasPrefix("<plist>"), line.hasSuffix("</plist>") else { return nil }
    return values.withLock { values in
      Int(line.dropFirst(7).dropLast(8)).flatMap { values.indices.contains($0) ? values[$0] : nil }
    }
  }
}

/// The codec that the tests of this folder share, with values as text.
struct TextCodec {
  let codec = SettingCodec(propertyLists: RememberingPropertyLists())

  func text(of value: SettingValue) throws -> String {
    String(decoding: try codec.content(of: value), as: UTF8.self)
  }

  /// nil: EINVAL.
  func value(of text: String, as type: SettingType) -> SettingValue? {
    do {
      return try codec.value(of: Array(text.utf8), as: type)
    } catch {
      guard case .invalidValue = error else { preconditionFailure("\(error)") }
      return nil
    }
  }

  func inferred(_ text: String) -> SettingValue {
    codec.inferred(from: Array(text.utf8))
  }
}

extension ContentPrefix {
  mutating func append(_ bytes: [UInt8]) -> Bool {
    append(bytes.span)
  }
}

extension SettingType {
  /// The results of a `ContentPrefix` for each byte.
  func answers(to content: some Sequence<UInt8>) -> [Bool] {
    var prefix = ContentPrefix(self)
    return content.map { prefix.append([$0]) }
  }

  /// The result of a `ContentPrefix` for all bytes at once.
  func mayBegin(with content: [UInt8]) -> Bool {
    var prefix = ContentPrefix(self)
    return prefix.append(content)
  }
}
