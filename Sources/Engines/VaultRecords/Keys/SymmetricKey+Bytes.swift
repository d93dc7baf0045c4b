import Crypto
package import SecretMemory

// The one place where bytes become keys of swift-crypto, and keys bytes.

extension SymmetricKey {
  /// A key of the bytes; the key has a copy of its own, which it wipes.
  package init(copying bytes: Span<UInt8>) {
    // SAFETY: the pointer does not leave the closure.
    self = unsafe bytes.withUnsafeBytes { unsafe SymmetricKey(data: $0) }
  }

  /// Lends the bytes.
  package func withBytes<Result>(_ body: (Span<UInt8>) throws -> Result) throws -> Result {
    try unsafe withUnsafeBytes { bytes in
      // SAFETY: the span does not outlive the closure.
      try body(unsafe Span(_unsafeBytes: bytes))
    }
  }

  /// A copy of the bytes in ordinary memory, for records that are sealed before they are stored.
  package var array: [UInt8] { unsafe withUnsafeBytes { unsafe Array($0) } }

  package func append(to secret: inout SecretBytes) throws {
    try unsafe withUnsafeBytes { try unsafe secret.append($0) }
  }
}
