import Synchronization

extension EtcdCluster {
  /// Calls a method on one server after the other, until one has done it or can't be asked again.
  func perform(_ call: EtcdCall, _ interruption: CallInterruption) throws(ClusterError) -> [UInt8] {
    guard call.message.count <= configuration.largestRequest else {
      throw .tooLarge(
        "a request of \(call.message.count) bytes: the servers take \(configuration.largestRequest)")
    }
    // Without it, no later attempt does better.
    try CurlLibrary.load()
    remember(interruption)
    defer { forget(interruption) }
    let longest = ContinuousClock.now + deadline
    let limit = min(longest, interruption.end ?? longest)
    var last: ClusterError?
    var rounds = Backoff(first: .milliseconds(50), longest: .milliseconds(500))
    while true {
      for server in health.withLock({ $0.order() }) where ContinuousClock.now < limit {
        switch attempt(call, on: server, until: limit, interruption) {
        case .done(let bytes): return bytes
        case .again(let error), .logIn(let error):
          // An attempt that the deadline ended says less than one before.
          if last == nil || ContinuousClock.now < limit { last = error }
        case .fail(let error): throw error
        }
      }
      let pause = min(rounds.pause(), ContinuousClock.now.duration(to: limit))
      guard pause > .zero, !interruption.wait(pause) else {
        throw last ?? .unavailable("no server of the cluster answers")
      }
    }
  }

  /// The longest time that one server gets to begin its reply, so that another one can be asked within the deadline.
  var patience: Duration {
    configuration.endpoints.count > 1 ? deadline / 3 : deadline
  }

  /// The same for a change, which no other server is asked for afterwards. Where the caller has set an end, a part of the time is left to look
  /// whether the change was made.
  private func patienceOfChange(
    until limit: ContinuousClock.Instant, _ interruption: CallInterruption
  ) -> Duration {
    interruption.end == nil ? deadline : ContinuousClock.now.duration(to: limit) * 0.6
  }

  private func attempt(
    _ call: EtcdCall, on server: Int, until limit: ContinuousClock.Instant, _ interruption: CallInterruption
  ) -> CallDecision {
    if let channel = pool.take(server) {
      let (result, decision) = run(call, on: channel, until: limit, interruption)
      guard case .unanswered = result, case .again = decision else {
        note(result, decision, channel, server)
        return decision
      }
      // Most likely the server closed it, or was ended and started again, meanwhile: the others are of no use either.
      pool.drop(server)
    }
    do throws(ClusterError) {
      let (channel, _) = try connect(to: server, call, until: limit, interruption)
      let (result, decision) = run(call, on: channel, until: limit, interruption)
      note(result, decision, channel, server)
      return decision
    } catch {
      guard case .unavailable = error, !interruption.isInterrupted else { return .fail(error) }
      return .again(error)
    }
  }

  /// With a new token, if the first one is refused.
  private func run(
    _ call: EtcdCall, on channel: Channel, until limit: ContinuousClock.Instant,
    _ interruption: CallInterruption
  ) -> (CallResult, CallDecision) {
    var (result, decision) = runOnce(call, on: channel, until: limit, interruption)
    if case .logIn = decision { (result, decision) = runOnce(call, on: channel, until: limit, interruption) }
    if case .logIn(let error) = decision { decision = .fail(error) }
    return (result, decision)
  }

  /// `logIn`: the token was refused, and is forgotten; without a user, that is an error.
  private func runOnce(
    _ call: EtcdCall, on channel: Channel, until limit: ContinuousClock.Instant,
    _ interruption: CallInterruption
  ) -> (CallResult, CallDecision) {
    let token: EtcdLogin.Token?
    do throws(ClusterError) { token = try logIn(on: channel, until: limit, interruption) } catch {
      let isFinal = if case .unavailable = error { interruption.isInterrupted } else { true }
      return (
        .unanswered(reason: "there is no token", wasSent: false), isFinal ? .fail(error) : .again(error)
      )
    }
    let result = channel.call(
      call, metadata: metadata(token, needsLeader: call.needsLeader),
      patience: call.isChange ? patienceOfChange(until: limit, interruption) : patience, until: limit,
      mostBytes: configuration.largestReply, interruption)
    let decision = CallDecision(result, isChange: call.isChange, server: channel.endpoint.description)
    guard case .logIn(let error) = decision else { return (result, decision) }
    guard let login = configuration.login else { return (result, .fail(error)) }
    login.forget(token)
    return (result, decision)
  }

  /// The server refuses at once what it can't do without a leader (`hasleader`).
  func metadata(_ token: EtcdLogin.Token?, needsLeader: Bool = true) -> [String] {
    (needsLeader ? ["hasleader: true"] : []) + (token.map { ["token: \($0.text)"] } ?? [])
  }

  /// Keeps the connection, or finds that the server does not answer.
  private func note(_ result: CallResult, _ decision: CallDecision, _ channel: Channel, _ server: Int) {
    switch result {
    case .reply, .status:
      pool.put(channel, server)
      if case .again = decision {
        health.withLock { $0.failed(server) }
      } else {
        health.withLock { $0.succeeded(server) }
      }
    case .unanswered, .late: failed(server)
    case .interrupted: break
    }
  }

  /// The server does not answer.
  func failed(_ server: Int) {
    health.withLock { $0.failed(server) }
    pool.drop(server)
    suspect(server)
  }
}
