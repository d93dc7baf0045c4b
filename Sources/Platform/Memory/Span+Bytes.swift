import Glibc

extension [UInt8] {
  /// Adds bytes at the end.
  package mutating func append(copying bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
  }
}

extension MutableSpan<UInt8> {
  /// Puts bytes at an offset; those that do not fit are left out.
  package mutating func copy(_ bytes: Span<UInt8>, at offset: Int) {
    guard offset >= 0, offset < count else { return }
    let number = Swift.min(bytes.count, count - offset)
    unsafe withUnsafeMutableBytes { target in
      unsafe bytes.withUnsafeBytes { source in
        // SAFETY: `number` bytes are there in both.
        unsafe UnsafeMutableRawBufferPointer(rebasing: target[offset..<offset + number])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[..<number]))
      }
    }
  }

  /// getentropy(3): fills all with random bytes of the kernel. - Throws: EIO for more than 256 bytes.
  package mutating func fillWithEntropy() throws(Errno) {
    _ = try unsafe withUnsafeMutableBytes { (bytes) throws(Errno) in
      // SAFETY: the buffer says how long it is.
      try Errno.retrying { unsafe getentropy(bytes.baseAddress, bytes.count) }
    }
  }
}

extension Span<UInt8> {
  /// A copy that outlives the span. Not for secrets.
  package var array: [UInt8] { unsafe withUnsafeBufferPointer { unsafe [UInt8]($0) } }

  /// The text that the bytes are in UTF-8; wrong bytes become U+FFFD. Not for secrets.
  package var text: String {
    unsafe withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
  }

  /// The text that the bytes are in UTF-8; nil: they are not well-formed. Not for secrets.
  package var wellFormedText: String? {
    // `String(validating:)` is generic in the standard library, and takes two to four times as long.
    guard let text = try? UTF8Span(validating: self) else { return nil }
    return String(copying: text)
  }

  package var last: UInt8? { isEmpty ? nil : self[count - 1] }

  /// Whether they begin with the bytes of a text.
  package func starts(with text: String) -> Bool {
    let text = text.utf8.span
    return count >= text.count && extracting(..<text.count).hasSameBytes(as: text)
  }

  /// memchr(3): the offset of the first byte of a value, from an offset on; nil: there is none.
  package func firstOffset(of byte: UInt8, from start: Int = 0) -> Int? {
    guard start < count else { return nil }
    return unsafe extracting(start...).withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return nil }
      // SAFETY: memchr(3) gets the buffer's size.
      guard let found = unsafe memchr(base, Int32(byte), bytes.count) else { return nil }
      return unsafe start + (UnsafeRawPointer(found) - base)
    }
  }

  /// memcmp(3): whether two have the same bytes. Not for secrets: the time tells where they differ.
  package func hasSameBytes(as other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    return unsafe withUnsafeBytes { left in
      unsafe other.withUnsafeBytes { right in
        guard let left = left.baseAddress, let right = right.baseAddress else { return true }
        // SAFETY: both have `count` bytes.
        return unsafe memcmp(left, right, count) == 0
      }
    }
  }
}

extension Hasher {
  /// Adds bytes as they are, without their number.
  package mutating func combine(bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBytes { unsafe combine(bytes: $0) }
  }
}
