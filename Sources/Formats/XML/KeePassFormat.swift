import Model
import SecretMemory

/// XML as KeePass 2 and KeePassXC export it.
///
/// Attachments come where the file has them: KeePass writes them, KeePassXC only their names. Earlier versions of
/// entries, attachments without content and the recycle bin are left out and counted.
struct KeePassFormat {
  /// Groups inside each other.
  private static let deepest = 64

  static func isKeePass(_ source: ByteSource) -> Bool {
    var scanner = XMLScanner(source)
    return (try? scanner.child()) == "KeePassFile"
  }

  private struct State {
    var scanner: XMLScanner
    var bin = ""
    /// Attachments by their numbers.
    var attachments: [String: SecretSlice] = [:]
    var logins: [LoginRecord] = []
    var omissions = Omissions()
  }

  func read(_ source: ByteSource) throws(FormatError) -> Contents {
    var state = State(scanner: XMLScanner(source))
    guard try state.scanner.child() == "KeePassFile" else { throw FormatError("it is no export of KeePass") }
    while let name = try state.scanner.child() {
      switch name {
      case "Meta": try readMeta(&state)
      case "Root": try readRoot(&state)
      default: try state.scanner.skipElement()
      }
    }
    guard try state.scanner.isAtEnd() else { throw state.scanner.error("something follows the end") }
    return Contents(state.logins, leavingOut: state.omissions)
  }

  private func readRoot(_ state: inout State) throws(FormatError) {
    while let name = try state.scanner.child() {
      if name == "Group" { try readGroup(&state, [], depth: 0) } else { try state.scanner.skipElement() }
    }
  }

  private func readMeta(_ state: inout State) throws(FormatError) {
    while let name = try state.scanner.child() {
      switch name {
      case "RecycleBinUUID": state.bin = try state.scanner.content().text()
      case "Binaries":
        while try state.scanner.child() != nil {
          let number = attribute("ID", state.scanner)
          state.attachments[number ?? ""] = try binary(&state.scanner)
        }
      default: try state.scanner.skipElement()
      }
    }
  }

  /// The value of the element that was just opened.
  private func binary(_ scanner: inout XMLScanner) throws(FormatError) -> SecretSlice {
    let isCompressed = attribute("Compressed", scanner)?.lowercased() == "true"
    let content = try scanner.content()
    return SecretSlice(content.source, content.range, isCompressed ? .gzippedBase64 : .base64)
  }

  private func attribute(_ name: String, _ scanner: XMLScanner) -> String? {
    let text = scanner.source.text(scanner.attributes) ?? ""
    for part in text.split(whereSeparator: { $0 == " " || $0 == "\n" || $0 == "\t" }) {
      let pair = part.split(separator: "=", maxSplits: 1)
      guard pair.count == 2, pair[0] == name, pair[1].count > 1 else { continue }
      return String(pair[1].dropFirst().dropLast())
    }
    return nil
  }

  private func readGroup(_ state: inout State, _ path: [String], depth: Int) throws(FormatError) {
    guard depth < Self.deepest else { throw state.scanner.error("groups are nested too deeply") }
    var path = path
    var isBin = false
    while let name = try state.scanner.child() {
      switch name {
      case "UUID":
        let id = try state.scanner.content().text()
        isBin = id == state.bin && !state.bin.isEmpty
      case "Name": path.append(try state.scanner.content().text())
      case "Entry" where isBin:
        try state.scanner.skipElement()
        state.omissions.count("entry of the recycle bin", "entries of the recycle bin")
      case "Entry": state.logins.append(try readEntry(&state, path))
      case "Group" where isBin:
        try state.scanner.skipElement()
        state.omissions.count("group of the recycle bin", "groups of the recycle bin")
      case "Group": try readGroup(&state, path, depth: depth + 1)
      default: try state.scanner.skipElement()
      }
    }
  }

  private func readEntry(_ state: inout State, _ path: [String]) throws(FormatError) -> LoginRecord {
    var login = LoginRecord()
    var codes = KeePassCodeFields()
    // The outermost group is the database.
    if path.count > 1 { login.addField("group", path.dropFirst().joined(separator: "/")) }
    while let name = try state.scanner.child() {
      switch name {
      case "String": try readString(&state.scanner, &login, &codes)
      case "Binary": try readAttachment(&state, &login)
      case "Times": try readTimes(&state.scanner, &login)
      case "Tags": login.addField("tags", try state.scanner.content().text())
      case "History":
        while try state.scanner.child() != nil {
          try state.scanner.skipElement()
          state.omissions.count("earlier version of an entry", "earlier versions of entries")
        }
      default: try state.scanner.skipElement()
      }
    }
    try codes.add(to: &login)
    return login
  }

