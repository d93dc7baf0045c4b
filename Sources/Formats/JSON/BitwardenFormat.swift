import Model
import SecretMemory

/// JSON as Bitwarden and Vaultwarden export it without encryption.
///
/// Logins become internet passwords or generic ones, secure notes items whose secret is the note, SSH keys items whose
/// secret is the private key; cards, identities and what is unknown keep their JSON as the secret. Hidden fields and
/// one-time codes are companions. What was deleted, earlier passwords and passkeys are left out and counted.
struct BitwardenFormat {
  /// Whether an object of JSON begins as Bitwarden's does.
  static func isBitwarden(_ source: ByteSource) -> Bool {
    var scanner = JSONScanner(source)
    var isKnown = false
    try? scanner.members { (name, scanner) throws(FormatError) in
      isKnown = ["encrypted", "folders", "collections", "items"].contains(name)
      // The first member is enough.
      throw FormatError("")
    }
    return isKnown
  }

  private struct Parts {
    var folders: [String: String] = [:]
    var skipped = Omissions()
    var logins: [LoginRecord] = []
  }

  func read(_ source: ByteSource) throws(FormatError) -> Contents {
    var parts = Parts()
    var scanner = JSONScanner(source)
    try scanner.members { (name, scanner) throws(FormatError) in
      switch name {
      case "encrypted": try checkReadable(source.text(try scanner.value()))
      case "folders", "collections": try readFolders(&scanner, &parts.folders)
      case "items":
        try scanner.elements { (scanner) throws(FormatError) in try readItem(&scanner, &parts) }
      default: _ = try scanner.value()
      }
    }
    try scanner.end()
    return Contents(parts.logins, leavingOut: parts.skipped)
  }

  private func checkReadable(_ encrypted: String?) throws(FormatError) {
    guard encrypted == "false" else {
      throw FormatError("it is encrypted; export it from Bitwarden as `.json`, not `.json (Encrypted)`")
    }
  }

  private func readFolders(
    _ scanner: inout JSONScanner, _ folders: inout [String: String]
  ) throws(FormatError) {
    try scanner.elements { (scanner) throws(FormatError) in
      var id: String?
      var folder: String?
      try scanner.members { (name, scanner) throws(FormatError) in
        switch name {
        case "id": id = try scanner.optionalString()?.text()
        case "name": folder = try scanner.optionalString()?.text()
        default: _ = try scanner.value()
        }
      }
      if let id, let folder { folders[id] = folder }
    }
  }

  // MARK: Items

  /// The fields of an item before its type is known.
  private struct Draft {
    var login = LoginRecord()
    var type = 1
    var isDeleted = false
    var folder: String?
    var notes: SecretSlice?
    /// `card`, `identity` and the like, as they stand in the file.
    var objects: [String: Range<Int>] = [:]
    var privateKey: SecretSlice?
    var earlier = 0
    var passkeys = 0
  }

  private func readItem(_ scanner: inout JSONScanner, _ parts: inout Parts) throws(FormatError) {
    var draft = Draft()
    try scanner.members { (name, scanner) throws(FormatError) in
      try readMember(name, &scanner, &draft)
    }
    guard !draft.isDeleted else { return parts.skipped.count("deleted entry", "deleted entries") }
    parts.skipped.count("earlier password", "earlier passwords", draft.earlier)
    parts.skipped.count("passkey", "passkeys", draft.passkeys)
    if let folder = draft.folder.flatMap({ parts.folders[$0] }) { draft.login.addField("group", folder) }
    parts.logins.append(try login(draft, scanner.source))
  }

  private func readMember(
    _ name: String, _ scanner: inout JSONScanner, _ draft: inout Draft
  ) throws(FormatError) {
    switch name {
    case "type": draft.type = Int(scanner.source.text(try scanner.value()) ?? "") ?? 0
    case "name": draft.login.title = try scanner.optionalString()?.text() ?? ""
    case "notes": draft.notes = try scanner.optionalString()
    case "folderId": draft.folder = try scanner.optionalString()?.text() ?? draft.folder
    case "favorite":
      if scanner.source.text(try scanner.value()) == "true" { draft.login.addField("favorite", "true") }
    case "deletedDate": draft.isDeleted = try scanner.optionalString() != nil
    case "creationDate": draft.login.created = try date(&scanner)
    case "revisionDate": draft.login.modified = try date(&scanner)
    case "passwordHistory": draft.earlier = try count(&scanner)
    case "fields": try readFields(&scanner, &draft.login)
    case "login": try readLogin(&scanner, &draft)
    case "sshKey": try readKey(&scanner, &draft)
    case "card", "identity", "passport", "driversLicense", "bankAccount":
      if try scanner.next() == UInt8(ascii: "{") {
        draft.objects[name] = try scanner.value()
      } else {
        _ = try scanner.value()
      }
    default: _ = try scanner.value()
    }
  }

