/// The value of an extended attribute. Most are texts of the store, which a reply needs no copy of.
public enum AttributeValue: Sendable {
  /// In UTF-8, without a terminating NUL.
  case text(String)
  /// As a program has set them.
  case bytes([UInt8])

  /// The bytes, copied where they are a text's.
  public var array: [UInt8] {
    switch self {
    case .text(let text): Array(text.utf8)
    case .bytes(let bytes): bytes
    }
  }
}
