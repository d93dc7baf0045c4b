import Dispatch
import Platform
import Synchronization

/// A watch of a range, with a connection and a thread of its own. It connects again by itself.
final class EtcdWatch: ClusterWatch {
  private struct State {
    var thread: ThreadID?
    /// The server of the present stream.
    var server: Int?
    var wake: (@Sendable () -> Void)?
    /// A call to that server was not answered.
    var isSuspicious = false
  }

  private let cluster: EtcdCluster
  private let range: KeyRange
  private let first: Int64
  private let report: @Sendable (WatchReport) -> Void
  private let state = Mutex(State())
  private let interruption = CallInterruption()
  /// Held while `report` is called.
  private let turn = Mutex<Void>(())

  init(
    _ cluster: EtcdCluster, _ range: KeyRange, from revision: Int64,
    report: @escaping @Sendable (WatchReport) -> Void
  ) {
    (self.cluster, self.range, first, self.report) = (cluster, range, revision, report)
  }

  /// Begins; `ended` is called on the watch's thread at its end.
  func start(ended: @escaping @Sendable () -> Void) {
    let body: @Sendable () -> Void = { [self] in
      ThreadID.blockSignals()
      state.withLock { $0.thread = .current }
      run()
      ended()
    }
    if !ThreadID.start(body) { Background.run(body) }
  }

  func cancel() {
    interruption.interrupt()
    let state = state.withLock { ($0.thread, $0.wake) }
    state.1?()
    // From inside `report`, which nothing calls again.
    if state.0 == .current { return }
    turn.withLock { _ in }
  }

  /// A call to a server was not answered: if this watch is there, it asks for a sign of life at once.
  func suspect(_ server: Int) {
    let wake = state.withLock { state -> (@Sendable () -> Void)? in
      guard state.server == server else { return nil }
      state.isSuspicious = true
      return state.wake
    }
    wake?()
  }

  /// The server of the present stream; nil: there is none.
  var server: Int? { state.withLock { $0.server } }

  private var isCancelled: Bool { interruption.isInterrupted }

  private func tell(_ report: WatchReport) {
    turn.withLock { _ in
      if !isCancelled { self.report(report) }
    }
  }
}

// MARK: - The thread

extension EtcdWatch {
  /// The end of one stream.
  private enum End: Error {
    case lost(ClusterError)
    /// The token, or the user.
    case unauthorized(ClusterError)
    case compacted(oldest: Int64)
    case refused(ClusterError)
  }

  private func run() {
    var history = WatchHistory(from: first)
    var pauses = Backoff(first: .milliseconds(100), longest: .seconds(5))
    var isConnected = true
    var wasUnauthorized = false
    while !isCancelled {
      let begin = ContinuousClock.now
      do throws(End) {
        try follow(&history) {
          isConnected = true
          wasUnauthorized = false
          pauses.reset()
          tell(.connected)
        }
      } catch {
        switch error {
        case .compacted(let oldest): return tell(.compacted(revision: oldest))
        case .refused(let error): return tell(.refused(error))
        case .unauthorized(let error) where wasUnauthorized || cluster.configuration.login == nil:
          // The user may get the right again.
          tell(.refused(error))
          isConnected = false
        case .unauthorized(let error), .lost(let error):
          if case .unauthorized = error { wasUnauthorized = true }
          if isConnected { tell(.disconnected(error)) }
          isConnected = false
        }
      }
      // A server that ends each stream at once is not asked without a pause.
      if ContinuousClock.now - begin > .seconds(10) { pauses.reset() }
      _ = interruption.wait(pauses.pause())
    }
  }

  /// One stream, to its end.
  private func follow(_ history: inout WatchHistory, connected: () -> Void) throws(End) {
    history.reconnected()
    let (server, channel, isProgressOrdered) = try connect(history)
    state.withLock { state in
      state.server = server
      state.isSuspicious = false
      state.wake = { channel.wake() }
    }
    defer {
      state.withLock { state in
        state.server = nil
        state.wake = nil
      }
    }
    var stream = WatchStream(channel, silence: cluster.configuration.watchSilence, patience: cluster.patience)
    while !isCancelled {
      if state.withLock({ takeSuspicion(&$0) }) { stream.askForProgress() }
      guard let reply = try next(&stream, server) else { continue }
      try check(reply)
      do throws(WireError) {
        let reports = try history.take(reply, isProgressOrdered: isProgressOrdered)
        if reply.isCreated { connected() }
        for report in reports { tell(report) }
      } catch {
        throw .lost(.unavailable("\(channel.endpoint): the reply is malformed"))
      }
    }
  }

  private func takeSuspicion(_ state: inout State) -> Bool {
    defer { state.isSuspicious = false }
    return state.isSuspicious
  }

  private func next(_ stream: inout WatchStream, _ server: Int) throws(End) -> WatchReply? {
    do throws(ClusterError) {
      return try stream.next { isCancelled || state.withLock { $0.isSuspicious } }
    } catch {
      switch error {
      case .unavailable: cluster.health.withLock { $0.failed(server) }
      case .unauthorized:
        cluster.configuration.login?.forget(cluster.configuration.login?.current)
        throw .unauthorized(error)
      default: break
      }
      throw .lost(error)
    }
  }

  /// Looks at what a reply says but its changes.
  private func check(_ reply: WatchReply) throws(End) {
    do throws(ClusterError) { try cluster.verify(reply.header, notBefore: nil) } catch {
      throw .refused(error)
    }
    guard reply.isCancelled else { return cluster.hear() }
    if reply.oldest > 0 { throw .compacted(oldest: reply.oldest) }
    if reply.reason.contains("permission denied") || reply.reason.contains("invalid auth token") {
      cluster.configuration.login?.forget(cluster.configuration.login?.current)
      throw .unauthorized(.unauthorized(reply.reason))
    }
    throw .lost(.unavailable("the server ended the watch: \(reply.reason)"))
  }

  /// Opens a stream at one of the servers, the first that takes it, and asks for the watch.
  private func connect(_ history: WatchHistory) throws(End) -> (Int, Channel, Bool) {
    var last = ClusterError.unavailable("no server of the cluster answers")
    let call = EtcdCall(method: .watch, message: WatchRequest.create(range, from: history.next).wire.bytes)
    for server in cluster.health.withLock({ $0.order() }) where !isCancelled {
      do throws(ClusterError) {
        let limit = ContinuousClock.now + cluster.patience
        let (channel, status) = try cluster.connect(
          to: server, call, seeing: history.next - 1, probing: range.start, until: limit, interruption)
        // Never from beyond what the server has: see issue 20221 of etcd.
        guard status.header.revision >= history.next - 1 else {
          throw .unavailable("\(channel.endpoint): it lags behind")
        }
        let token = try cluster.logIn(on: channel, until: limit, interruption)
        try channel.begin(
          call.method.rawValue, sending: call.message, isComplete: false, metadata: cluster.metadata(token),
          limit: cluster.configuration.largestReply)
        return (server, channel, status.isProgressOrdered)
      } catch {
        switch error {
        case .wrongCluster: throw .refused(error)
        case .unauthorized: throw .unauthorized(error)
        default: last = error
        }
      }
    }
    throw .lost(last)
  }
}