  private func login(_ draft: Draft, _ source: ByteSource) throws(FormatError) -> LoginRecord {
    var login = draft.login
    if let privateKey = draft.privateKey { login.password = privateKey }
    if draft.type == 2 {
      login.password = draft.notes
      login.addField("kind", "note")
    } else {
      login.notes = try draft.notes?.text() ?? ""
    }
    for (name, range) in draft.objects.sorted(by: { $0.key < $1.key }) {
      login.addField("kind", name)
      login.addSecret(SecretSlice(source, range), name)
    }
    return login
  }

  private func date(_ scanner: inout JSONScanner) throws(FormatError) -> String? {
    let text = try scanner.optionalString()?.text() ?? ""
    return LoginRecord.date(text)
  }

  private func count(_ scanner: inout JSONScanner) throws(FormatError) -> Int {
    guard try scanner.next() == UInt8(ascii: "[") else {
      _ = try scanner.value()
      return 0
    }
    var count = 0
    try scanner.elements { (scanner) throws(FormatError) in
      _ = try scanner.value()
      count += 1
    }
    return count
  }

  private func object(
    _ scanner: inout JSONScanner, _ body: (String, inout JSONScanner) throws(FormatError) -> Void
  ) throws(FormatError) {
    guard try scanner.next() == UInt8(ascii: "{") else {
      _ = try scanner.value()
      return
    }
    try scanner.members(body)
  }

  private func readLogin(_ scanner: inout JSONScanner, _ draft: inout Draft) throws(FormatError) {
    try object(&scanner) { (name, scanner) throws(FormatError) in
      switch name {
      case "username": draft.login.account = try scanner.optionalString()?.text() ?? ""
      case "password": draft.login.password = try scanner.optionalString()
      case "totp":
        if let code = try scanner.optionalString() { try draft.login.addCode(code) }
      case "uris": try readAddresses(&scanner, &draft.login)
      case "fido2Credentials": draft.passkeys = try count(&scanner)
      default: _ = try scanner.value()
      }
    }
  }

  private func readAddresses(_ scanner: inout JSONScanner, _ login: inout LoginRecord) throws(FormatError) {
    guard try scanner.next() == UInt8(ascii: "[") else {
      _ = try scanner.value()
      return
    }
    try scanner.elements { (scanner) throws(FormatError) in
      try object(&scanner) { (name, scanner) throws(FormatError) in
        guard name == "uri", let address = try scanner.optionalString()?.text() else {
          if name != "uri" { _ = try scanner.value() }
          return
        }
        login.addAddress(address)
      }
    }
  }

  private func readKey(_ scanner: inout JSONScanner, _ draft: inout Draft) throws(FormatError) {
    try object(&scanner) { (name, scanner) throws(FormatError) in
      guard let text = try scanner.optionalString() else { return }
      switch name {
      case "privateKey": draft.privateKey = text
      case "publicKey", "keyFingerprint": draft.login.addField(name, try text.text())
      default: draft.login.addSecret(text, name)
      }
    }
  }

  /// Kinds of fields: 0 text, 1 hidden, 2 boolean, 3 a link to another field, which has no value of its own.
  private func readFields(_ scanner: inout JSONScanner, _ login: inout LoginRecord) throws(FormatError) {
    guard try scanner.next() == UInt8(ascii: "[") else {
      _ = try scanner.value()
      return
    }
    try scanner.elements { (scanner) throws(FormatError) in
      var (field, kind): (String, String) = ("", "0")
      var value: SecretSlice?
      try object(&scanner) { (name, scanner) throws(FormatError) in
        switch name {
        case "name": field = try scanner.optionalString()?.text() ?? ""
        case "value": value = try scanner.optionalString()
        case "type": kind = scanner.source.text(try scanner.value()) ?? ""
        default: _ = try scanner.value()
        }
      }
      guard let value else { return }
      if kind == "1" { login.addSecret(value, field) } else { login.addField(field, try value.text()) }
    }
  }
}
