import Model

/// Tables of passwords, known by their first line: Chrome's, Firefox's, Bitwarden's, 1Password's, KeePassXC's and
/// KeePass'.
struct CSVFormat {
  /// The content of a column, by its heading in lower case.
  private static let columns: [String: Column] = [
    // Chrome: name,url,username,password,note
    "name": .title, "url": .address, "username": .account, "password": .password, "note": .notes,
    // Firefox adds httpRealm,formActionOrigin,guid,timeCreated,timeLastUsed,timePasswordChanged
    "httprealm": .realm, "formactionorigin": .ignored, "guid": .ignored, "timecreated": .createdMilliseconds,
    "timelastused": .ignored, "timepasswordchanged": .modifiedMilliseconds,
    // KeePassXC: Group,Title,Username,Password,URL,Notes,TOTP,Icon,Last Modified,Created
    "group": .group, "title": .title, "notes": .notes, "totp": .code, "icon": .ignored,
    "last modified": .modified, "created": .created,
    // KeePass: Account,Login Name,Password,Web Site,Comments
    "account": .title, "login name": .account, "web site": .address, "comments": .notes,
    // Bitwarden: folder,favorite,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp
    "folder": .folder, "favorite": .flag("favorite"), "type": .kind, "fields": .fields, "reprompt": .ignored,
    "login_uri": .addresses, "login_username": .account, "login_password": .password, "login_totp": .code,
    "collections": .folder, "archiveddate": .ignored,
    // 1Password: Title,Url,Username,Password,OTPAuth,Favorite,Archived,Tags,Notes
    "otpauth": .code, "archived": .flag("archived"), "tags": .field("tags"), "website": .address,
  ]

  private enum Column: Equatable {
    case title, account, address, addresses, realm, notes, password, code, group, folder, kind, fields
    case created, modified, createdMilliseconds, modifiedMilliseconds, ignored
    /// An attribute of this name; as a flag, only where it is set.
    case field(String), flag(String)
  }

  /// The name of KeePassXC's recycle bin, which the export does not mark otherwise.
  private static let bins: Set<String> = [
    "Recycle Bin", "Papierkorb", "Corbeille", "Papelera de reciclaje", "Cestino", "Prullenbak", "Lixeira",
    "Корзина", "回收站", "ごみ箱",
  ]

  static func isKnown(_ source: ByteSource) -> Bool {
    var names: [String] = []
    _ = try? forEachRow(of: source) { (_, row) throws(FormatError) in
      for field in row { names.append(try field.text().lowercased()) }
      // The first row is enough.
      throw FormatError("")
    }
    let hasPassword = names.contains { columns[$0] == .password }
    return hasPassword && names.count > 2 && names.allSatisfy { columns[$0] != nil }
  }

  func read(_ source: ByteSource) throws(FormatError) -> Contents {
    var columns: [Column] = []
    var logins: [LoginRecord] = []
    var omissions = Omissions()
    try Self.forEachRow(of: source) { (number, row) throws(FormatError) in
      guard number > 1 else { return columns = try Self.columns(row) }
      guard row.count == columns.count else {
        throw FormatError("row \(number) has \(row.count) fields, not \(columns.count)")
      }
      guard let login = try login(row, columns) else {
        return omissions.count("entry of the recycle bin", "entries of the recycle bin")
      }
      logins.append(login)
    }
    guard !columns.isEmpty else { throw FormatError("it is empty") }
    try source.check()
    return Contents(logins, leavingOut: omissions)
  }

  private static func columns(_ head: [SecretSlice]) throws(FormatError) -> [Column] {
    var found: [Column] = []
    for field in head {
      let name = try field.text()
      guard let column = columns[name.lowercased()] else {
        throw FormatError("the column `\(name)` is unknown")
      }
      found.append(column)
    }
    return found
  }

