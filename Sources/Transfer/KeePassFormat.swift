import Model

/// XML as KeePass 2 and KeePassXC export it. The history and the recycle bin are left out.
struct KeePassFormat {
  static func isKeePass(_ source: Source) -> Bool {
    var scanner = XMLScanner(source)
    return (try? scanner.child()) == "KeePassFile"
  }

  func read(_ source: Source) throws(TransferError) -> Contents {
    var contents = Contents()
    var scanner = XMLScanner(source)
    guard try scanner.child() == "KeePassFile" else { throw TransferError("it is no export of KeePass") }
    var bin = ""
    while let name = try scanner.child() {
      switch name {
      case "Meta": bin = try recycleBin(&scanner)
      case "Root":
        while let name = try scanner.child() {
          if name == "Group" {
            try readGroup(&scanner, [], bin, &contents)
          } else {
            try scanner.skipElement()
          }
        }
      default: try scanner.skipElement()
      }
    }
    return contents
  }

  private func recycleBin(_ scanner: inout XMLScanner) throws(TransferError) -> String {
    var bin = ""
    while let name = try scanner.child() {
      if name == "RecycleBinUUID" { bin = try scanner.content().text() } else { try scanner.skipElement() }
    }
    return bin
  }

  private func readGroup(
    _ scanner: inout XMLScanner, _ path: [String], _ bin: String, _ contents: inout Contents
  ) throws(TransferError) {
    guard path.count < 64 else { throw TransferError("groups are nested too deeply") }
    var path = path
    var isBin = false
    while let name = try scanner.child() {
      switch name {
      case "UUID": isBin = try scanner.content().text() == bin && !bin.isEmpty
      case "Name": path.append(try scanner.content().text())
      case "Entry" where !isBin: contents.items += try readEntry(&scanner, path).items()
      case "Group" where !isBin: try readGroup(&scanner, path, bin, &contents)
      default: try scanner.skipElement()
      }
    }
  }

  private func readEntry(_ scanner: inout XMLScanner, _ path: [String]) throws(TransferError) -> Login {
    var login = Login()
    // The outermost group is the database.
    if path.count > 1 { login.attributes.append(("group", path.dropFirst().joined(separator: "/"))) }
    while let name = try scanner.child() {
      switch name {
      case "String": try readString(&scanner, &login)
      case "Times": try readTimes(&scanner, &login)
      case "Tags": login.attributes.append(("tags", try scanner.content().text()))
      default: try scanner.skipElement()
      }
    }
    return login
  }

  private func readString(_ scanner: inout XMLScanner, _ login: inout Login) throws(TransferError) {
    var key = ""
    var value: Passage?
    var isProtected = false
    while let name = try scanner.child() {
      switch name {
      case "Key": key = try scanner.content().text()
      case "Value":
        let attributes = scanner.source.text(scanner.attributes)?.lowercased() ?? ""
        if attributes.contains("protected=\"true\"") {
          throw TransferError("its secrets are encrypted; export it as plain XML")
        }
        isProtected = attributes.contains("protectinmemory=\"true\"")
        value = try scanner.content()
      default: try scanner.skipElement()
      }
    }
    guard let value else { return }
    switch key {
    case "Password": login.password = value
    case "Title": login.title = try value.text()
    case "UserName": login.account = try value.text()
    case "URL": login.address = try value.text()
    case "Notes" where !isProtected: login.notes = try value.text()
    default:
      let isSecret = isProtected || key.lowercased().contains("otp")
      if isSecret {
        login.secrets.append((key, value))
      } else {
        login.attributes.append((key, try value.text()))
      }
    }
  }

  private func readTimes(_ scanner: inout XMLScanner, _ login: inout Login) throws(TransferError) {
    while let name = try scanner.child() {
      switch name {
      case "CreationTime": login.created = Timestamp(iso8601: try scanner.content().text())?.iso8601
      case "LastModificationTime": login.modified = Timestamp(iso8601: try scanner.content().text())?.iso8601
      default: try scanner.skipElement()
      }
    }
  }
}
