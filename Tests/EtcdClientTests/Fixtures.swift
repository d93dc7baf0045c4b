import EtcdHarness
import Testing

@testable import EtcdClient

extension EtcdNodes {
  /// A client of all servers, or of those at other addresses.
  func client(
    _ endpoints: [String]? = nil, _ change: (inout EtcdCluster.Configuration) -> Void = { _ in }
  ) -> EtcdCluster {
    let all = (endpoints ?? self.endpoints).compactMap { EtcdEndpoint($0, isSecure: options.isSecure) }
    var configuration = EtcdCluster.Configuration(endpoints: all)
    if options.isSecure { configuration.security = security(of: "client") }
    change(&configuration)
    return EtcdCluster(configuration)
  }

  /// With the certificate of a user.
  func security(of user: String) -> TransportSecurity {
    TransportSecurity(
      authorities: "\(folder)/ca.pem", certificate: "\(folder)/\(user).pem", key: "\(folder)/\(user).key")
  }
}

extension EtcdCluster {
  /// The revision of the change.
  @discardableResult
  func put(_ key: String, _ value: String, lease: Int64 = 0) throws(ClusterError) -> Int64 {
    let put = KeyOperation.put(key: Array(key.utf8), value: Array(value.utf8), lease: lease)
    return try commit(ClusterTransaction([put])).header.revision
  }

  func get(_ key: String, isLinearizable: Bool = true) throws(ClusterError) -> String? {
    let request = RangeRequest(KeyRange(key: Array(key.utf8)), isLinearizable: isLinearizable)
    return try read(request).values.first.map { String(decoding: $0.value, as: UTF8.self) }
  }

  func delete(_ key: String) throws(ClusterError) {
    _ = try commit(ClusterTransaction([.delete(KeyRange(key: Array(key.utf8)))]))
  }
}

/// A report as text: `7: a=1 -b`, `progress 9`, `connected`, `disconnected`, `compacted 5`, `refused`.
func text(_ report: WatchReport) -> String {
  switch report {
  case .changes(let changes, let revision):
    "\(revision): "
      + changes.map { change in
        if case .put(let value) = change {
          "\(change.name)=\(String(decoding: value.value, as: UTF8.self))"
        } else {
          "-\(change.name)"
        }
      }.joined(separator: " ")
  case .progress(let revision): "progress \(revision)"
  case .disconnected: "disconnected"
  case .connected: "connected"
  case .compacted(let revision): "compacted \(revision)"
  case .refused: "refused"
  }
}

extension Collector<WatchReport> {
  var texts: [String] { all.map(text) }

  /// The changes alone.
  var changes: [String] { texts.filter { $0.first?.isNumber == true } }
}

/// The error of a call; nil: it threw none.
func error(_ body: () throws(ClusterError) -> Void) -> ClusterError? {
  do throws(ClusterError) { try body() } catch { return error }
  return nil
}

extension ClusterError {
  var isUnknown: Bool { if case .outcomeUnknown = self { true } else { false } }
  var isUnavailable: Bool { if case .unavailable = self { true } else { false } }
  var isUnauthorized: Bool { if case .unauthorized = self { true } else { false } }
  var isWrongCluster: Bool { if case .wrongCluster = self { true } else { false } }
  var isTooLarge: Bool { if case .tooLarge = self { true } else { false } }
  var isRefused: Bool { if case .refused = self { true } else { false } }
}

func elapsed(_ body: () throws -> Void) rethrows -> Duration {
  let begin = ContinuousClock.now
  try body()
  return ContinuousClock.now - begin
}
