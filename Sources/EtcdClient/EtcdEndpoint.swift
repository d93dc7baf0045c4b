/// A server of a cluster.
package struct EtcdEndpoint: Hashable, Sendable {
  /// A name, an IPv4 address, or an IPv6 address in brackets.
  package let host: String
  package let port: UInt16
  /// By TLS.
  package let isSecure: Bool

  /// The port of etcd's clients where none is named.
  package static let defaultPort: UInt16 = 2379

  /// `HOST` or `HOST:PORT`, an IPv6 address in brackets; nil: it is neither.
  package init?(_ text: some StringProtocol, isSecure: Bool) {
    var host = text[...]
    var port: UInt16? = Self.defaultPort
    if let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") {
      host = text[..<colon]
      let digits = text[text.index(after: colon)...]
      port = digits.allSatisfy { $0.isASCII && $0.isNumber } ? UInt16(digits) : nil
    }
    guard let port, port > 0, Self.isHost(host) else { return nil }
    (self.host, self.port, self.isSecure) = (String(host), port, isSecure)
  }

  /// Nothing of it has a meaning in a URL.
  private static func isHost(_ text: some StringProtocol) -> Bool {
    if text.hasPrefix("["), text.hasSuffix("]") {
      let inner = text.dropFirst().dropLast()
      return !inner.isEmpty && inner.allSatisfy { $0.isHexDigit && $0.isASCII || $0 == ":" || $0 == "." }
    }
    return !text.isEmpty && text.utf8.count <= 253
      && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "." || $0 == "-" || $0 == "_") }
  }

  /// The beginning of each URL.
  var address: String { "\(isSecure ? "https" : "http")://\(host):\(port)" }
}

extension EtcdEndpoint: CustomStringConvertible {
  /// `HOST:PORT`, for messages.
  package var description: String { "\(host):\(port)" }
}

/// Files for TLS, in PEM.
package struct TransportSecurity: Hashable, Sendable {
  /// The certificates of the authorities that are trusted; nil: those of the system.
  package var authorities: String?
  /// This client's certificate; nil: none.
  package var certificate: String?
  /// Its key.
  package var key: String?

  package init(authorities: String? = nil, certificate: String? = nil, key: String? = nil) {
    (self.authorities, self.certificate, self.key) = (authorities, certificate, key)
  }
}
