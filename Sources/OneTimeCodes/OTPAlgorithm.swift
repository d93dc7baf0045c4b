import Crypto
import SecretMemory

/// The hash of the HMAC, by the value of `algorithm` in small letters.
enum OTPAlgorithm: String {
  case sha1
  case sha256
  case sha512

  /// The 31 bits of RFC 4226, section 5.3: of the HMAC of the counter.
  func truncated(_ key: Span<UInt8>, counter: UInt64) -> UInt32 {
    switch self {
    case .sha1: Self.truncated(Insecure.SHA1.self, key, counter)
    case .sha256: Self.truncated(SHA256.self, key, counter)
    case .sha512: Self.truncated(SHA512.self, key, counter)
    }
  }

  private static func truncated<Hash: HashFunction>(
    _ hash: Hash.Type, _ key: Span<UInt8>, _ counter: UInt64
  ) -> UInt32 {
    let symmetric = key.withBorrowedData { SymmetricKey(data: $0) }
    let text = (0..<8).map { UInt8(truncatingIfNeeded: counter >> UInt64(56 - 8 * $0)) }
    let code = HMAC<Hash>.authenticationCode(for: text, using: symmetric)
    // SAFETY: the last byte's low half is at most 15, and the shortest code has 20 bytes.
    return unsafe code.withUnsafeBytes { bytes in
      let offset = unsafe Int(bytes[bytes.count - 1] & 15)
      var number: UInt32 = 0
      for index in offset..<offset + 4 { number = unsafe number << 8 | UInt32(bytes[index]) }
      return number & 0x7FFF_FFFF
    }
  }
}
