import Platform

/// The lines of a settings file of an editor that give a name a text: `"NAME": "TEXT"` of JSON with comments, `NAME: TEXT` of YAML.
enum SettingLines {
  /// Shorter values are no keys of an interface, but numbers and words.
  static let shortest = 8

  private static let endings = [
    "apikey", "accesskey", "secretkey", "privatekey", "token", "secret", "password", "passwd",
    "authorization",
  ]

  /// Whether a value of this name is a secret in the settings of editors: `apiKey`, `OPENAI_API_KEY`, `github.token`.
  static func isSecret(_ name: some StringProtocol) -> Bool {
    let letters = name.lowercased().filter { $0 != "_" && $0 != "-" }
    return endings.contains { letters.hasSuffix($0) }
  }

  /// How many names of the lines have a secret.
  static func secrets(in text: Span<UInt8>) -> Int {
    var (count, start) = (0, 0)
    while start < text.count {
      let end = text.firstOffset(of: 0x0A, from: start) ?? text.count
      count += secrets(inLine: text.extracting(start..<end))
      start = end + 1
    }
    return count
  }

  /// Several names may be in one line: `{ "name": "x", "apiKey": "…" },`.
  private static func secrets(inLine line: Span<UInt8>) -> Int {
    var (count, colon) = (0, line.firstOffset(of: UInt8(ascii: ":")))
    while let here = colon {
      if isSecret(line, at: here) { count += 1 }
      colon = line.firstOffset(of: UInt8(ascii: ":"), from: here + 1)
    }
    return count
  }

  private static func isAround(_ byte: UInt8) -> Bool {
    [0x20, 0x09, 0x22, 0x27, 0x2C, 0x2D, 0x7B, 0x0D].contains(byte)
  }

  /// The name before a colon is copied, and the value behind it is not.
  private static func isSecret(_ line: Span<UInt8>, at colon: Int) -> Bool {
    var name: [UInt8] = []
    var index = colon
    while index > 0, line[index - 1] != UInt8(ascii: ","), line[index - 1] != UInt8(ascii: "{") {
      index -= 1
      name.append(line[index])
    }
    let inner = name.drop(while: isAround).reversed().drop(while: isAround)
    guard isSecret(String(decoding: inner, as: UTF8.self)) else { return false }
    var (first, last) = (colon + 1, line.count)
    while first < last, line[first] == 0x20 || line[first] == 0x09 { first += 1 }
    guard first < last else { return false }
    if line[first] == UInt8(ascii: "\"") || line[first] == UInt8(ascii: "'") {
      // As far as the quotes go, or the line.
      last = line.firstOffset(of: line[first], from: first + 1) ?? last
      first += 1
    } else {
      while last > first, isAround(line[last - 1]) { last -= 1 }
    }
    // A reference to a variable, or the beginning of an object.
    return last - first >= shortest && line[first] != UInt8(ascii: "$") && line[first] != UInt8(ascii: "{")
  }
}
