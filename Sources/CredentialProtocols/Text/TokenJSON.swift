import Formats
import SecretMemory

/// Objects of JSON around one token.
enum TokenJSON {
  /// `before`, the token as a string of JSON, and `after`.
  static func make(
    _ before: String, _ token: borrowing SecretBytes, prefix: String = "", _ after: String
  ) throws(FormatError) -> SecretBytes {
    try OneLine.read(token) { (line) throws(FormatError) in
      guard line.isText else { throw FormatError("the secret is not UTF-8, which JSON can't hold") }
      return try AnswerBytes.make { (sink) throws(FormatError) in
        try sink.write(before + "\"" + prefix)
        try JSONText.write(line, to: sink)
        try sink.write("\"" + after)
      }
    }
  }
}
