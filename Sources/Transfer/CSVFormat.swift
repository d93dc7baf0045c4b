import Model

/// Tables of passwords, known by their first line: Chrome's, Firefox's, KeePassXC's and KeePass'.
struct CSVFormat {
  /// What a column holds, by its heading in lower case.
  private static let columns: [String: Column] = [
    // Chrome: name,url,username,password,note
    "name": .title, "url": .address, "username": .account, "password": .password, "note": .notes,
    // Firefox adds httpRealm,formActionOrigin,guid,timeCreated,timeLastUsed,timePasswordChanged
    "httprealm": .realm, "formactionorigin": .ignored, "guid": .ignored, "timecreated": .createdMilliseconds,
    "timelastused": .ignored, "timepasswordchanged": .modifiedMilliseconds,
    // KeePassXC: Group,Title,Username,Password,URL,Notes,TOTP,Icon,Last Modified,Created
    "group": .group, "title": .title, "notes": .notes, "totp": .secret, "icon": .ignored,
    "last modified": .modified, "created": .created,
    // KeePass: Account,Login Name,Password,Web Site,Comments
    "account": .title, "login name": .account, "web site": .address, "comments": .notes,
  ]

  private enum Column {
    case title, account, address, realm, notes, password, secret, group, created, modified
    case createdMilliseconds, modifiedMilliseconds, ignored
  }

  static func isKnown(_ source: Source) -> Bool {
    guard let head = try? rows(of: source, limit: 1).first else { return false }
    let names = head.compactMap { try? $0.text().lowercased() }
    return names.contains("password") && names.count > 2 && names.allSatisfy { columns[$0] != nil }
  }

  func read(_ source: Source) throws(TransferError) -> Contents {
    let rows = try Self.rows(of: source)
    guard let head = rows.first else { throw TransferError("it is empty") }
    var columns: [Column] = []
    for field in head {
      let name = try field.text()
      guard let column = Self.columns[name.lowercased()] else {
        throw TransferError("the column `\(name)` is unknown")
      }
      columns.append(column)
    }
    var contents = Contents()
    for (number, row) in rows.enumerated().dropFirst() {
      guard row.count == columns.count else {
        throw TransferError("row \(number + 1) has \(row.count) fields, not \(columns.count)")
      }
      var login = Login()
      for (column, field) in zip(columns, row) { try put(field, column, into: &login) }
      contents.items += login.items()
    }
    return contents
  }

  private func put(_ field: Passage, _ column: Column, into login: inout Login) throws(TransferError) {
    switch column {
    case .password: login.password = field
    case .secret: login.secrets.append(("TOTP", field))
    case .title: login.title = try field.text()
    case .account: login.account = try field.text()
    case .address: login.address = try field.text()
    case .realm: login.realm = try field.text()
    case .notes: login.notes = try field.text()
    case .group: login.attributes.append(("group", try field.text()))
    case .created: login.created = try date(field)
    case .modified: login.modified = try date(field)
    case .createdMilliseconds: login.created = try milliseconds(field)
    case .modifiedMilliseconds: login.modified = try milliseconds(field)
    case .ignored: break
    }
  }

  private func milliseconds(_ field: Passage) throws(TransferError) -> String? {
    Int64(try field.text()).map { Timestamp(seconds: $0 / 1000).iso8601 }
  }

  private func date(_ field: Passage) throws(TransferError) -> String? {
    Timestamp(iso8601: try field.text())?.iso8601
  }

  /// RFC 4180, with line feeds alone as well.
  private static func rows(of source: Source, limit: Int = .max) throws(TransferError) -> [[Passage]] {
    var rows: [[Passage]] = []
    var row: [Passage] = []
    // The mark that some programs put before UTF-8.
    var position = source.starts("\u{FEFF}") ? 3 : 0
    while position < source.count, rows.count < limit {
      let (field, end) = try field(source, position)
      row.append(field)
      position = end
      if position < source.count, source[position] == UInt8(ascii: ",") {
        position += 1
        if position == source.count { row.append(Passage(source, position..<position)) }
        if position < source.count { continue }
      }
      if position < source.count, source[position] == 0x0D { position += 1 }
      if position < source.count, source[position] == 0x0A { position += 1 }
      if row.count > 1 || !row[0].isEmpty { rows.append(row) }
      row = []
    }
    return rows
  }

  private static func field(_ source: Source, _ start: Int) throws(TransferError) -> (Passage, end: Int) {
    guard source[start] == UInt8(ascii: "\"") else {
      var end = start
      while end < source.count, ![0x2C, 0x0A, 0x0D].contains(source[end]) { end += 1 }
      return (Passage(source, start..<end), end)
    }
    var end = start + 1
    while end < source.count {
      if source[end] == UInt8(ascii: "\"") {
        guard end + 1 < source.count, source[end + 1] == UInt8(ascii: "\"") else {
          return (Passage(source, (start + 1)..<end, .csv), end + 1)
        }
        end += 1
      }
      end += 1
    }
    throw TransferError("a quote is not closed at byte \(start)")
  }
}
