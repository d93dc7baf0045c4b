import Platform

/// A string that equals another only when both hold the same Unicode scalars.
///
/// `String` compares by canonical equivalence, so that a composed and a decomposed "é" are one key of a
/// dictionary. Property lists, keychains and file names know no such rule, and neither does Keyhole:
/// names and values of the store are `ExactString`s. The order is that of the scalars, which is also the
/// order of the UTF-8 bytes.
public struct ExactString: Sendable {
  /// The text, with the scalars that it was made of.
  public let string: String

  /// Keeps the string's scalars as they are: nothing is normalised.
  public init(_ string: String) {
    self.string = string
  }

  /// The string that `bytes` encode in UTF-8, or nil where they are not well-formed.
  public init?(utf8 bytes: some Sequence<UInt8>) {
    self.init(utf8: Array(bytes).span)
  }

  /// The same for bytes in a row.
  public init?(utf8 bytes: Span<UInt8>) {
    guard let string = bytes.wellFormedText else { return nil }
    self.string = string
  }

  /// The bytes in UTF-8, without a terminating NUL.
  public var utf8: String.UTF8View { string.utf8 }
  /// Whether it has no scalars.
  public var isEmpty: Bool { string.isEmpty }
}

extension ExactString: Hashable {
  /// Compares the bytes of UTF-8, by memcmp(3).
  public static func == (left: ExactString, right: ExactString) -> Bool {
    // The standard library would compare byte by byte, and this is where a commit spends its time.
    left.string.utf8.span.hasSameBytes(as: right.string.utf8.span)
  }

  /// Hashes the bytes of UTF-8.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(bytes: string.utf8.span)
    hasher.combine(0xFF as UInt8)
  }
}

extension ExactString: Comparable {
  /// Compares the scalars, which is the order of the bytes of UTF-8, whatever the locale.
  public static func < (left: ExactString, right: ExactString) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
  }
}

extension ExactString: ExpressibleByStringLiteral {
  /// The scalars of the literal.
  public init(stringLiteral value: String) {
    self.init(value)
  }
}

extension ExactString: CustomStringConvertible {
  /// The text, without quotes.
  public var description: String { string }
}
