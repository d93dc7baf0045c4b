package import Formats
package import Model
import Platform
package import SecretMemory

/// The request of Bazel to a credential helper: EngFlow's credential-helper-spec.
package enum BazelCredential {
  /// The answer where there is no item: no headers.
  package static let none = "{\"headers\":{}}\n"

  /// The scheme, host and port of the request's `uri`, as an item's account has them: `https://remote.example:8443`.
  ///
  /// - Throws: `FormatError` for a request without such a URI.
  package static func origin(_ source: ByteSource) throws(FormatError) -> ExactString {
    var uri: String?
    var scanner = JSONScanner(source)
    try scanner.members { (name, scanner) throws(FormatError) in
      if name == "uri" { uri = try scanner.optionalString()?.text() } else { _ = try scanner.value() }
    }
    try scanner.end()
    guard let uri, let origin = origin(of: uri) else {
      throw FormatError("the request has no `uri` with a host, or it is no URI")
    }
    return origin
  }

  /// nil: it has no scheme or no host, or a byte that a URI (RFC 3986) can't have: readers take `https://a\@b` for two hosts. A user in the
  /// URI is left out.
  private static func origin(of uri: String) -> ExactString? {
    guard uri.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"\"<>\\^`{|}".utf8.contains($0) }),
      let colon = uri.firstRange(of: "://"), colon.lowerBound != uri.startIndex
    else { return nil }
    let rest = uri[colon.upperBound...].prefix { !"/?#".contains($0) }
    let host = rest.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
    guard !host.isEmpty else { return nil }
    return ExactString(uri[..<colon.lowerBound].lowercased() + "://" + host)
  }

  /// The identity of the item of an origin.
  package static func identity(_ origin: ExactString) -> ItemIdentity {
    .generic(service: "bazel", account: origin)
  }

  /// The answer: the header `Authorization`, with the secret as a bearer's token, or where it begins with `Basic ` or
  /// `Bearer `, as it is.
  package static func answer(_ secret: borrowing SecretBytes) throws(FormatError) -> SecretBytes {
    let bytes = secret.span
    let hasScheme = bytes.starts(with: "Basic ") || bytes.starts(with: "Bearer ")
    return try TokenJSON.make(
      "{\"headers\":{\"Authorization\":[", secret, prefix: hasScheme ? "" : "Bearer ", "]}}\n")
  }
}
