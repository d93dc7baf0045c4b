package import Formats
package import Model
package import SecretMemory

/// The requests of Terraform and OpenTofu to a credentials helper.
package enum TerraformCredential {
  /// The actions of a helper, each followed by a host.
  package enum Action: String, CaseIterable, Sendable {
    case get
    case store
    case forget
  }

  /// The answer to `get` where there is no token.
  package static let none = "{}\n"

  /// The identity of the item of a host.
  package static func identity(host: String) -> ItemIdentity {
    .generic(service: "terraform", account: ExactString(host))
  }

  /// The answer to `get`.
  package static func answer(_ token: borrowing SecretBytes) throws(FormatError) -> SecretBytes {
    try TokenJSON.make("{\"token\":", token, "}\n")
  }

  /// The token that `store` gets.
  ///
  /// - Throws: `FormatError` without a token, and where there are other members: they would be lost.
  package static func token(_ source: ByteSource) throws(FormatError) -> SecretSlice {
    var token: SecretSlice?
    var scanner = JSONScanner(source)
    try scanner.members { (name, scanner) throws(FormatError) in
      guard name == "token" else {
        throw FormatError("only a token can be stored, and `\(name)` is there too")
      }
      token = try scanner.optionalString()
    }
    try scanner.end()
    guard let token, !token.isEmpty else { throw FormatError("there is no token to store") }
    return token
  }
}
