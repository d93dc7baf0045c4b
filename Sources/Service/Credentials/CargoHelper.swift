import CredentialProtocols
import Formats
import Model
import Prompting
package import SecretMemory
import Tree

/// `keyhole credential cargo`: a credential provider of cargo.
package enum CargoHelper {
  /// The line to write first.
  package static var greeting: String { CargoCredential.greeting }

  /// The answer to one line of cargo's. An error is an answer too.
  package static func run(_ line: consuming SecretBytes) throws -> CredentialAnswer {
    let source = ByteSource(line)
    do {
      return try answer(to: try reading("cargo") { () throws(FormatError) in try .init(source) })
    } catch let failure as Failure {
      let subject = failure.subject.map { "\($0): " } ?? ""
      return .text(CargoCredential.Refusal.other(subject + failure.reason).line)
    }
  }

  private static func answer(to request: CargoCredential.Request) throws -> CredentialAnswer {
    guard request.kind != .other else { return .text(CargoCredential.Refusal.operationNotSupported.line) }
    guard request.isSupported else { return .text(CargoCredential.Refusal.urlNotSupported.line) }
    let identity = CargoCredential.identity(request.index)
    let items = try CredentialItems()
    switch request.kind {
    case .login: try login(request, identity, items)
    case .logout:
      guard let item = try items.item(identity) else { return .text(CargoCredential.Refusal.notFound.line) }
      try items.remove([item])
    case .get, .other:
      guard let secret = try items.secret(identity) else {
        return .text(CargoCredential.Refusal.notFound.line)
      }
      return .secret(
        try reading(FileTree.path(of: identity)) { () throws(FormatError) in
          try CargoCredential.answer(secret)
        })
    }
    return .text(CargoCredential.done(request.kind))
  }

  private static func login(
    _ request: CargoCredential.Request, _ identity: ItemIdentity, _ items: CredentialItems
  ) throws {
    let token: SecretBytes
    if let given = request.token {
      token = try reading("cargo") { () throws(FormatError) in try given.bytes() }
    } else {
      token = try SecretInput.askOnTerminal("Token for \(request.index.string): ")
    }
    guard !token.isEmpty else { throw Failure("cargo", "the token is empty; nothing was stored") }
    try items.store(
      token, as: identity,
      .init(label: "cargo-registry:\(request.index.string)", schema: CargoCredential.schema))
  }
}
