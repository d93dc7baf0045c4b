import Platform
import SecretMemory
import Testing
import ViewFormats

/// Files that views show, and what is stored of a view.
enum ViewTarget {
  static let prefix = "view-"

  static func samples(_ format: ViewFormat) -> [[UInt8]] {
    texts(format).map { Array($0.utf8) }
  }

  /// The stored form of a view of each format.
  static var stored: [[UInt8]] {
    ViewFormat.allCases.flatMap { format in
      samples(format).compactMap { text in
        (try? template(text, format, .portable).encoded())?.unprotected
      }
    }
  }

  private static func texts(_ format: ViewFormat) -> [String] {
    switch format {
    case .env:
      [
        "# mine\nexport A=a'b c'\"d\\\"\"\\e # why\nB=\"x\\\ny\\n\"\nC=\nD='it'\\''s'\n",
        "A=1\nB='x y $z'\nC=\"a b\"\n\nE='two\nlines'\n",
      ]
    case .json: [#"{"a": "x\u00e9\ud83d\ude00\/\n", "b": [1, -2.5e+3, true, null, {"c": "", "d": []}]}"#]
    case .ini: ["# mine\n[default]\nkey = a b\ns3 =\n  max = 20\n\n  size = 8MB\n[profile x]\nregion= eu\n"]
    case .netrc: ["# mine\nmachine a login u password p\nmacdef m\ncd\n\ndefault password q\n"]
    case .npmrc: ["; mine\n//r/:_authToken=a\\;b\nca[]=\"a\\n\"\nca[]='c'\n[s]\nk = \"\\\\${H}\"\nflag\n"]
    case .pgpass: ["# mine\nh\\::5432:*:u:a\\:b\\\\c\n"]
    case .dockerConfig:
      [#"{"auths": {"h": {"auth": "dTpw", "identitytoken": "t"}}, "HttpHeaders": {"X": "y"}}"#]
    case .template: ["a {{ keychain/generic/a/b | json }} \\{{ {{keychain/generic/c}}\n"]
    }
  }

  static func run(_ bytes: [UInt8], _ format: ViewFormat) -> String {
    guard format == .env else { return run(bytes, format, .portable) }
    return EnvDialect.allCases.map { run(bytes, format, $0) }.joined(separator: "|")
  }

  /// Parses, renders the same values again, and compares.
  private static func run(_ bytes: [UInt8], _ format: ViewFormat, _ dialect: EnvDialect) -> String {
    Parser.outcome {
      let template = try template(bytes, format, dialect)
      guard format.isWritable else {
        _ = try template.render { (_, body) throws(ViewError) in try body(bytes.span) }
        return "rendered"
      }
      let document = try ViewDocument(parsing: try SecretBytes(copying: bytes.span), as: format, dialect)
      let entries = Dictionary(uniqueKeysWithValues: document.entries.map { ($0.name, $0) })
      let lender: ViewTemplate.Lender = { (slot, body) throws(ViewError) in
        guard let entry = entries[slot.name] else { return }
        let value = try document.value(of: entry)
        try body(value.span)
      }
      let rendered = try template.render(lender)
      #expect(rendered.unprotected == bytes, "\(format) \(dialect): \(bytes)")
      _ = try template.exposures(lender)
      let merge = try document.merge(with: template, newReference: { _ in "keychain/generic/new/a" }, lender)
      #expect(merge.isUnchanged, "\(format) \(dialect): \(bytes)")
      return "\(format) \(document.entries.isEmpty)"
    }
  }

  private static func template(
    _ bytes: [UInt8], _ format: ViewFormat, _ dialect: EnvDialect
  ) throws -> ViewTemplate {
    let text = try SecretBytes(copying: bytes.span)
    guard format.isWritable else { return try ViewTemplate(templateText: text, dialect) }
    return try ViewDocument(parsing: text, as: format, dialect).template {
      "keychain/generic/a/" + $0.name.joined()
    }
  }

  /// A stored form that reads is the one form of its template.
  static func runStored(_ bytes: [UInt8]) -> String {
    Parser.outcome {
      let template = try ViewTemplate(encoded: try SecretBytes(copying: bytes.span))
      #expect(try template.encoded().unprotected == bytes, "\(bytes)")
      return try template.render { (_, body) throws(ViewError) in try body(bytes.span) }.isEmpty
        ? "empty" : "rendered"
    }
  }
}
