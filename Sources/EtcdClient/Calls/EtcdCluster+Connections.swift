import Synchronization

extension EtcdCluster {
  /// A new connection to a server, on which the call can be made: it belongs to the cluster that was seen before, which was not set
  /// back, and knows a leader if the call needs one. So nothing is changed in another cluster.
  ///
  /// `revision` is one that the caller has seen. `probe`: a key that its user may read.
  ///
  /// - Returns: the connection, and what the server says of itself.
  /// - Throws: `unavailable`, `wrongCluster`.
  func connect(
    to server: Int, _ call: EtcdCall, seeing revision: Int64 = 0, probing probe: [UInt8] = [0],
    until limit: ContinuousClock.Instant,
    _ interruption: CallInterruption
  ) throws(ClusterError) -> (Channel, MemberStatus) {
    let endpoint = configuration.endpoints[server]
    let channel = try Channel(to: endpoint, configuration.security)
    let limit = min(limit, .now + patience)
    let revision = max(revision, mark?.revision ?? 0)
    let status: MemberStatus
    do throws(ClusterError) {
      status = try self.status(on: channel, until: limit, interruption)
    } catch {
      if !interruption.isInterrupted { failed(server) }
      throw error
    }
    try verify(status.header, notBefore: nil)
    if call.needsLeader, status.leader == 0 || status.isLearner {
      health.withLock { $0.failed(server) }
      throw .unavailable("\(endpoint): it knows no leader")
    }
    if call.needsLeader, status.header.revision < revision {
      let seen = ClusterMark(cluster: status.header.cluster, revision: revision)
      try refuseOlder(than: seen, probe, on: channel, until: limit, interruption)
    }
    return (channel, status)
  }

  func status(
    on channel: Channel, until limit: ContinuousClock.Instant, _ interruption: CallInterruption
  ) throws(ClusterError) -> MemberStatus {
    let call = EtcdCall(method: .status, message: [], needsLeader: false)
    let bytes = try simple(call, [], on: channel, until: limit, interruption)
    do throws(WireError) { return try MemberStatus(bytes) } catch {
      throw .unavailable("\(channel.endpoint): the reply is malformed")
    }
  }

  /// A server that is behind may lag, or be one of a cluster that was set back: the majority says which.
  private func refuseOlder(
    than seen: ClusterMark, _ probe: [UInt8], on channel: Channel, until limit: ContinuousClock.Instant,
    _ interruption: CallInterruption
  ) throws(ClusterError) {
    var request = RangeRequest(KeyRange(key: probe))
    request.isKeysOnly = true
    let call = EtcdCall(method: .range, message: request.wire.bytes)
    let token = try logIn(on: channel, until: limit, interruption)
    let bytes: [UInt8]
    do throws(ClusterError) {
      bytes = try simple(call, metadata(token), on: channel, until: limit, interruption)
    } catch {
      // A user that may not read that key: the reply to the call itself will be compared.
      if case .unauthorized = error { return }
      throw error
    }
    guard let header = try? ClusterHeader(ofReply: bytes) else {
      throw .unavailable("\(channel.endpoint): the reply is malformed")
    }
    try verify(header, notBefore: seen)
  }

  /// The token of the user, got with the password if there is none; nil: there is no user.
  func logIn(
    on channel: Channel, until limit: ContinuousClock.Instant, _ interruption: CallInterruption
  ) throws(ClusterError) -> EtcdLogin.Token? {
    guard let login = configuration.login else { return nil }
    if let token = login.current { return token }
    let call = EtcdCall(method: .authenticate, message: login.request)
    let bytes: [UInt8]
    do throws(ClusterError) { bytes = try simple(call, [], on: channel, until: limit, interruption) } catch {
      // Without authentication every client is let in, as etcd's own goes on then.
      if case .refused(let reason) = error, reason.contains("authentication is not enabled") { return nil }
      throw error
    }
    do throws(WireError) {
      let token = EtcdLogin.Token(text: try LoginReply(bytes).token)
      login.set(token)
      return token
    } catch {
      throw .unavailable("\(channel.endpoint): the reply is malformed")
    }
  }

  /// A call that changes nothing, once.
  private func simple(
    _ call: EtcdCall, _ metadata: [String], on channel: Channel, until limit: ContinuousClock.Instant,
    _ interruption: CallInterruption
  ) throws(ClusterError) -> [UInt8] {
    let result = channel.call(
      call, metadata: metadata, patience: patience, until: limit, mostBytes: configuration.largestReply,
      interruption)
    switch CallDecision(result, isChange: false, server: channel.endpoint.description) {
    case .done(let bytes): return bytes
    case .again(let error), .logIn(let error), .fail(let error): throw error
    }
  }
}
