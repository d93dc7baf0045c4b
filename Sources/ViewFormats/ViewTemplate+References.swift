import Platform
public import SecretMemory

extension ViewTemplate {
  /// The text of a template with other references; everything else stays byte for byte.
  ///
  /// `reference`: the path that takes the place of one; nil: it stays.
  /// - Throws: `EINVAL` as `init(templateText:)`; `EFBIG`, `ENOMEM`.
  public static func templateText(
    _ text: borrowing SecretBytes, replacing reference: (String) -> String?
  ) throws(ViewError) -> SecretBytes {
    var writer = try SecretWriter(capacity: text.count, limit: ViewLimits.bytes)
    var scanner = TextScanner(text.span)
    let brace = UInt8(ascii: "{")
    while let byte = scanner.peek() {
      guard byte == brace, scanner.peek(1) == brace else {
        let isEscape = byte == UInt8(ascii: "\\") && scanner.peek(1) == brace && scanner.peek(2) == brace
        for _ in 0..<(isEscape ? 3 : 1) {
          if let byte = scanner.peek() { try writer.append(byte) }
          scanner.position &+= 1
        }
        continue
      }
      let start = scanner.position &+ 2
      var end = start
      while end < scanner.text.count, scanner.text[end] != UInt8(ascii: "}"),
        scanner.text[end] != UInt8(ascii: "|")
      {
        end &+= 1
      }
      let inside = try scanner.name(start..<end)
      let path = inside.trimmingBlanks
      try writer.append("{{")
      if let new = reference(path) {
        let blanks = inside.prefix { $0 == " " || $0 == "\t" }
        let tail = inside.dropFirst(blanks.count + path.count)
        try writer.append(Array("\(blanks)\(References.escaped(new))\(tail)".utf8))
      } else {
        try writer.append(Array(inside.utf8))
      }
      scanner.position = end
    }
    return writer.finish()
  }
}

extension String {
  fileprivate var trimmingBlanks: String {
    let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
    let start = drop(while: isBlank)
    return String(start.reversed().drop(while: isBlank).reversed())
  }
}
