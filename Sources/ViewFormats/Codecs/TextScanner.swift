import Platform

/// Reads a text from its beginning to its end, and knows the line.
struct TextScanner: ~Escapable {
  let text: Span<UInt8>
  var position = 0
  private var lineStart = 0
  private var lines = 1

  @_lifetime(copy text)
  init(_ text: Span<UInt8>) {
    self.text = text
  }

  var isAtEnd: Bool { position >= text.count }

  /// The byte at an offset from the position; nil: it lies beyond the end.
  func peek(_ distance: Int = 0) -> UInt8? {
    let index = position &+ distance
    return index >= 0 && index < text.count ? text[index] : nil
  }

  /// Takes the byte if it is the next one.
  mutating func take(_ byte: UInt8) -> Bool {
    guard peek() == byte else { return false }
    position &+= 1
    return true
  }

  mutating func skipBlanks() {
    while let byte = peek(), byte.isBlank { position &+= 1 }
  }

  /// Up to the next line feed, or the end.
  mutating func skipLine() {
    position = text.firstOffset(of: 0x0A, from: position) ?? text.count
  }

  /// The line of the position, counted from 1. Positions must not become smaller between two calls.
  mutating func line() -> Int {
    while let feed = text.firstOffset(of: 0x0A, from: lineStart), feed < position {
      lines &+= 1
      lineStart = feed &+ 1
    }
    return lines
  }

  mutating func fault(_ reason: String, entry: [String]? = nil) -> ViewError {
    ViewError(.EINVAL, line: line(), entry: entry, reason)
  }

  /// A name; `EILSEQ`: it is not UTF-8.
  mutating func name(_ range: Range<Int>) throws(ViewError) -> String {
    guard let name = text.extracting(range).wellFormedText else {
      throw ViewError(.EILSEQ, line: line(), "a name is not UTF-8")
    }
    return name
  }

  /// - Throws: `EILSEQ` with the line of the first byte that is not UTF-8; `EINVAL` for a byte order mark.
  mutating func requireUTF8() throws(ViewError) {
    if text.starts(with: "\u{FEFF}") { throw fault("it begins with a byte order mark; remove it") }
    guard !UTF8Text.isValid(text) else { return }
    var line = 1
    var start = 0
    while let feed = text.firstOffset(of: 0x0A, from: start), UTF8Text.isValid(text.extracting(start..<feed))
    {
      line &+= 1
      start = feed &+ 1
    }
    throw ViewError(.EILSEQ, line: line, "it is not UTF-8")
  }
}
