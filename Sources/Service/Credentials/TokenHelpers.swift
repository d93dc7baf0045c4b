import CredentialProtocols
import Formats
import Model
import Platform
import Prompting
package import SecretMemory
import Tree

/// `keyhole credential aws`: the `credential_process` of a profile.
package enum AWSHelper {
  /// - Throws: `Failure` where there is no item of the profile, or its secret has no access key.
  package static func run(profile: String) throws -> CredentialAnswer {
    let identity = AWSCredential.identity(profile: profile)
    let path = FileTree.path(of: identity)
    guard let secret = try CredentialItems().secret(identity) else {
      throw Failure(
        path,
        "there is no such item; `keyhole set \(path.quotedForShell)` stores the two lines of the access key",
        .notFound)
    }
    let source = ByteSource(secret)
    return .secret(
      try reading(path) { () throws(FormatError) in try AWSCredential(source).answer() })
  }
}

/// `keyhole credential kubectl`: a plugin of client-go.
package enum KubernetesHelper {
  /// `name`: of the item; nil: the server's URL, as kubectl tells it.
  ///
  /// - Throws: `Failure` where kubectl asks for something else, and where there is no such item.
  package static func run(name: String?) throws -> CredentialAnswer {
    guard let text = environment("KUBERNETES_EXEC_INFO") else {
      throw Failure(
        "kubectl",
        "KUBERNETES_EXEC_INFO is not set: kubectl sets it when it runs this command for a user of the kubeconfig; "
          + "`keyhole credential install kubectl` adds one")
    }
    let bytes = Array(text.utf8)
    let source = ByteSource(try SecretBytes(copying: bytes.span))
    let request = try reading("KUBERNETES_EXEC_INFO") { () throws(FormatError) in
      try KubernetesCredential(source)
    }
    guard let name = name.map({ ExactString($0) }) ?? request.server else {
      throw Failure(
        "kubectl",
        "it does not tell the server: set `provideClusterInfo: true` in the kubeconfig, or give a name as an argument"
      )
    }
    let identity = KubernetesCredential.identity(name)
    let path = FileTree.path(of: identity)
    guard let secret = try CredentialItems().secret(identity) else {
      throw Failure(path, "there is no such item; `keyhole set \(path.quotedForShell)` stores it", .notFound)
    }
    return .secret(try reading(path) { () throws(FormatError) in try request.answer(secret) })
  }
}

/// `keyhole credential terraform`: a credentials helper of Terraform and OpenTofu.
package enum TerraformHelper {
  /// - Parameters:
  ///   - action: `get`, `store` or `forget`.
  ///   - host: as Terraform spells it.
  ///   - input: reads standard input, for `store`.
  /// - Returns: the answer for standard output.
  /// - Throws: `Failure`, also for an action that is not known.
  package static func run(
    _ action: String, host: String, _ input: () throws -> SecretBytes
  ) throws -> CredentialAnswer {
    guard let action = TerraformCredential.Action(rawValue: action) else {
      throw Failure(action, "Terraform's helpers know get, store and forget")
    }
    let identity = TerraformCredential.identity(host: host)
    let path = FileTree.path(of: identity)
    switch action {
    case .get:
      guard let secret = try CredentialItems().secret(identity) else {
        return .text(TerraformCredential.none)
      }
      return .secret(try reading(path) { () throws(FormatError) in try TerraformCredential.answer(secret) })
    case .store:
      let source = ByteSource(try input())
      let token = try reading("terraform") { () throws(FormatError) in
        try TerraformCredential.token(source).bytes()
      }
      try CredentialItems().store(token, as: identity, .init(label: "Terraform: \(host)"))
    case .forget:
      let items = try CredentialItems()
      if let item = try items.item(identity) { try items.remove([item]) }
    }
    return .none
  }
}

/// `keyhole credential bazel`: a credential helper of Bazel.
package enum BazelHelper {
  /// - Throws: `Failure` for a request without a URI, and where the item can't be had.
  package static func run(_ action: String, _ input: consuming SecretBytes) throws -> CredentialAnswer {
    guard action == "get" else { throw Failure(action, "Bazel's helpers know get") }
    let source = ByteSource(input)
    let origin = try reading("bazel") { () throws(FormatError) in try BazelCredential.origin(source) }
    let identity = BazelCredential.identity(origin)
    guard let secret = try CredentialItems().secret(identity) else { return .text(BazelCredential.none) }
    return .secret(
      try reading(FileTree.path(of: identity)) { () throws(FormatError) in
        try BazelCredential.answer(secret)
      })
  }
}
