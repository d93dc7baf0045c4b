import Model

/// Follows new content while it is written in one go, to refuse early what can't become a value.
enum ContentCheck: Sendable {
  /// The commit alone decides.
  case none
  /// The content of a key whose type is known.
  case setting(ContentPrefix)
  /// An `otpauth:` URI.
  case uri(KeyURICheck)
  /// The text of a template.
  case text(TextCheck)
}

extension ContentCheck {
  /// Takes the bytes that follow. `expected` is the key's type now: if it has changed, the commit decides.
  ///
  /// - Throws: `invalidValue`, of a template `notRepresentable`, as soon as nothing that could follow makes the content a value.
  mutating func take(
    _ bytes: Span<UInt8>, expecting expected: @autoclosure () -> SettingType?
  ) throws(StoreError) {
    switch self {
    case .none: return
    case .setting(var prefix):
      guard prefix.type == expected() else { return self = .none }
      guard prefix.append(bytes) else {
        throw .invalidValue(reason: "this can't become a value of the key's type")
      }
      self = .setting(prefix)
    case .uri(var check):
      try check.takeLines(bytes)
      self = .uri(check)
    case .text(var check):
      try check.take(bytes)
      self = .text(check)
    }
  }
}

/// Follows a text in UTF-8. A scalar that is not complete yet may be completed by the next write.
struct TextCheck {
  private var scalar = UTF8Check()
  /// nil: it is not known where the text begins.
  private var line: Int?

  /// `isAddition`: what it follows is added to a text.
  init(isAddition: Bool = false) { line = isAddition ? nil : 1 }

  /// - Throws: `notRepresentable` with the line where it is known.
  fileprivate mutating func take(_ bytes: Span<UInt8>) throws(StoreError) {
    for index in bytes.indices {
      let byte = bytes[index]
      guard scalar.append(byte) else {
        throw .notRepresentable(reason: (line.map { "line \($0): " } ?? "") + "the text is not UTF-8")
      }
      if byte == 0x0A { line? += 1 }
    }
  }
}

extension KeyURICheck {
  /// A line with its end, as `echo` writes it, is complete.
  fileprivate mutating func takeLines(_ bytes: Span<UInt8>) throws(StoreError) {
    for index in bytes.indices {
      let byte = bytes[index]
      if byte == 0x0A { try finish() } else { try take(byte) }
    }
  }
}
