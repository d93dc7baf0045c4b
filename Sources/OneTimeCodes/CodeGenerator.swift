public import Model
public import SecretMemory
public import Store

/// Computes one-time codes from an `otpauth:` URI: TOTP of RFC 6238, HOTP of RFC 4226, and Steam's, which are TOTP's in another
/// alphabet.
///
/// The key is in protected memory, and what is computed from it on the way is wiped by the caller (`wipeStack`).
public struct CodeGenerator: ~Copyable {
  /// The number of digits that codes have: RFC 4226, section 5.3.
  public static let digits = 6...8
  private static let decimal = Array("0123456789".utf8)
  /// Of codes with five characters, the one of least weight first: `encoder=steam`, as KeePassXC writes it.
  private static let steam = Array("23456789BCDFGHJKMNPQRTVWXY".utf8)

  /// The parameter `counter` of a URI of the type hotp: that of the next code; nil: of the type totp.
  public let counter: UInt64?
  /// How many digits codes have: `digits`, or five of Steam's.
  public let digits: Int
  /// The time step in seconds.
  public let period: Int64
  private let isSteam: Bool
  private let algorithm: OTPAlgorithm
  private let key: SecretBytes
  /// The bytes of the counter in the URI.
  private let counterRange: Range<Int>

  /// - Throws: `invalidValue` for what is no such URI; `unsupported` for one whose codes are others.
  public init(_ uri: borrowing SecretBytes) throws(StoreError) {
    try KeyURI.check(uri)
    let parameters = KeyURIParameters(uri.span)
    let isSteam = parameters.encoder == "steam"
    let digits = isSteam ? 5 : Int(clamping: parameters.digits ?? 6)
    guard isSteam || Self.digits.contains(digits) else {
      throw .unsupported(reason: "the `otpauth` URI wants codes of \(digits) digits; they have 6 to 8")
    }
    // The epoch of a larger one would have no end that a clock can show.
    guard let period = Int64(exactly: parameters.period ?? 30), period <= Int64(Int32.max) else {
      throw .unsupported(reason: "`period` of the `otpauth` URI is too long")
    }
    guard let algorithm = OTPAlgorithm(rawValue: parameters.algorithm ?? "sha1") else {
      throw .unsupported(reason: "`algorithm` of the `otpauth` URI is not SHA1, SHA256 or SHA512")
    }
    key = try Base32.decode(uri.span.extracting(parameters.keyRange))
    (self.digits, self.period, self.algorithm, self.isSteam) = (digits, period, algorithm, isSteam)
    counter = parameters.isCounterBased ? parameters.counter ?? 0 : nil
    counterRange = parameters.counterRange
  }
}

extension CodeGenerator {
  /// The code of the time step that `time` is in, and that step. - Throws: `outOfMemory`.
  public borrowing func code(at time: Timestamp) throws(StoreError) -> OneTimeCode {
    // Before 1970 there is no step.
    let step = max(0, time.seconds) / period
    let digits = try code(counter: UInt64(step))
    return OneTimeCode(
      digits: digits, moment: .step(since: Timestamp(seconds: step * period), period: period))
  }

  /// The code of a counter. - Throws: `outOfMemory`.
  public borrowing func code(counter: UInt64) throws(StoreError) -> SecretBytes {
    var number = algorithm.truncated(key.span, counter: counter)
    var code = try Self.empty(count: digits)
    let alphabet = isSteam ? Self.steam : Self.decimal
    for place in 0..<digits {
      code[isSteam ? place : digits - 1 - place] = alphabet[Int(number) % alphabet.count]
      number /= UInt32(alphabet.count)
    }
    return code
  }

  /// The URI with the next counter. - Throws: `unsupported` after the last one; `outOfMemory`.
  public borrowing func counted(_ uri: borrowing SecretBytes) throws(StoreError) -> SecretBytes {
    guard let counter, counter < .max else { throw .unsupported(reason: "the counter is at its end") }
    let number = Array("\(counter + 1)".utf8)
    do {
      var new = try SecretBytes(copying: uri.span.extracting(..<counterRange.lowerBound))
      try new.append(number.span)
      try new.append(uri.span.extracting(counterRange.upperBound...))
      return new
    } catch { throw .outOfMemory }
  }

  static func empty(count: Int) throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(count: count) } catch { throw .outOfMemory }
  }
}
