package import Formats
package import Model
import Platform
package import SecretMemory

/// A request of git to a helper: git-credential(1), INPUT/OUTPUT FORMAT, and gitcredentials(7), CUSTOM HELPERS.
package struct GitCredential {
  /// The actions of a helper; git has others ignored.
  package enum Action: String, CaseIterable, Sendable {
    case get
    case store
    case erase
  }

  /// `https`; nil: git gave none.
  package private(set) var `protocol`: ExactString?
  /// A host name with `:PORT` behind it, if a port was named.
  package private(set) var host: ExactString?
  /// The path of the repository; nil: git leaves it out unless `credential.useHttpPath` is set.
  package private(set) var path: ExactString?
  /// nil: any.
  package private(set) var username: ExactString?
  /// nil: git gave none.
  package private(set) var password: SecretSlice?
  /// The seconds since 1970 after which the password is of no use.
  package private(set) var expiry: UInt64?
  /// The token that another password can be had with.
  package private(set) var refreshToken: SecretSlice?
  /// The words for parts of the protocol that this git knows, such as `authtype`; empty: it is older than 2.46.
  ///
  /// `state` is not used: git gives a state back also with a password that another helper or a person has given since, so it can't say
  /// that a password is stored already.
  package private(set) var capabilities: Set<String> = []
  /// The scheme of an `Authorization` header, `Bearer`; nil: a user and a password.
  package private(set) var authenticationType: ExactString?
  /// The words behind the scheme in that header.
  package private(set) var credential: SecretSlice?
  /// Whether the credential is of no use later, and is not to be stored.
  package private(set) var isEphemeral = false

  /// Reads the lines up to an empty one, or to the end. Names that are not known are ignored, as git asks for; of a name
  /// that comes twice the last one counts.
  ///
  /// - Throws: `FormatError` for a line without `=`, for a value with a carriage return or a NUL, and for a name that is not
  ///   UTF-8.
  package init(_ source: ByteSource) throws(FormatError) {
    var start = 0
    while start < source.count {
      let end = (start..<source.count).first { source[$0] == 0x0A } ?? source.count
      guard end > start else { break }
      try take(source, start..<end)
      start = end + 1
    }
  }

  private mutating func take(_ source: ByteSource, _ line: Range<Int>) throws(FormatError) {
    guard !line.contains(where: { source[$0] == 0 || source[$0] == 0x0D }) else {
      throw FormatError("a line has a NUL or a carriage return; nothing was looked up")
    }
    guard let equals = line.first(where: { source[$0] == UInt8(ascii: "=") }) else {
      throw FormatError("a line has no `=`; this is not what git sends to a helper")
    }
    let value = equals + 1..<line.upperBound
    switch source.text(line.lowerBound..<equals) {
    case "protocol": `protocol` = try text(source, value)
    case "host": host = try text(source, value)
    case "path": path = try text(source, value)
    case "username": username = try text(source, value)
    case "password": password = SecretSlice(source, value)
    case "oauth_refresh_token": refreshToken = SecretSlice(source, value)
    case "password_expiry_utc": expiry = source.text(value).flatMap(UInt64.init)
    case "authtype": authenticationType = try text(source, value)
    case "credential": credential = SecretSlice(source, value)
    case "ephemeral":
      isEphemeral = ["1", "true", "yes", "on"].contains(source.text(value)?.lowercased() ?? "")
    // An empty value empties a list.
    case "capability[]": capabilities = value.isEmpty ? [] : capabilities.union([source.text(value) ?? ""])
    default: break
    }
  }

  private func text(_ source: ByteSource, _ range: Range<Int>) throws(FormatError) -> ExactString? {
    guard let text = ExactString(utf8: source.bytes(range)) else {
      throw FormatError("a name is not UTF-8; nothing was looked up")
    }
    return text
  }
}

// MARK: The item

extension GitCredential {
  /// The identity of an item for this, with `account` where git names no user; nil: git does not say for which host.
  ///
  /// As git's own helper for libsecret has it: the port is apart from the host, and the path is `object`.
  package func identity(account: ExactString = "") -> InternetIdentity? {
    guard let scheme = `protocol`, !scheme.isEmpty, host?.isEmpty == false || path?.isEmpty == false else {
      return nil
    }
    let (server, port) = Self.split(host ?? "")
    return InternetIdentity(
      server: server, account: username ?? account, protocol: scheme, port: port,
      path: path.flatMap { $0.isEmpty ? nil : $0 })
  }

  /// Whether an item is for exactly this: protocol, host, port and path are the same, and so is the user if git names one.
  package func matches(_ identity: ItemIdentity) -> Bool {
    guard case .internet(var internet) = identity, !internet.account.isEmpty else { return false }
    // How a password is sent is git's to settle with the server.
    internet.authenticationType = nil
    return internet == self.identity(account: internet.account)
  }

  /// The host name, and the port behind the last colon. An address in brackets has colons of its own.
  private static func split(_ host: ExactString) -> (ExactString, UInt16?) {
    guard let colon = host.utf8.lastIndex(of: UInt8(ascii: ":")),
      !host.utf8[colon...].contains(UInt8(ascii: "]")),
      let port = ExactString(utf8: host.utf8[host.utf8.index(after: colon)...]).flatMap(SecretSchema.port),
      let name = ExactString(utf8: host.utf8[..<colon])
    else { return (host, nil) }
    return (name, port)
  }
}

// MARK: The secret

