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

  /// How many of the lines have a secret.
  static func secrets(in text: Span<UInt8>) -> Int {
    var (count, start) = (0, 0)
    while start < text.count {
      let end = text.firstOffset(of: 0x0A, from: start) ?? text.count
      if isSecretLine(text.extracting(start..<end)) { count += 1 }
      start = end + 1
    }
    return count
  }

  /// The name is copied, and the value is not.
  private static func isSecretLine(_ line: Span<UInt8>) -> Bool {
    guard let colon = line.firstOffset(of: UInt8(ascii: ":")) else { return false }
    var name: [UInt8] = []
    for index in 0..<colon { name.append(line[index]) }
    let isAround: (UInt8) -> Bool = { [0x20, 0x09, 0x22, 0x27, 0x2C, 0x2D, 0x7B, 0x0D].contains($0) }
    let inner = name.drop(while: isAround).reversed().drop(while: isAround).reversed()
    guard isSecret(String(decoding: inner, as: UTF8.self)) else { return false }
    var (first, last) = (colon + 1, line.count)
    while first < last, isAround(line[first]) { first += 1 }
    while last > first, isAround(line[last - 1]) { last -= 1 }
    // A reference to a variable, or the beginning of an object.
    return last - first >= shortest && line[first] != UInt8(ascii: "$") && line[first] != UInt8(ascii: "{")
  }
}
