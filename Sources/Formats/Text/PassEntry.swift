public import Model
import SecretMemory

/// One decrypted file of pass(1) or gopass: the password in the first line, then whatever its user put there.
///
/// A line `key: value` becomes an attribute, `otpauth://…` (or gopass' `totp: KEY`) the item's `otpauth:` URI, a key that sounds
/// secret a companion,
/// and all other lines together the companion `notes`.
public enum PassEntry {
  /// Keys that name secrets, by what they contain in lower case.
  private static let secretWords = [
    "pin", "pass", "secret", "key", "token", "cvv", "cvc", "puk", "recovery", "answer", "code", "otp", "seed",
    "pw", "bearer", "backup", "credential", "kennwort", "passwort", "geheim", "contrase", "senha",
    "mot de passe",
  ]

  /// `path`: the file's folders and its name without the suffix. `service`: where all entries go; nil: by the path.
  public static func item(
    _ content: ByteSource, path: [String], service: ExactString?
  ) throws(FormatError) -> ItemEntry {
    var lines = lines(of: content)
    let password = lines.isEmpty ? 0..<0 : lines.removeFirst()
    var entry = ItemEntry(identity(path, service), [], SecretSlice(content, password))
    var rest: [Range<Int>] = []
    for line in lines where !line.isEmpty {
      if try !read(line, content, into: &entry) { rest.append(line) }
    }
    if let notes = try notes(rest, content) {
      entry.companions.append(ItemEntry.Companion(name: "notes", secret: notes))
    }
    return entry
  }

  private static func identity(_ path: [String], _ service: ExactString?) -> ItemIdentity {
    if let service { return .generic(service: service, account: ExactString(path.joined(separator: "/"))) }
    let folder = path.count > 1 ? path.dropLast().joined(separator: "/") : path.first ?? ""
    return .generic(service: ExactString(folder), account: ExactString(path.count > 1 ? path.last ?? "" : ""))
  }

  private static func lines(of content: ByteSource) -> [Range<Int>] {
    var lines: [Range<Int>] = []
    var start = 0
    for index in content.whole where content[index] == 0x0A {
      lines.append(start..<index)
      start = index + 1
    }
    if start < content.count { lines.append(start..<content.count) }
    return lines
  }

  /// Whether the line is an attribute or a companion of its own.
  private static func read(
    _ line: Range<Int>, _ content: ByteSource, into entry: inout ItemEntry
  ) throws(FormatError) -> Bool {
    let slice = SecretSlice(content, line)
    if content.starts("otpauth://", at: line.lowerBound) {
      return try addCode(slice, ItemEntry.Companion.codeName, to: &entry)
    }
    // gopass marks the beginning of its lines so.
    if content.starts("---", at: line.lowerBound), line.count == 3 { return true }
    guard let colon = line.first(where: { content[$0] == UInt8(ascii: ":") }), colon > line.lowerBound,
      colon + 1 < line.upperBound, content[colon + 1] == 0x20, colon - line.lowerBound <= 64,
      let key = content.text(line.lowerBound..<colon), isKey(key)
    else { return false }
    let value = trimmed((colon + 1)..<line.upperBound, content)
    if key.lowercased() == "totp" || content.starts("otpauth://", at: value.lowerBound) {
      return try addCode(SecretSlice(content, value), key, to: &entry)
    }
    if secretWords.contains(where: key.lowercased().contains) {
      return add(SecretSlice(content, value), key, to: &entry)
    }
    guard let text = content.text(value), !text.utf8.contains(0) else { return false }
    var login = LoginRecord()
    if key.lowercased() == "url" || key.lowercased() == "website" {
      login.addAddress(text)
      entry.attributes.append(ItemEntry.Attribute(unique("user.url", in: entry), text))
    } else {
      login.addField(key, text)
      guard let attribute = login.attributes.first else { return true }
      entry.attributes.append(ItemEntry.Attribute(unique("user." + attribute.name, in: entry), text))
    }
    return true
  }

  private static func isKey(_ key: String) -> Bool {
    key.unicodeScalars.allSatisfy { scalar in
      scalar == "_" || scalar == "-" || scalar == " " || scalar == "." || scalar.properties.isAlphabetic
        || scalar.properties.numericType != nil
    } && key.first != " " && key.last != " "
  }

  private static func trimmed(_ range: Range<Int>, _ content: ByteSource) -> Range<Int> {
    var start = range.lowerBound
    while start < range.upperBound, content[start] == 0x20 { start += 1 }
    return start..<range.upperBound
  }

  private static func unique(_ name: String, in entry: ItemEntry) -> String {
    let isTaken = { (name: String) in entry.attributes.contains { $0.name == name } }
    guard isTaken(name) else { return name }
    var number = 2
    while isTaken("\(name)-\(number)") { number += 1 }
    return "\(name)-\(number)"
  }

  private static func addCode(
    _ slice: SecretSlice, _ name: String, to entry: inout ItemEntry
  ) throws(FormatError) -> Bool {
    guard entry.otpauth == nil, let code = try OneTimeCode(slice),
      case .generic(let service, let account) = entry.identity
    else { return add(slice, name, isOneTimeCode: true, to: &entry) }
    entry.otpauth = code.uri(issuer: service.string, account: account.string)
    return true
  }

  private static func add(
    _ secret: SecretSlice, _ name: String, isOneTimeCode: Bool = false, to entry: inout ItemEntry
  ) -> Bool {
    let names = Set(entry.companions.map(\.name))
    var unique = name
    var number = 2
    while names.contains(unique) {
      unique = "\(name)-\(number)"
      number += 1
    }
    let companion = ItemEntry.Companion(name: unique, secret: secret, isOneTimeCode: isOneTimeCode)
    entry.companions.append(companion)
    return true
  }

  /// The lines that are nothing else, as one secret; one part of the content where they follow each other.
  private static func notes(_ lines: [Range<Int>], _ content: ByteSource) throws(FormatError) -> SecretSlice?
  {
    guard let first = lines.first, let last = lines.last else { return nil }
    let end = min(last.upperBound + 1, content.count)
    let isWhole =
      lines.count == 1 || zip(lines, lines.dropFirst()).allSatisfy { $1.lowerBound - $0.upperBound <= 2 }
    if isWhole { return SecretSlice(content, first.lowerBound..<end) }
    var joined = try DecodedSecret()
    for line in lines {
      try joined.append(content, line)
      try joined.append(0x0A as UInt8)
    }
    let source = ByteSource(joined.finish())
    return SecretSlice(source, source.whole)
  }
}
