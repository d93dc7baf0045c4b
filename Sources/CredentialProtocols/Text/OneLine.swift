package import Formats
import Model
package import SecretMemory

/// A secret that a protocol carries as one line.
package enum OneLine {
  /// The secret without one line feed at its end, lent.
  ///
  /// - Throws: `FormatError` where it is empty, or has a line break or a NUL within: it would be read as something else.
  package static func read<Value: ~Copyable>(
    _ secret: borrowing SecretBytes, _ body: (Span<UInt8>) throws(FormatError) -> Value
  ) throws(FormatError) -> Value {
    let range = secret.span.rangeWithoutFinalLineFeed
    return try secret.withSpan(range) { (line) throws(FormatError) in
      try require(line)
      return try body(line)
    }
  }

  static func require(_ line: Span<UInt8>) throws(FormatError) {
    guard !line.isEmpty else { throw FormatError("the secret is empty") }
    guard line.firstLineBreak == nil else {
      throw FormatError("the secret has more than one line, and the program takes one")
    }
  }

  /// - Throws: `FormatError` for a name with a line break or a NUL.
  static func require(_ name: ExactString, _ what: String) throws(FormatError) {
    guard name.utf8.span.firstLineBreak == nil else {
      throw FormatError(
        "the \(what) has a line break or a NUL, which the program would take for something else")
    }
  }
}
