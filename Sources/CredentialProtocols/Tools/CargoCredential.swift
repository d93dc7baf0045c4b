package import Formats
package import Model
package import SecretMemory

/// Cargo's credential provider protocol, version 1: the Cargo book, *Credential Provider Protocol*.
package enum CargoCredential {
  /// The first line that a provider writes: the versions that it speaks.
  package static let greeting = "{\"v\":[1]}\n"

  /// The schema of cargo's own provider `cargo:libsecret`, under which the same items are found.
  package static let schema: ExactString = "org.rust-lang.cargo.registry"

  /// Operations of a request; `other` is one that is not known.
  package enum Kind: String, Sendable {
    case get
    case login
    case logout
    case other
  }

  /// One line of cargo's.
  package struct Request {
    package private(set) var kind = Kind.other
    /// The registry's index, as cargo spells it: `sparse+https://index.crates.io/`.
    package private(set) var index: ExactString = ""
    /// The token of `login`; nil: a person has to be asked for it.
    package private(set) var token: SecretSlice?

    /// - Throws: `FormatError` for what is not such a line, or one of another version.
    package init(_ source: ByteSource) throws(FormatError) {
      var version: String?
      var scanner = JSONScanner(source)
      try scanner.members { (name, scanner) throws(FormatError) in
        switch name {
        case "v": version = source.text(try scanner.value())
        case "kind": kind = Kind(rawValue: try scanner.optionalString()?.text() ?? "") ?? .other
        case "registry": try readRegistry(&scanner)
        case "token": token = try scanner.optionalString()
        default: _ = try scanner.value()
        }
      }
      try scanner.end()
      guard version == "1" else { throw FormatError("cargo speaks another version of the protocol") }
    }

    private mutating func readRegistry(_ scanner: inout JSONScanner) throws(FormatError) {
      guard try scanner.next() == UInt8(ascii: "{") else {
        _ = try scanner.value()
        return
      }
      try scanner.members { (name, scanner) throws(FormatError) in
        if name == "index-url" {
          index = ExactString(try scanner.optionalString()?.text() ?? "")
        } else {
          _ = try scanner.value()
        }
      }
    }

    /// Whether a token may be sent to the index: the connection is encrypted, or leads to this machine.
    package var isSupported: Bool {
      let url = index.string.split(separator: "+", maxSplits: 1).last.map(String.init) ?? ""
      if url.hasPrefix("https://") || url.hasPrefix("ssh://") { return true }
      let hosts = ["http://localhost", "http://127.0.0.1", "http://[::1]"]
      return hosts.contains { host in
        guard url.hasPrefix(host) else { return false }
        let next = url.dropFirst(host.count).first
        return next == nil || next == "/" || next == ":"
      }
    }
  }

  /// The identity of the item of an index.
  package static func identity(_ index: ExactString) -> ItemIdentity {
    .generic(service: schema, account: index)
  }

  /// The answer to `get`. Cargo keeps the token in memory until it ends.
  package static func answer(_ token: borrowing SecretBytes) throws(FormatError) -> SecretBytes {
    try OneLine.read(token) { (line) throws(FormatError) in
      try AnswerBytes.make { (sink) throws(FormatError) in
        try sink.write("{\"Ok\":{\"kind\":\"get\",\"token\":")
        try sink.writeJSON(line)
        try sink.write(",\"cache\":\"session\",\"operation_independent\":true}}\n")
      }
    }
  }

  /// The answer to `login` and `logout` that were done.
  package static func done(_ kind: Kind) -> String { "{\"Ok\":{\"kind\":\"\(kind.rawValue)\"}}\n" }

  /// The errors that cargo knows by their names, and any other one.
  package enum Refusal: Sendable {
    case notFound
    case urlNotSupported
    case operationNotSupported
    case other(String)

    /// One line of JSON.
    package var line: String {
      switch self {
      case .notFound: "{\"Err\":{\"kind\":\"not-found\"}}\n"
      case .urlNotSupported: "{\"Err\":{\"kind\":\"url-not-supported\"}}\n"
      case .operationNotSupported: "{\"Err\":{\"kind\":\"operation-not-supported\"}}\n"
      case .other(let message):
        "{\"Err\":{\"kind\":\"other\",\"message\":\(message.quotedAsJSON),\"caused-by\":[]}}\n"
      }
    }
  }
}
