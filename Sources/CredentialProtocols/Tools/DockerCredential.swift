package import Formats
package import Model
package import SecretMemory

/// The requests of docker and podman to a helper: the protocol of docker-credential-helpers.
package enum DockerCredential {
  /// The actions of a helper.
  package enum Action: String, CaseIterable, Sendable {
    case get
    case store
    case erase
    case list
    case version
  }

  /// The schema of docker's helper for the Secret Service, which marks an item as docker's.
  package static let schema: ExactString = "io.docker.Credentials"

  /// The text by which docker and podman know that there is no item. It goes to standard output, with exit status 1.
  package static let notFound = "credentials not found in native keychain"
  /// The same for a request without a server, and for one without a user.
  package static let noServer = "no credentials server URL"
  package static let noUser = "no credentials username"

  /// The user that stands for an identity token, which docker stores in place of a password.
  package static let tokenUser: ExactString = "<token>"

  /// The server of `get` and `erase`: the input, without white space around it.
  ///
  /// - Throws: `FormatError` where there is none, or it has a line break or a NUL within.
  package static func server(_ source: ByteSource) throws(FormatError) -> ExactString {
    let isBlank: (Int) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains(source[$0]) }
    guard let first = source.whole.first(where: { !isBlank($0) }),
      let last = source.whole.last(where: { !isBlank($0) })
    else { throw FormatError(noServer) }
    guard let text = ExactString(utf8: source.bytes(first..<last + 1)) else {
      throw FormatError("the server's URL is not UTF-8")
    }
    try OneLine.require(text, "server's URL")
    return text
  }

  /// The identity of the item of a server and a user. The server is a URL or a host, as docker spells it.
  package static func identity(server: ExactString, account: ExactString) -> ItemIdentity {
    .internet(InternetIdentity(server: server, account: account))
  }

  /// The input of `store`.
  package struct Credential {
    package let server: ExactString
    package let username: ExactString
    package let secret: SecretSlice

    /// Reads `{"ServerURL": …, "Username": …, "Secret": …}`; other members are ignored.
    ///
    /// - Throws: `FormatError` for what is not JSON, or has no server, user or secret.
    package init(_ source: ByteSource) throws(FormatError) {
      var (server, username): (String, String) = ("", "")
      var secret: SecretSlice?
      var scanner = JSONScanner(source)
      try scanner.members { (name, scanner) throws(FormatError) in
        switch name {
        case "ServerURL": server = try scanner.optionalString()?.text() ?? ""
        case "Username": username = try scanner.optionalString()?.text() ?? ""
        case "Secret": secret = try scanner.optionalString()
        default: _ = try scanner.value()
        }
      }
      try scanner.end()
      guard !server.isEmpty else { throw FormatError(noServer) }
      guard !username.isEmpty else { throw FormatError(noUser) }
      guard let secret, !secret.isEmpty else { throw FormatError("no credentials secret") }
      (self.server, self.username, self.secret) = (ExactString(server), ExactString(username), secret)
      try OneLine.require(self.server, "server's URL")
    }
  }

  /// The answer to `get`: one line of JSON.
  package static func answer(
    server: ExactString, username: ExactString, secret: borrowing SecretBytes
  ) throws(FormatError) -> SecretBytes {
    let range = secret.span.rangeWithoutFinalLineFeed
    return try AnswerBytes.make { (sink) throws(FormatError) in
      try sink.write("{\"ServerURL\":")
      try sink.writeJSON(server.string)
      try sink.write(",\"Username\":")
      try sink.writeJSON(username.string)
      try sink.write(",\"Secret\":")
      try secret.withSpan(range) { (secret) throws(FormatError) in try sink.writeJSON(secret) }
      try sink.write("}\n")
    }
  }

  /// The answer to `list`: one line of JSON, the users by their servers.
  package static func list(_ users: [ExactString: ExactString]) -> String {
    let members = users.sorted { $0.key < $1.key }.map { server, user in
      "\(server.string.quotedAsJSON):\(user.string.quotedAsJSON)"
    }
    return "{\(members.joined(separator: ","))}\n"
  }
}
