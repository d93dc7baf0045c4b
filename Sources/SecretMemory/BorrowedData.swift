public import FoundationEssentials

// swift-crypto takes and gives Data.

extension Span<UInt8> {
  /// Lends the bytes as Data, which must not leave `body`.
  public func withBorrowedData<Result, Failure: Error>(
    _ body: (Data) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try unsafe withUnsafeBytes { (bytes) throws(Failure) in
      // SAFETY: the Data is read only, by calls that return before the bytes go.
      let borrowed = unsafe bytes.baseAddress.map {
        unsafe Data(
          bytesNoCopy: UnsafeMutableRawPointer(mutating: $0), count: bytes.count, deallocator: .none)
      }
      return try body(borrowed ?? Data())
    }
  }
}

extension SecretBytes {
  /// The bytes of a Data, which is wiped.
  public init(moving data: inout Data) throws(SecretMemoryError) {
    defer { wipe(&data) }
    try self.init(copying: data.span)
  }
}

/// Zeros the bytes of a Data in place, as far as no other value shares them.
public func wipe(_ data: inout Data) {
  // SAFETY: the closure gets all bytes of the Data.
  unsafe data.withUnsafeMutableBytes { unsafe wipe($0) }
}
