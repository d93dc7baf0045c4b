import Platform
import SecretMemory
import ViewFormats

/// A file in which a program keeps secrets without encryption, and what Keyhole makes of it.
package struct PlainPlace: Equatable, Sendable {
  /// The kinds of what takes a file's place.
  enum Form: Equatable, Sendable {
    /// A view, because the format can be parsed.
    case view(ViewFormat)
    /// An item with all of the file as its secret.
    case item
  }

  let path: String
  let form: Form
  /// A name for the view or the item, of letters, digits, `-`, `_` and `.`.
  let name: String

  /// The form of any file, by its name and folder.
  init(_ path: String) {
    self.path = path
    let file = Files.name(of: path)
    let folder = Files.name(of: Files.folder(of: path))
    let known: (ViewFormat, String)? =
      switch (folder, file) {
      case (_, ".netrc"), (_, "_netrc"): (.netrc, "netrc")
      case (_, ".npmrc"): (.npmrc, "npmrc")
      case (_, ".pgpass"): (.pgpass, "pgpass")
      case (".aws", "credentials"), (".aws", "config"): (.ini, "aws-\(file)")
      case (".docker", "config.json"): (.dockerConfig, "docker-config")
      // All of an editor's settings would be a great many items.
      case ("User", "settings.json"), ("zed", "settings.json"): nil
      case (_, "mcp.json"), (_, "mcp_config.json"), (".continue", "config.json"):
        (.json, "\(folder.drop { $0 == "." })-\(file)")
      case (_, _) where file == ".env" || file.hasPrefix(".env."): (.env, "\(folder)\(file)")
      case (_, _) where file.hasSuffix(".env"): (.env, "\(folder.drop { $0 == "." })-\(file)")
      case (_, _) where file.hasSuffix(".json"): (.json, file)
      default: nil
      }
    form = known.map { .view($0.0) } ?? .item
    let parent = folder.drop { $0 == "." } + "-"
    name = Self.harmless(known?.1 ?? parent + file)
  }

  /// The same file as one item.
  var asItem: PlainPlace { PlainPlace(path: path, form: .item, name: name) }

  private init(path: String, form: Form, name: String) {
    (self.path, self.form, self.name) = (path, form, name)
  }

  /// Whether the text can be parsed. Editors allow comments in their JSON, which is none then.
  func canParse(_ text: borrowing SecretBytes) -> Bool {
    guard case .view(let format) = form, let copy = try? SecretBytes(copying: text) else { return true }
    return Self.parse(copy, format) != nil
  }

  /// The files of programs that are known to keep secrets in them, of a home and of the folder of a project.
  static func known(home: String, folder: String) -> [PlainPlace] {
    var paths = [
      "\(folder)/.env", "\(folder)/.npmrc", "\(home)/.netrc", "\(home)/.npmrc", "\(home)/.pgpass",
      "\(home)/.aws/credentials", "\(home)/.docker/config.json", "\(home)/.config/gh/hosts.yml",
      "\(home)/.cargo/credentials.toml", "\(home)/.cargo/credentials",
    ]
    // Editors and their assistants: API keys, and servers that are started with them in their variables.
    let editors = ["Code", "Code - OSS", "VSCodium", "Cursor", "Windsurf"].map {
      "\(home)/.config/\($0)/User"
    }
    paths += editors.flatMap { ["\($0)/settings.json", "\($0)/mcp.json"] }
    paths += [
      ".config/zed/settings.json", ".cursor/mcp.json", ".codeium/windsurf/mcp_config.json",
      ".continue/config.json", ".continue/config.yaml",
    ].map { "\(home)/\($0)" }
    let keys = (try? Files.names(in: home + "/.ssh")) ?? []
    paths += keys.sorted().filter { !$0.hasSuffix(AdoptionJournal.remainsEnding) }.map {
      "\(home)/.ssh/\($0)"
    }
    var seen: Set<String> = []
    return paths.filter { seen.insert($0).inserted }.map { PlainPlace($0) }
  }

  private static func harmless(_ name: String) -> String {
    let name = name.unicodeScalars.map { scalar -> Character in
      let isHarmless = scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
      return isHarmless || "-_.".unicodeScalars.contains(scalar) ? Character(scalar) : "-"
    }
    // A dot at the beginning is percent-encoded in the tree.
    let visible = String(name.drop { $0 == "." })
    guard !visible.isEmpty else { return "file" }
    // The names of temporary files can't be those of views.
    let isTemporary =
      visible.hasPrefix("tmp") || [".tmp", ".lock", ".swp"].contains { visible.hasSuffix($0) }
    return (isTemporary ? "file-" : "") + visible.prefix(100) + (isTemporary ? "-" : "")
  }
}

