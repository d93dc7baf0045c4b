/// The value of an extended attribute. Most are texts of the store, which a reply needs no copy of.
public enum AttributeValue: Sendable {
  case text(String)
  case bytes([UInt8])

  /// The bytes, copied where they are a text's.
  public var array: [UInt8] {
    switch self {
    case .text(let text): Array(text.utf8)
    case .bytes(let bytes): bytes
    }
  }
}
