public import Model
public import SecretMemory

/// A recovery code as a person reads, writes and types it: 128 random bits in Crockford's base 32, and two further symbols that
/// find each wrong symbol and each two that changed places.
///
/// `7K2M-9QXD-4FZR-…`, seven groups of four. Letters of either case are the same, O is 0, I and L are 1, and blanks and hyphens
/// between the symbols are skipped.
public enum RecoveryCode {
  /// In bytes.
  static let length = 16
  private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
  /// 128 bits and two zeros.
  private static let dataSymbols = 26
  private static let symbols = dataSymbols + 2
  private static let group = 4
  /// The largest prime number that two symbols have room for: a symbol that is another one, and two neighbours that changed
  /// places, leave another remainder.
  private static let modulus = 1021

  /// A new code. - Throws: `outOfMemory`.
  public static func make() throws(StoreError) -> SlotSecret {
    do {
      var bytes = try SecretBytes(count: length)
      for index in 0..<length { bytes[index] = UInt8.random(in: .min ... .max) }
      return SlotSecret(.recoveryCode, bytes)
    } catch {
      throw .outOfMemory
    }
  }

  /// The code in groups, for a person. - Throws: `outOfMemory`.
  public static func text(of code: SlotSecret) throws(StoreError) -> SecretBytes {
    do {
      var text = try SecretBytes(count: symbols + symbols / group - 1)
      var remainder = 0
      for index in 0..<symbols {
        let value: Int
        if index < dataSymbols {
          value = symbol(index, of: code.bytes)
          remainder = (remainder * 32 + value) % modulus
        } else {
          value = index == dataSymbols ? remainder >> 5 : remainder & 31
        }
        text[index + index / group] = alphabet[value]
        if index % group == 0, index > 0 { text[index + index / group - 1] = UInt8(ascii: "-") }
      }
      return text
    } catch {
      throw .outOfMemory
    }
  }

  /// The five bits of a symbol, the first one first; behind the last bit there are zeros.
  private static func symbol(_ index: Int, of bytes: borrowing SecretBytes) -> Int {
    var value = 0
    for shift in 0..<5 {
      let bit = 5 * index + shift
      let isSet = bit / 8 < length && bytes[bit / 8] >> UInt8(7 - bit % 8) & 1 == 1
      value = value << 1 | (isSet ? 1 : 0)
    }
    return value
  }

  /// The code that a person typed.
  ///
  /// - Throws: `invalidValue` for what is none, or has a typing error; `outOfMemory`.
  public static func parse(_ typed: Span<UInt8>) throws(StoreError) -> SlotSecret {
    var bytes: SecretBytes
    do { bytes = try SecretBytes(count: length) } catch { throw .outOfMemory }
    var (count, remainder, check) = (0, 0, 0)
    for offset in typed.indices where !isSeparator(typed[offset]) {
      guard let value = value(of: typed[offset]) else {
        throw .invalidValue(reason: "such a code has digits and letters without U only")
      }
      if count < dataSymbols {
        remainder = (remainder * 32 + value) % modulus
        guard put(value, count, into: &bytes) else { throw mistyped }
      } else {
        check = check << 5 | value
      }
      count += 1
      guard count <= symbols else { break }
    }
    guard count == symbols else {
      throw .invalidValue(reason: "such a code has \(symbols) digits and letters, in groups of \(group)")
    }
    guard check == remainder else { throw mistyped }
    return SlotSecret(.recoveryCode, bytes)
  }

  private static let mistyped = StoreError.invalidValue(reason: "the code has a typing error")

  /// False: a bit behind the last one is set.
  private static func put(_ value: Int, _ index: Int, into bytes: inout SecretBytes) -> Bool {
    for shift in 0..<5 where value >> (4 - shift) & 1 == 1 {
      let bit = 5 * index + shift
      guard bit / 8 < length else { return false }
      bytes[bit / 8] |= 1 << UInt8(7 - bit % 8)
    }
    return true
  }

  private static func isSeparator(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "\t")
      || byte == UInt8(ascii: "\r")
  }

  private static func value(of byte: UInt8) -> Int? {
    let upper = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) ? byte - 32 : byte
    switch upper {
    case UInt8(ascii: "O"): return 0
    case UInt8(ascii: "I"), UInt8(ascii: "L"): return 1
    default: return alphabet.firstIndex(of: upper)
    }
  }
}
