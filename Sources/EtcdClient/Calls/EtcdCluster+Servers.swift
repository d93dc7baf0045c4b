import Dispatch
import Platform
import Synchronization

// Leases and the servers themselves.

/// A cluster with leases: keys that are put with one are deleted when it ends.
package protocol LeasingCluster: KeyValueCluster {
  /// A lease that ends after so many seconds unless it is kept alive. The servers may give more.
  ///
  /// - Throws: `outcomeUnknown`: there may be a lease, which then ends by itself; `unavailable`, `refused`.
  func grantLease(seconds: Int64) throws(ClusterError) -> ClusterLease

  /// Begins the time of a lease again; nil: it has ended.
  ///
  /// - Throws: `unavailable`.
  func keepAlive(lease: Int64) throws(ClusterError) -> ClusterLease?

  /// Ends a lease, and deletes its keys. One that has ended already is no error.
  ///
  /// - Throws: `outcomeUnknown`, `unavailable`.
  func revoke(lease: Int64) throws(ClusterError)
}

extension EtcdCluster: LeasingCluster {
  package func grantLease(seconds: Int64) throws(ClusterError) -> ClusterLease {
    let call = EtcdCall(
      method: .grantLease, message: ClusterLease.grant(seconds: seconds).bytes, isChange: true)
    return try decoding(call, CallInterruption()) { (bytes) throws(WireError) in
      try ClusterLease(bytes)
    } check: { _ in
    }
  }

  package func keepAlive(lease: Int64) throws(ClusterError) -> ClusterLease? {
    // Repeated, it does the same.
    let call = EtcdCall(method: .keepLeaseAlive, message: ClusterLease.request(lease).bytes)
    let reply = try decoding(call, CallInterruption()) { (bytes) throws(WireError) in
      try ClusterLease(bytes)
    } check: { _ in
    }
    return reply.seconds > 0 ? reply : nil
  }

  package func revoke(lease: Int64) throws(ClusterError) {
    let call = EtcdCall(method: .revokeLease, message: ClusterLease.request(lease).bytes, isChange: true)
    do throws(ClusterError) { _ = try perform(call, CallInterruption()) } catch {
      guard case .refused(let text) = error, text.hasSuffix("requested lease not found") else { throw error }
    }
  }
}

extension EtcdCluster {
  /// The state of each server as it says itself, or why it does not, in the order of the configuration: all are asked at once, and get
  /// `patience`.
  package func memberStatus(
    within patience: Duration = .seconds(2)
  ) -> [(EtcdEndpoint, Result<MemberStatus, ClusterError>)] {
    let endpoints = configuration.endpoints
    let results = Mutex<[Result<MemberStatus, ClusterError>?]>(Array(repeating: nil, count: endpoints.count))
    let running = DispatchGroup()
    for (index, endpoint) in endpoints.enumerated() {
      running.enter()
      let ask: @Sendable () -> Void = { [self] in
        let status = Result { () throws(ClusterError) in
          let channel = try Channel(to: endpoint, configuration.security)
          return try self.status(on: channel, until: .now + patience, CallInterruption())
        }
        results.withLock { $0[index] = status }
        running.leave()
      }
      if !ThreadID.start(ask) { ask() }
    }
    running.wait()
    return zip(endpoints, results.withLock { $0 }).map { endpoint, status in
      (endpoint, status ?? .failure(.unavailable("it does not answer")))
    }
  }
}