// MARK: - Secrets

extension PlainPlace {
  /// How many secrets the text of one of the known files has; 0 where it has none. A text that does not parse counts as one where a
  /// line of it names a secret.
  func secrets(in text: borrowing SecretBytes) -> Int {
    if let format = parsedFormat, let copy = try? SecretBytes(copying: text),
      let document = Self.parse(copy, format)
    {
      return Self.secrets(in: document, format)
    }
    if case .view(let format) = form, format != .json {
      return Self.namesSecret(text.span, format) ? 1 : 0
    }
    if path.hasSuffix(".json") || path.hasSuffix(".yaml") { return SettingLines.secrets(in: text.span) }
    return Self.hasToken(text.span) || Self.isOpenKey(text.span) ? 1 : 0
  }

  /// Settings of editors are JSON, often with comments, which is none then.
  private var parsedFormat: ViewFormat? {
    if case .view(let format) = form { return format }
    return path.hasSuffix(".json") ? .json : nil
  }

  /// Whether a line that is no comment has the word that stands before a secret in files of a format.
  private static func namesSecret(_ text: Span<UInt8>, _ format: ViewFormat) -> Bool {
    let word =
      switch format {
      case .env: "="
      case .dockerConfig, .json, .template: "auth\""
      case .ini: "aws_secret_access_key"
      case .netrc: "password"
      case .npmrc: "_auth"
      case .pgpass: ":"
      }
    var start = 0
    while start < text.count {
      let end = text.firstOffset(of: 0x0A, from: start) ?? text.count
      let isComment = text[start] == UInt8(ascii: "#")
      while start < end, !isComment {
        if text.extracting(start..<end).starts(with: word) { return true }
        start += 1
      }
      start = end + 1
    }
    return false
  }

  private static func secrets(in document: ViewDocument, _ format: ViewFormat) -> Int {
    document.entries.filter { entry in
      guard isSecret(entry.name, format), let value = try? document.value(of: entry) else {
        return false
      }
      return format == .json ? value.count >= SettingLines.shortest : !value.isEmpty
    }.count
  }

  private static func parse(_ text: consuming SecretBytes, _ format: ViewFormat) -> ViewDocument? {
    let dialects: [EnvDialect] =
      format == .env ? [.portable, .node, .compose, .python, .sh, .systemd, .docker] : [.portable]
    for dialect in dialects {
      guard let copy = try? SecretBytes(copying: text) else { return nil }
      if let document = try? ViewDocument(parsing: copy, as: format, dialect) { return document }
    }
    return nil
  }

  /// Other values of these two are settings.
  private static func isSecret(_ name: [String], _ format: ViewFormat) -> Bool {
    let key = name.last ?? ""
    switch format {
    case .npmrc: return ["_authToken", "_auth", "_password"].contains { key.hasSuffix($0) }
    case .json: return SettingLines.isSecret(key)
    case .ini: return ["aws_secret_access_key", "aws_session_token"].contains(key)
    default: return true
    }
  }

  /// A token of gh or of cargo.
  private static func hasToken(_ text: Span<UInt8>) -> Bool {
    var start = 0
    while start < text.count {
      let end = text.firstOffset(of: 0x0A, from: start) ?? text.count
      var first = start
      while first < end, text[first] == 0x20 { first += 1 }
      let line = text.extracting(first..<end)
      for word in ["oauth_token: ", "token = \"", "token=\""]
      where line.starts(with: word) && line.count > word.utf8.count + 1 {
        return true
      }
      start = end + 1
    }
    return false
  }

  /// A private key of OpenSSH or in PEM without a passphrase.
  private static func isOpenKey(_ text: Span<UInt8>) -> Bool {
    // "openssh-key-v1", NUL, the length 4 and "none", in base 64 up to a multiple of six bits.
    if text.starts(with: "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU") {
      return true
    }
    for kind in ["RSA ", "EC ", "DSA ", ""] where text.starts(with: "-----BEGIN \(kind)PRIVATE KEY-----\n") {
      return !text.starts(with: "-----BEGIN \(kind)PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED")
    }
    return false
  }
}