extension GitCredential {
  private static let typeName = "authtype="
  private static let expiryName = "password_expiry_utc="
  private static let tokenName = "oauth_refresh_token="

  /// Whether there is something to store: a user and a password, or an authorization of another scheme.
  package var isStorable: Bool {
    guard !isEphemeral else { return false }
    if let authenticationType { return !authenticationType.isEmpty && credential?.isEmpty == false }
    return password?.isEmpty == false && username?.isEmpty == false
  }

  /// The identity of the item to store. An authorization without a user is one of its scheme, such as `Bearer`.
  package var storedIdentity: InternetIdentity? {
    guard username?.isEmpty != false, let authenticationType else { return identity() }
    var request = self
    request.username = authenticationType
    return request.identity()
  }

  /// The secret of an item for `store`, in the form of git's helper for libsecret: the password, or the credential, and a line each
  /// for its scheme, the time and the token.
  ///
  /// - Throws: `FormatError` without a password, and for one that can't be a line.
  package func storedSecret() throws(FormatError) -> SecretBytes {
    guard let given = authenticationType == nil ? password : credential, !given.isEmpty else {
      throw FormatError("git gave no password to store")
    }
    if let authenticationType { try OneLine.require(authenticationType, "type of the authorization") }
    let word = try given.bytes()
    return try AnswerBytes.make { (sink) throws(FormatError) in
      try sink.write(word.span)
      if let authenticationType { try sink.write("\n\(Self.typeName)\(authenticationType.string)") }
      if let expiry { try sink.write("\n\(Self.expiryName)\(expiry)") }
      if let refreshToken {
        let token = try refreshToken.bytes()
        try sink.write("\n\(Self.tokenName)")
        try sink.write(token.span)
      }
    }
  }

  /// The lines that `get` answers with; nil: the item is for an authorization that this git can't take.
  ///
  /// - Throws: `FormatError` where the item's user or secret has a line break that would be read as another line.
  package func answer(
    username: ExactString, secret: borrowing SecretBytes
  ) throws(FormatError) -> SecretBytes? {
    try OneLine.require(username, "user's name")
    let parts = try Self.parts(secret)
    let isOtherScheme = Self.scheme(secret, parts.others) != nil
    guard !isOtherScheme || capabilities.contains("authtype") else { return nil }
    return try AnswerBytes.make { (sink) throws(FormatError) in
      // Git takes a capability for the helper's only where the answer names it, before the first line that needs it.
      if capabilities.contains("authtype") { try sink.write("capability[]=authtype\n") }
      try sink.write(isOtherScheme ? "credential=" : "username=\(username.string)\npassword=")
      try secret.withSpan(parts.password) { (line) throws(FormatError) in try sink.write(line) }
      try sink.write("\n")
      for line in parts.others {
        try secret.withSpan(line) { (line) throws(FormatError) in try sink.write(line) }
        try sink.write("\n")
      }
    }
  }

  /// Whether the password in an item's secret, or the credential and its scheme, is the one that git names. False: git named none.
  package func hasPassword(of secret: borrowing SecretBytes) throws(FormatError) -> Bool {
    guard let password = authenticationType == nil ? password : credential,
      let parts = try? Self.parts(secret), Self.scheme(secret, parts.others) == authenticationType
    else { return false }
    let given = try password.bytes()
    return try secret.withSpan(parts.password) { (line) throws(FormatError) in
      do throws(SecretMemoryError) { return try SecretBytes(copying: line) == given } catch {
        throw FormatError(error)
      }
    }
  }

  /// nil: the secret is a password.
  private static func scheme(_ secret: borrowing SecretBytes, _ lines: [Range<Int>]) -> ExactString? {
    let bytes = secret.span
    guard let line = lines.first(where: { bytes.extracting($0).starts(with: typeName) }) else { return nil }
    return ExactString(utf8: (line.lowerBound + typeName.utf8.count..<line.upperBound).map { bytes[$0] })
  }

  /// The password's range, and those of the lines that git knows.
  private static func parts(
    _ secret: borrowing SecretBytes
  ) throws(FormatError) -> (password: Range<Int>, others: [Range<Int>]) {
    let bytes = secret.span
    let lines = bytes.lineRanges
    guard let password = lines.first, !password.isEmpty else { throw FormatError("the secret is empty") }
    for line in lines.dropFirst() {
      let text = bytes.extracting(line)
      guard [expiryName, tokenName, typeName].contains(where: { text.starts(with: $0) }) else {
        throw FormatError("the secret has more than one line, and git takes one as a password")
      }
    }
    for line in lines { try OneLine.require(bytes.extracting(line)) }
    return (password, Array(lines.dropFirst()))
  }
}

/// A value of an answer to git.
package enum GitAnswer: String, Sendable {
  case username
  case password

  /// The value in the lines of an answer.
  ///
  /// - Throws: `FormatError` where there is none.
  package func value(in answer: borrowing SecretBytes) throws(FormatError) -> SecretBytes {
    let bytes = answer.span
    let name = rawValue + "="
    guard let line = bytes.lineRanges.first(where: { bytes.extracting($0).starts(with: name) }) else {
      throw FormatError("the answer has no \(rawValue)")
    }
    let range = line.lowerBound + name.utf8.count..<line.upperBound
    return try answer.withSpan(range) { (value) throws(FormatError) in
      do throws(SecretMemoryError) { return try SecretBytes(copying: value) } catch {
        throw FormatError(error)
      }
    }
  }
}
