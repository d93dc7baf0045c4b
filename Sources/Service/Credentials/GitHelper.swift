import CredentialProtocols
import Formats
import Model
import Prompting
package import SecretMemory
import Tree

/// `keyhole credential git`: a credential helper of git.
package enum GitHelper {
  /// - Parameters:
  ///   - action: as git gives it; one that is not known is ignored, as git asks for.
  ///   - input: what git has written to standard input.
  /// - Returns: the answer for standard output.
  /// - Throws: `Failure` where the input can't be read, or the item can't be had; git asks the person then.
  package static func run(_ action: String, _ input: consuming SecretBytes) throws -> CredentialAnswer {
    guard let action = GitCredential.Action(rawValue: action) else { return .none }
    let source = ByteSource(input)
    let request = try reading("git") { () throws(FormatError) in try GitCredential(source) }
    guard let identity = request.identity() else { return .none }
    let items = try CredentialItems()
    let found = try items.items(ofServer: identity.server).filter { request.matches($0.identity) }
    switch action {
    case .get: return try get(request, found, items)
    case .store: try store(request, found, items)
    case .erase: try erase(request, found, items)
    }
    return .none
  }

  private static func get(
    _ request: GitCredential, _ found: [Item], _ items: CredentialItems
  ) throws -> CredentialAnswer {
    let users = Set(found.compactMap(\.account))
    guard users.count < 2 else {
      let names = users.sorted().map(\.string).joined(separator: ", ")
      let url = "\(request.protocol?.string ?? "")://\(request.host?.string ?? "")"
      StandardError.note(
        "several users are stored for \(url) (\(names)), and git named none; "
          + "`git config --global credential.\(url).username NAME` chooses one")
      return .none
    }
    guard let item = found.min(by: { $0.created < $1.created }), let user = item.account else { return .none }
    let secret = try items.secret(of: item)
    return try reading(FileTree.path(of: item.identity)) { () throws(FormatError) in
      guard let answer = try request.answer(username: user, secret: secret) else { return .none }
      return .secret(answer)
    }
  }

  private static func store(
    _ request: GitCredential, _ found: [Item], _ items: CredentialItems
  ) throws {
    guard request.isStorable, let identity = request.storedIdentity else {
      if request.password?.isEmpty == false, request.username?.isEmpty != false {
        StandardError.note("nothing was stored, as git named no user")
      }
      return
    }
    let found = found.filter { $0.account == identity.account }
    let secret = try reading("git") { () throws(FormatError) in try request.storedSecret() }
    if let item = found.min(by: { $0.created < $1.created }) { return try items.replace(item, by: secret) }
    let path = identity.path.map { "/\($0.string)" } ?? ""
    // Without a schema's name it becomes libsecret's for the network, which all versions of git's own helper look for.
    let label = "Git: \(identity.protocol?.string ?? "")://\(request.host?.string ?? "")\(path)"
    try items.store(secret, as: .internet(identity), .init(label: label))
  }

  /// Git erases what a server has refused: only that password of that user, and not one that was stored since.
  private static func erase(
    _ request: GitCredential, _ found: [Item], _ items: CredentialItems
  ) throws {
    guard
      request.authenticationType == nil
        ? request.username?.isEmpty == false && request.password?.isEmpty == false
        : request.credential?.isEmpty == false
    else {
      guard let item = found.first else { return }
      return StandardError.note(
        "nothing was erased, as git named no user and password; "
          + "`keyhole rm \(FileTree.path(of: item.identity).quotedForShell)` removes the item")
    }
    let refused = try found.filter { item in
      let secret = try items.secret(of: item)
      return try reading("git") { () throws(FormatError) in try request.hasPassword(of: secret) }
    }
    try items.remove(refused)
  }
}

extension Item {
  /// The account of an internet password; nil: it is none.
  var account: ExactString? {
    guard case .internet(let internet) = identity else { return nil }
    return internet.account
  }
}