  private func readAttachment(_ state: inout State, _ login: inout LoginRecord) throws(FormatError) {
    var key = ""
    var value: SecretSlice?
    while let name = try state.scanner.child() {
      switch name {
      case "Key": key = try state.scanner.content().text()
      case "Value":
        if let number = attribute("Ref", state.scanner) {
          try state.scanner.skipElement()
          value = state.attachments[number]
        } else {
          value = try binary(&state.scanner)
        }
      default: try state.scanner.skipElement()
      }
    }
    guard let value, !value.isEmpty else {
      return state.omissions.count(
        "attachment that the file only names (`keepassxc-cli attachment-export` writes it)",
        "attachments that the file only names (`keepassxc-cli attachment-export` writes them)")
    }
    login.addSecret(value, key.isEmpty ? "attachment" : key)
  }

  private func readString(
    _ scanner: inout XMLScanner, _ login: inout LoginRecord, _ codes: inout KeePassCodeFields
  ) throws(FormatError) {
    var key = ""
    var value: SecretSlice?
    var isProtected = false
    while let name = try scanner.child() {
      switch name {
      case "Key": key = try scanner.content().text()
      case "Value":
        guard attribute("Protected", scanner)?.lowercased() != "true" else {
          throw FormatError("its secrets are encrypted; export it as plain XML")
        }
        isProtected = attribute("ProtectInMemory", scanner)?.lowercased() == "true"
        value = try scanner.content()
      default: try scanner.skipElement()
      }
    }
    guard let value, try !codes.take(key, value) else { return }
    try add(value, key, isProtected: isProtected, to: &login)
  }

  private func add(
    _ value: SecretSlice, _ key: String, isProtected: Bool, to login: inout LoginRecord
  ) throws(FormatError) {
    switch key {
    case "Password": login.password = value
    case "Title": login.title = try value.text()
    case "UserName": login.account = try value.text()
    case "URL": login.addAddress(try value.text())
    case "Notes" where !isProtected: login.notes = try value.text()
    case "otp": try login.addCode(value)
    case _ where isProtected || key.lowercased().contains("otp"): login.addSecret(value, key)
    default: login.addField(key, try value.text())
    }
  }

  private func readTimes(_ scanner: inout XMLScanner, _ login: inout LoginRecord) throws(FormatError) {
    var (expires, expiry): (Bool, String?) = (false, nil)
    while let name = try scanner.child() {
      switch name {
      case "CreationTime": login.created = date(try scanner.content())
      case "LastModificationTime": login.modified = date(try scanner.content())
      case "ExpiryTime": expiry = date(try scanner.content())
      case "Expires": expires = try scanner.content().text() == "True"
      default: try scanner.skipElement()
      }
    }
    if expires, let expiry { login.addField("expires", expiry) }
  }

  /// ISO 8601, or as KeePassXC has it base 64 of the seconds since the year 1, little-endian. nil: it is neither.
  private func date(_ text: SecretSlice) -> String? {
    guard let plain = try? text.text() else { return nil }
    if let date = LoginRecord.date(plain) { return date }
    guard let bytes = try? SecretSlice(text.source, text.range, .base64).bytes(), bytes.count == 8 else {
      return nil
    }
    let seconds = bytes.unprotected.reversed().reduce(Int64(0)) { $0 << 8 | Int64($1) }
    let (sinceEpoch, overflows) = seconds.subtractingReportingOverflow(62_135_596_800)
    // Dates of the years 1 to 9999.
    guard !overflows, (-62_135_596_800...253_402_300_799).contains(sinceEpoch) else { return nil }
    return Timestamp(seconds: sinceEpoch).iso8601
  }
}

extension XMLScanner {
  /// Whether nothing but blanks and comments follows.
  mutating func isAtEnd() throws(FormatError) -> Bool {
    while true {
      switch try next() {
      case .end: return true
      case .text(let range):
        guard range.allSatisfy({ source[$0] <= 0x20 }) else { return false }
      case .open, .close: return false
      }
    }
  }
}
