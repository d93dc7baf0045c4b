public import Model
public import SecretMemory

/// A one-time code of RFC 6238 (TOTP) or RFC 4226 (HOTP).
public struct OneTimeCode: ~Copyable, Sendable {
  /// The time step or the counter of a code.
  public enum Moment: Hashable, Sendable {
    /// The time step that began then, and its length in seconds.
    case step(since: Timestamp, period: Int64)
    /// The counter that it was computed from; the stored one is the next.
    case counter(UInt64)
  }

  /// The decimal digits in ASCII, 6 to 8.
  public var digits: SecretBytes
  /// The time step or the counter that it is of.
  public var moment: Moment

  /// A code as it was computed.
  public init(digits: consuming SecretBytes, moment: Moment) {
    self.digits = digits
    self.moment = moment
  }

  /// The digits alone.
  public consuming func takeDigits() -> SecretBytes { digits }
}

extension OneTimeCode.Moment {
  /// When the next code replaces it; nil: no time does.
  public var end: Timestamp? {
    guard case .step(let since, let period) = self else { return nil }
    let (end, overflows) = since.seconds.addingReportingOverflow(period)
    return Timestamp(seconds: overflows ? .max : end)
  }
}

/// A keychain in whose process one-time codes are computed, so that the `otpauth:` URI does not come to this one.
public protocol OneTimeCodeKeychain: Sendable {
  /// The present code of an item. - Throws: `notFound`, also for an item without a URI; what that process throws.
  func oneTimeCode(of item: ItemID) throws(StoreError) -> OneTimeCode
}
