import ClusterRecords
import EtcdClient
import Model
import Platform
import Synchronization

/// The ends of the calls that run: whatever a call asks the cluster for, and how often, it ends within the cluster's deadline.
final class CallLimits: Sendable {
  private struct State {
    var ends: [ThreadID: ContinuousClock.Instant] = [:]
    /// When a call has used up its time, the last one of which none was answered since, and the error.
    var failure: (first: ContinuousClock.Instant, last: ContinuousClock.Instant, error: StoreError)?
    /// When the cluster was heard last; nil: it was not.
    var heard: ContinuousClock.Instant?
  }

  private let state = Mutex(State())

  /// For so long, calls that follow one which has used up its time fail at once: many that wait for each other end together.
  private static let pause = Duration.seconds(1)

  /// For so long after a call that has used up its time, further ones get `brief` at most: a command makes several.
  private static let memory = Duration.seconds(30)
  private static let brief = Duration.seconds(2)

  /// For so long after a call that has used up its time, files are not opened to be changed.
  private static let refusing = Duration.seconds(10)

  /// Why the last call was not answered, a few seconds ago; nil: it was, or none was made.
  var recentFailure: StoreError? {
    state.withLock { state in
      state.failure.flatMap { $0.last + Self.refusing > .now ? $0.error : nil }
    }
  }

  /// The cluster was heard.
  func noteAnswer() {
    state.withLock { state in
      state.failure = nil
      state.heard = .now
    }
  }

  private static let silence = StoreError.unreachable(reason: "\(StoreError.noAnswer)")

  /// The end of the calling thread's call; nil: it has none.
  var end: ContinuousClock.Instant? { state.withLock { $0.ends[.current] } }

  /// Runs a call of this thread, which has to end within `deadline`. Inside another one, that one's end holds.
  ///
  /// - Throws: `unreachable` at once where a call has just failed after all its time; what `body` throws.
  func limit<Result: ~Copyable>(
    to deadline: Duration, _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    let (thread, now) = (ThreadID.current, ContinuousClock.now)
    let (isInside, failure, deadline) = state.withLock { state -> (Bool, StoreError?, Duration) in
      guard state.ends[thread] == nil else { return (true, nil, deadline) }
      if let failure = state.failure, failure.last + Self.pause > now {
        return (false, failure.error, deadline)
      }
      let isSilent = state.failure.map { $0.first + Self.memory > now } ?? false
      let allowed = isSilent ? min(deadline, Self.brief) : deadline
      state.ends[thread] = now + allowed
      return (false, nil, allowed)
    }
    if isInside { return try body() }
    if let failure { throw failure }
    do throws(StoreError) {
      let result = try body()
      finish(thread, nil)
      return result
    } catch {
      // Time that this process itself has taken is no silence.
      let wasHeard = state.withLock { $0.heard.map { $0 > now } ?? false }
      let isLate = !wasHeard && now.duration(to: .now) >= deadline * 0.9
      // Others have sent nothing: of them no outcome is unknown. That others are faster is no silence.
      finish(thread, isLate && (error.isNoAnswer || error.isOutcomeUnknown) ? Self.silence : nil)
      throw error
    }
  }

  private func finish(_ thread: ThreadID, _ error: StoreError?) {
    state.withLock { state in
      state.ends[thread] = nil
      let now = ContinuousClock.now
      let first = state.failure.flatMap { $0.first + Self.memory > now ? $0.first : nil }
      state.failure = error.map { (first ?? now, now, $0) }
    }
  }
}

extension ClusterSession {
  /// Runs a call that ends within the cluster's deadline, however often it asks the cluster. - Throws: as `body`, and `unreachable`.
  func limited<Result: ~Copyable>(
    _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try limited(to: cluster.deadline, body)
  }

  /// How long an answer is waited for where the cluster did not answer lately, and this device has a copy.
  static var shortPatience: Duration { .seconds(1) }

  /// The same within another time.
  func limited<Result: ~Copyable>(
    to duration: Duration, _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try limits.limit(to: duration, body)
  }

  /// For so long the watch may be without a connection, in seconds.
  private static var shortSilence: Int64 { 3 }

  /// Without asking the cluster. `silence`: since when a watch has no connection; nil: it has.
  ///
  /// `refusal`: why the servers refuse the watch; nil: they don't.
  ///
  /// - Throws: `unreachable` where a call was not answered a few seconds ago, or the watch has found no server for longer; `accessDenied`.
  func checkAnswers(since silence: Timestamp?, _ refusal: ClusterError?) throws(StoreError) {
    if let refusal { throw StoreError(refusal) }
    if let failure = limits.recentFailure {
      askLater()
      throw failure
    }
    guard let silence, Timestamp.now.seconds &- silence.seconds > Self.shortSilence, !wasHeard else { return }
    askLater()
    throw .unreachable(reason: "\(StoreError.noAnswer) since \(silence.iso8601)")
  }

  /// Whether a call was answered a moment ago, which the watch may not know yet.
  private var wasHeard: Bool {
    answered.withLock { $0.map { $0.duration(to: .now) < .seconds(Self.shortSilence) } ?? false }
  }

  /// Asks the cluster once, on a thread of its own: where it answers, the next file is opened.
  private func askLater() {
    guard !isAsking.exchange(true, ordering: .acquiringAndReleasing) else { return }
    Background.run { [self] in
      // Not as a call: where it is not answered, no other one is to be refused for that.
      _ = try? read([KeyRange(key: paths.ring)])
      isAsking.store(false, ordering: .releasing)
    }
  }

  /// The end of the call that runs on this thread.
  var end: ContinuousClock.Instant { limits.end ?? .now + cluster.deadline }

  /// Ends a call to the cluster with the call that runs on this thread. - Throws: `unavailable` where no time is left.
  func interruption() throws(ClusterError) -> CallInterruption {
    guard let end = limits.end else { return CallInterruption() }
    guard ContinuousClock.now < end else { throw .unavailable("it did not answer in time") }
    return CallInterruption(until: end)
  }
}
