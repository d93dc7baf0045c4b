import Glibc

extension Span<UInt8> {
  /// Lends the bytes as a C string.
  func withTerminatedBytes<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    unsafe withUnsafeBytes { bytes in
      unsafe withUnsafeTemporaryAllocation(byteCount: bytes.count + 1, alignment: 1) { copy in
        // SAFETY: one byte longer than the span, and filled whole.
        unsafe copy.copyMemory(from: bytes)
        unsafe copy[bytes.count] = 0
        return unsafe copy.withMemoryRebound(to: CChar.self) { copy in
          guard let start = copy.baseAddress else {
            preconditionFailure("an allocation of at least one byte")
          }
          return unsafe body(UnsafePointer(start))
        }
      }
    }
  }
}

/// A C string's bytes without the zero at its end.
func nameBytes(_ name: UnsafePointer<CChar>?) -> UnsafeBufferPointer<UInt8> {
  guard let name = unsafe name else { return unsafe UnsafeBufferPointer(start: nil, count: 0) }
  // SAFETY: libfuse hands over zero-terminated names inside its receive buffer.
  let start = unsafe UnsafeRawPointer(name).assumingMemoryBound(to: UInt8.self)
  return unsafe UnsafeBufferPointer(start: start, count: strlen(name))
}