  /// nil: it lies in a recycle bin.
  private func login(_ row: [SecretSlice], _ columns: [Column]) throws(FormatError) -> LoginRecord? {
    var login = LoginRecord()
    var kind = ""
    for (column, field) in zip(columns, row) where !field.isEmpty {
      switch column {
      case .group:
        let path = try field.text().unicodeScalars.split(separator: "/").map { String($0) }
        // The bin is a group of the outermost one, which is the database.
        if path.count > 1, Self.bins.contains(path[1]) { return nil }
        login.addField("group", path.joined(separator: "/"))
      case .kind: kind = try field.text()
      default: try put(field, column, into: &login)
      }
    }
    if !kind.isEmpty, kind != "login" { login.addField("kind", kind) }
    return login
  }

  private func put(
    _ field: SecretSlice, _ column: Column, into login: inout LoginRecord
  ) throws(FormatError) {
    switch column {
    case .password: login.password = field
    case .code: try login.addCode(field)
    case .fields: login.addSecret(field, "fields")
    case .title: login.title = try field.text()
    case .account: login.account = try field.text()
    case .address: login.addAddress(try field.text())
    case .addresses:
      for address in try field.text().split(separator: ",") { login.addAddress(String(address)) }
    case .realm: login.realm = try field.text()
    case .notes: login.notes = try field.text()
    case .folder: login.addField("group", try field.text())
    case .field(let name): login.addField(name, try field.text())
    case .flag(let name):
      if ["1", "true"].contains(try field.text().lowercased()) { login.addField(name, "true") }
    default: try putDate(field, column, into: &login)
    }
  }

  private func putDate(
    _ field: SecretSlice, _ column: Column, into login: inout LoginRecord
  ) throws(FormatError) {
    switch column {
    case .created: login.created = LoginRecord.date(try field.text())
    case .modified: login.modified = LoginRecord.date(try field.text())
    case .createdMilliseconds: login.created = try milliseconds(field)
    case .modifiedMilliseconds: login.modified = try milliseconds(field)
    default: break
    }
  }

  private func milliseconds(_ field: SecretSlice) throws(FormatError) -> String? {
    Digits.number(try field.text().utf8).map { Timestamp(seconds: Int64($0 / 1000)).iso8601 }
  }

  /// RFC 4180, with line feeds alone as well. Rows count from 1; empty lines are none.
  private static func forEachRow(
    of source: ByteSource, _ body: (Int, [SecretSlice]) throws(FormatError) -> Void
  ) throws(FormatError) {
    var row: [SecretSlice] = []
    var number = 0
    // The mark that some programs put before UTF-8.
    var position = source.starts("\u{FEFF}") ? 3 : 0
    while position < source.count {
      let (field, end) = try field(source, position)
      row.append(field)
      position = end
      if position < source.count, source[position] == UInt8(ascii: ",") {
        position += 1
        if position < source.count { continue }
        row.append(SecretSlice(source, position..<position))
      }
      try skipLineEnd(source, &position)
      if row.count > 1 || !row[0].isEmpty {
        number += 1
        try body(number, row)
      }
      row = []
    }
  }

  private static func skipLineEnd(_ source: ByteSource, _ position: inout Int) throws(FormatError) {
    guard position < source.count else { return }
    let start = position
    if source[position] == 0x0D { position += 1 }
    if position < source.count, source[position] == 0x0A { position += 1 }
    guard position > start else {
      throw FormatError("something follows a quoted field at byte \(position)")
    }
  }

  private static func field(
    _ source: ByteSource, _ start: Int
  ) throws(FormatError) -> (SecretSlice, end: Int) {
    guard source[start] == UInt8(ascii: "\"") else {
      var end = start
      while end < source.count, ![0x2C, 0x0A, 0x0D].contains(source[end]) { end += 1 }
      return (SecretSlice(source, start..<end), end)
    }
    var end = start + 1
    while end < source.count {
      if source[end] == UInt8(ascii: "\"") {
        guard end + 1 < source.count, source[end + 1] == UInt8(ascii: "\"") else {
          return (SecretSlice(source, (start + 1)..<end, .csv), end + 1)
        }
        end += 1
      }
      end += 1
    }
    throw FormatError("a quote is not closed at byte \(start)")
  }
}
