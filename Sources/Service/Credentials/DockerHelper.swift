import CredentialProtocols
import Formats
import Model
package import SecretMemory
import Tree

/// `keyhole credential docker` and `podman`: a credential helper in docker's protocol.
package enum DockerHelper {
  /// - Parameters:
  ///   - action: as docker gives it.
  ///   - version: Keyhole's, for `version`.
  ///   - input: reads standard input, where the action takes it.
  /// - Returns: the answer for standard output.
  /// - Throws: `Failure` where the input can't be read, or the item can't be had.
  package static func run(
    _ action: String, version: String, _ input: () throws -> SecretBytes
  ) throws -> CredentialAnswer {
    switch DockerCredential.Action(rawValue: action) {
    case .version: return .text("docker-credential-keyhole (keyhole) \(version)\n")
    case .get: return try get(input())
    case .store: try store(input())
    case .erase: try erase(input())
    case .list: return try list()
    case nil: return .refusal("unknown credential action `\(action)`\n")
    }
    return .none
  }

  private static func get(_ input: consuming SecretBytes) throws -> CredentialAnswer {
    let source = ByteSource(input)
    let server = try reading(nil) { () throws(FormatError) in try DockerCredential.server(source) }
    let items = try CredentialItems()
    guard let item = try found(server, items).last, let user = item.account else {
      return .refusal(DockerCredential.notFound + "\n")
    }
    let secret = try items.secret(of: item)
    return .secret(
      try reading(FileTree.path(of: item.identity)) { () throws(FormatError) in
        try DockerCredential.answer(server: server, username: user, secret: secret)
      })
  }

  /// The items of a server that are docker's, the one that was stored last at the end.
  private static func found(_ server: ExactString, _ items: CredentialItems) throws -> [Item] {
    try items.items(ofServer: server).filter(isDockers).sorted { $0.modified < $1.modified }
  }

  /// A password for a web page of the same host is none of a registry.
  private static func isDockers(_ item: Item) -> Bool {
    guard item.schema == DockerCredential.schema, case .internet(let internet) = item.identity else {
      return false
    }
    return item.identity == DockerCredential.identity(server: internet.server, account: internet.account)
  }

  private static func store(_ input: consuming SecretBytes) throws {
    let source = ByteSource(input)
    let credential = try reading(nil) { () throws(FormatError) in try DockerCredential.Credential(source) }
    let secret = try reading(nil) { () throws(FormatError) in try credential.secret.bytes() }
    let identity = DockerCredential.identity(server: credential.server, account: credential.username)
    let items = try CredentialItems()
    if let present = try items.item(identity) {
      guard isDockers(present) else {
        throw Failure(
          FileTree.path(of: identity),
          "this item is another program's and was not replaced; rename it, and log in again")
      }
      let isLast = try found(credential.server, items).last?.id == present.id
      return try items.replace(present, by: secret, isTouched: !isLast)
    }
    try items.store(
      secret, as: identity, .init(label: credential.server.string, schema: DockerCredential.schema))
  }

  /// Docker names no user: all that is stored for the server goes, as with its own helpers.
  private static func erase(_ input: consuming SecretBytes) throws {
    let source = ByteSource(input)
    let server = try reading(nil) { () throws(FormatError) in try DockerCredential.server(source) }
    let items = try CredentialItems()
    try items.remove(found(server, items))
  }

  private static func list() throws -> CredentialAnswer {
    let found = try CredentialItems().internetItems(where: isDockers).sorted { $0.modified < $1.modified }
    var users: [ExactString: ExactString] = [:]
    for item in found {
      if case .internet(let internet) = item.identity { users[internet.server] = internet.account }
    }
    return .text(DockerCredential.list(users))
  }
}
