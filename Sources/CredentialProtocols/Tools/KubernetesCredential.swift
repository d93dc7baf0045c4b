package import Formats
package import Model
import Platform
package import SecretMemory

/// The request of kubectl and client-go to a plugin: *client-go credential plugins*, `ExecCredential` of
/// client.authentication.k8s.io.
package struct KubernetesCredential {
  private static let versions = [
    "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1",
  ]

  /// The version that was asked for.
  private let version: String
  /// The server's URL, where the configuration has `provideClusterInfo: true`; nil: it was not told.
  package private(set) var server: ExactString?

  /// Reads the variable KUBERNETES_EXEC_INFO.
  ///
  /// - Throws: `FormatError` for what is no `ExecCredential`, or one of an unknown version.
  package init(_ source: ByteSource) throws(FormatError) {
    var (version, server, kind): (String?, String?, String?)
    var scanner = JSONScanner(source)
    try scanner.members { (name, scanner) throws(FormatError) in
      switch name {
      case "apiVersion": version = try scanner.optionalString()?.text()
      case "kind": kind = try scanner.optionalString()?.text()
      case "spec": server = try Self.server(&scanner, "cluster")
      default: _ = try scanner.value()
      }
    }
    try scanner.end()
    guard kind == "ExecCredential", let version, Self.versions.contains(version) else {
      throw FormatError(
        "KUBERNETES_EXEC_INFO asks for no version of ExecCredential that is known; set apiVersion in the kubeconfig to "
          + Self.versions[0])
    }
    self.version = version
    self.server = server.map { ExactString($0) }
  }

  /// `spec.cluster.server`, from the object that `member` or `server` is in.
  private static func server(
    _ scanner: inout JSONScanner, _ member: String
  ) throws(FormatError) -> String? {
    guard try scanner.next() == UInt8(ascii: "{") else {
      _ = try scanner.value()
      return nil
    }
    var found: String?
    try scanner.members { (name, scanner) throws(FormatError) in
      if name != member {
        _ = try scanner.value()
      } else if member == "cluster" {
        found = try server(&scanner, "server")
      } else {
        found = try scanner.optionalString()?.text()
      }
    }
    return found
  }

  /// The identity of the item of a name: a server's URL, or what the kubeconfig gives as an argument.
  package static func identity(_ name: ExactString) -> ItemIdentity {
    .generic(service: "kubernetes", account: name)
  }

  /// The answer: the secret as a token, or where it is PEM, its certificates and its key.
  ///
  /// - Throws: `FormatError` for PEM without a certificate or without a key, and for a token of several lines.
  package func answer(_ secret: borrowing SecretBytes) throws(FormatError) -> SecretBytes {
    let before = "{\"apiVersion\":\"\(version)\",\"kind\":\"ExecCredential\",\"status\":{"
    guard secret.span.starts(with: PEM.beginning) else {
      return try TokenJSON.make(before + "\"token\":", secret, "}}\n")
    }
    let blocks = try PEM.blocks(secret.span)
    let certificates = blocks.filter { !$0.isKey }.map(\.range)
    guard let key = blocks.first(where: \.isKey)?.range, !certificates.isEmpty else {
      throw FormatError("the secret is PEM without a certificate, or without a private key")
    }
    return try AnswerBytes.make { (sink) throws(FormatError) in
      try sink.write(before + "\"clientCertificateData\":\"")
      for range in certificates { try Self.write(secret.span.extracting(range), to: sink) }
      try sink.write("\",\"clientKeyData\":\"")
      try Self.write(secret.span.extracting(key), to: sink)
      try sink.write("\"}}\n")
    }
  }

  private static func write(_ block: Span<UInt8>, to sink: ByteSink) throws(FormatError) {
    try JSONText.write(block, to: sink)
    try sink.write("\\n")
  }
}

/// Textual encoding of certificates and keys (RFC 7468).
private enum PEM {
  static let beginning = "-----BEGIN "
  private static let end = "-----END "

  /// The blocks, each without the line feed behind it.
  static func blocks(_ bytes: Span<UInt8>) throws(FormatError) -> [(range: Range<Int>, isKey: Bool)] {
    var blocks: [(range: Range<Int>, isKey: Bool)] = []
    var open: (start: Int, isKey: Bool)?
    for line in bytes.lineRanges {
      let text = bytes.extracting(line)
      if text.starts(with: beginning) {
        guard open == nil else { throw FormatError("a block of PEM begins within another one") }
        // The first line is no secret.
        open = (line.lowerBound, text.text.contains("PRIVATE KEY"))
      } else if text.starts(with: end), let block = open {
        blocks.append((block.start..<line.upperBound, block.isKey))
        open = nil
      }
    }
    guard open == nil else { throw FormatError("a block of PEM has no end") }
    return blocks
  }
}
