import Dispatch
import EtcdClient
import Model
import Platform
import Synchronization

/// The watch of an engine: it begins with what was read first, and begins again where the cluster has forgotten what followed.
final class ClusterFollower: Sendable {
  private struct State {
    var watch: (any ClusterWatch)?
    var isStopped = false
    /// Since when nothing was heard.
    var silence: Timestamp?
    /// Why nothing follows any more.
    var refusal: ClusterError?
  }

  private let session: ClusterSession
  private let range: KeyRange
  private let state = Mutex(State())
  private let isStarted = Atomic(false)
  private let starting = Locked(())
  private let turns = SerialTurns()
  private let heard: @Sendable () -> Void

  /// `heard` is called when the cluster was heard, on the watch's thread among others.
  init(
    _ session: ClusterSession, _ range: KeyRange, heard: @escaping @Sendable () -> Void = {}
  ) {
    (self.session, self.range, self.heard) = (session, range, heard)
  }

  /// Since when the cluster was not heard; nil: it is, or was not asked yet.
  var silence: Timestamp? { state.withLock { $0.silence } }

  /// Whether everything was read once.
  var hasStarted: Bool { isStarted.load(ordering: .acquiring) }

  /// Why the cluster is not followed any more; nil: it is.
  var refusal: ClusterError? { state.withLock { $0.refusal } }

  /// Reads everything once, and follows it from there.
  ///
  /// - Parameters:
  ///   - read: reads everything, and returns the revision that it was read at.
  ///   - take: gets the changes of one revision each, on the watch's thread.
  ///   - reread: reads everything again, and returns the revision.
  /// - Throws: the errors of `read`.
  func start(
    _ read: () throws(StoreError) -> Int64, take: @escaping @Sendable ([KeyChange], Int64) -> Void,
    reread: @escaping @Sendable () throws(StoreError) -> Int64
  ) throws(StoreError) {
    guard !isStarted.load(ordering: .acquiring) else { return }
    try starting.use { (_) throws(StoreError) in
      guard !isStarted.load(ordering: .acquiring) else { return }
      watch(from: try session.limited { () throws(StoreError) in try read() } + 1, take, reread)
      isStarted.store(true, ordering: .releasing)
      heard()
    }
  }

  /// No report follows.
  func stop() {
    let watch = state.withLock { state in
      state.isStopped = true
      defer { state.watch = nil }
      return state.watch
    }
    watch?.cancel()
  }

  private func watch(
    from revision: Int64, _ take: @escaping @Sendable ([KeyChange], Int64) -> Void,
    _ reread: @escaping @Sendable () throws(StoreError) -> Int64
  ) {
    let watch = session.cluster.watch(range, from: revision) { [weak self] report in
      self?.take(report, take, reread)
    }
    let isStopped = state.withLock { state in
      if !state.isStopped { state.watch = watch }
      return state.isStopped
    }
    if isStopped { watch.cancel() }
  }

  private func take(
    _ report: WatchReport, _ take: @escaping @Sendable ([KeyChange], Int64) -> Void,
    _ reread: @escaping @Sendable () throws(StoreError) -> Int64
  ) {
    switch report {
    case .changes(let changes, let revision):
      hear()
      take(changes, revision)
    case .progress, .connected: hear()
    case .disconnected: state.withLock { $0.silence = $0.silence ?? .now }
    case .compacted: beginAgainLater(take, reread)
    case .refused(let error):
      state.withLock { state in
        (state.refusal, state.silence) = (error, state.silence ?? .now)
      }
      // Not only the watch: no other call takes anything from it either.
      if case .wrongCluster(let reason) = error { session.seen.refuse(reason) }
    }
  }

  private func hear() {
    state.withLock { ($0.silence, $0.refusal) = (nil, nil) }
    session.limits.noteAnswer()
    heard()
  }

  /// How long an unsuccessful attempt to read everything is waited after.
  private static let pause = DispatchTimeInterval.seconds(1)

  private func pause(
    _ take: @escaping @Sendable ([KeyChange], Int64) -> Void,
    _ reread: @escaping @Sendable () throws(StoreError) -> Int64
  ) {
    Background.run(after: Self.pause) { [weak self] in self?.beginAgainLater(take, reread) }
  }

  /// On a thread that may wait. Where there is none, it is tried after a pause.
  private func beginAgainLater(
    _ take: @escaping @Sendable ([KeyChange], Int64) -> Void,
    _ reread: @escaping @Sendable () throws(StoreError) -> Int64
  ) {
    if !turns.run({ [weak self] in self?.beginAgain(take, reread) }) { pause(take, reread) }
  }

  private func beginAgain(
    _ take: @escaping @Sendable ([KeyChange], Int64) -> Void,
    _ reread: @escaping @Sendable () throws(StoreError) -> Int64
  ) {
    guard !state.withLock({ $0.isStopped }) else { return }
    do throws(StoreError) {
      watch(from: try reread() + 1, take, reread)
      hear()
    } catch {
      state.withLock { $0.silence = $0.silence ?? .now }
      pause(take, reread)
    }
  }
}
