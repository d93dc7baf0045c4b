import EtcdClient

/// The options of a way to a cluster, as a mount takes them.
package enum ClusterOption: String, CaseIterable, Sendable {
  case authorities = "etcd-ca"
  case certificate = "etcd-cert"
  case key = "etcd-key"
  case user = "etcd-user"
}

extension ClusterAddress {
  package mutating func set(_ option: ClusterOption, _ value: String) {
    var security = security ?? TransportSecurity()
    switch option {
    case .authorities: security.authorities = value
    case .certificate: security.certificate = value
    case .key: security.key = value
    case .user:
      user = value
      return
    }
    self.security = security
  }

  private func value(of option: ClusterOption) -> String? {
    switch option {
    case .authorities: security?.authorities
    case .certificate: security?.certificate
    case .key: security?.key
    case .user: user
    }
  }

  /// Lines for a file: the address, then each option as `NAME=VALUE`.
  var lines: [String] {
    [text]
      + ClusterOption.allCases.compactMap { option in value(of: option).map { "\(option.rawValue)=\($0)" } }
  }

  /// The value of the option `-o` of `keyhole mount` for this store.
  package var mountOptions: String { "store=" + lines.joined(separator: ",") }

  /// nil: the lines are none of an address.
  init?(lines: [Substring]) {
    guard let first = lines.first else { return nil }
    self.init(String(first))
    for line in lines.dropFirst() {
      let parts = line.split(separator: "=", maxSplits: 1)
      guard parts.count == 2, let option = ClusterOption(rawValue: String(parts[0])) else { continue }
      set(option, String(parts[1]))
    }
  }
}
