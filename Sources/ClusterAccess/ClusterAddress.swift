package import EtcdClient
import Model
import Platform

/// A store in a cluster, and the way to it.
package struct ClusterAddress: Hashable, Sendable {
  /// `HOST:PORT` of each server.
  package private(set) var servers: [String]
  /// The store's name in the cluster.
  package private(set) var store: String
  /// Files for TLS; nil: the connection is not encrypted.
  package var security: TransportSecurity?
  /// The user of the cluster; nil: there is none, or the certificate names it.
  package var user: String?

  package static let scheme = "etcd://"

  /// `etcd://HOST:PORT[,HOST:PORT…]/STORE`; nil: it is none.
  package init?(_ text: String) {
    guard text.hasPrefix(Self.scheme) else { return nil }
    let parts = text.dropFirst(Self.scheme.count).split(
      separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[1].isEmpty, !parts[1].contains("/") else { return nil }
    store = String(parts[1])
    let endpoints = parts[0].split(separator: ",").map { EtcdEndpoint($0, isSecure: false) }
    servers = endpoints.compactMap { $0?.description }
    guard !endpoints.isEmpty, servers.count == endpoints.count else { return nil }
  }

  /// As it was given, without files and user.
  package var text: String { "\(Self.scheme)\(servers.joined(separator: ","))/\(store)" }

  /// Whether every server is this machine: an address that no other machine sees.
  package var isLocal: Bool {
    servers.compactMap { EtcdEndpoint($0, isSecure: false) }.allSatisfy { server in
      let parts = server.host.split(separator: ".", omittingEmptySubsequences: false)
      let isLoopback = parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
      return isLoopback || server.host == "localhost" || server.host == "[::1]"
    }
  }

  /// Why it can't be used; nil: it can.
  package var problem: String? {
    if let security, (security.certificate == nil) != (security.key == nil) {
      return "`etcd-cert=` and `etcd-key=` belong together"
    }
    for (name, file) in [
      ("etcd-ca", security?.authorities), ("etcd-cert", security?.certificate), ("etcd-key", security?.key),
    ] {
      guard let file else { continue }
      do throws(Errno) { try Files.checkReadable(file) } catch {
        return "`\(name)=\(file)` can't be read: \(error)"
      }
    }
    if user != nil, security == nil, !isLocal {
      return "a password would go over the network unencrypted; `etcd-ca=` names the authority for TLS"
    }
    return nil
  }

  func configuration(_ login: EtcdLogin?) -> EtcdCluster.Configuration {
    let endpoints = servers.compactMap { EtcdEndpoint($0, isSecure: security != nil) }
    var configuration = EtcdCluster.Configuration(endpoints: endpoints)
    (configuration.security, configuration.login) = (security, login)
    return configuration
  }
}

extension ClusterAddress {
  /// A way to the cluster, which connects with its first call.
  package func cluster(_ login: EtcdLogin?) -> EtcdCluster { EtcdCluster(configuration(login)) }
}
