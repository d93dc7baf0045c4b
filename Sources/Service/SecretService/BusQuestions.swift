import Model
import Store
import Synchronization

/// The questions to the person that the calls of one client have caused, and how long its calls wait for the answers.
///
/// Where no dialog can be shown, the requests are listed for `keyhole approve`. All calls of a client wait together then, not one
/// after the other, as the first requests would be over before the last one is listed.
final class BusQuestions: Sendable {
  /// An item and what a program wants to do with its secret: a person is asked about both.
  struct Subject: Hashable, Sendable {
    let item: ItemID
    let operation: AccessOperation
  }

  /// How long a call waits for `keyhole approve`: clients give up after 25 seconds.
  private static let patience = Duration.seconds(20)

  private struct State {
    var open: [UInt64: Subject] = [:]
    var listed: Set<UInt64> = []
    /// When the calls that wait for listed requests are answered.
    var end = ContinuousClock.now
  }

  private let state = Mutex(State())

  /// A question is about to be asked. False: the request for the same is listed, and the client's calls have waited for it long
  /// enough.
  func begin(_ key: UInt64, _ subject: Subject, at time: ContinuousClock.Instant = .now) -> Bool {
    state.withLock { state in
      let isListed = state.listed.contains { state.open[$0] == subject }
      guard !isListed || time < state.end else { return false }
      state.open[key] = subject
      return true
    }
  }

  /// The question could not be asked, and is listed.
  ///
  /// - Returns: how long its call waits on.
  func list(_ key: UInt64, at time: ContinuousClock.Instant = .now) -> Duration {
    state.withLock { state in
      guard state.open[key] != nil else { return .zero }
      if state.listed.isEmpty { state.end = time + Self.patience }
      state.listed.insert(key)
      return max(.zero, state.end - time)
    }
  }

  /// The question is answered, over or withdrawn.
  func end(_ key: UInt64) {
    state.withLock { state in
      state.open[key] = nil
      state.listed.remove(key)
    }
  }
}
