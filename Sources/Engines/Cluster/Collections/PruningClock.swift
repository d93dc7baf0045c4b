package import Model
import Synchronization

extension Timestamp {
  /// The time at which a state is replaced now that was stored at `stored`, after an earlier one that was replaced at `earlier`: by this device's
  /// clock, but not before those, so that a slow clock makes no state too old to be kept.
  ///
  /// `changed`: when the collection was changed last, by the latest clock: a time of storing that is later was set by a person. `others`: the latest
  /// time that another device has signed; nil: there is none. Up to that it is not before the collection was changed, and later it is by this device's
  /// clock alone.
  static func end(
    stored: Timestamp?, after earlier: Timestamp?, _ changed: Timestamp, others: Timestamp?
  ) -> Timestamp {
    let now = Timestamp.now
    let stored = stored.map { min($0, changed) }
    guard let others else { return [stored, earlier].compactMap { $0 }.reduce(now) { max($0, $1) } }
    let most = max(now, others)
    return [stored, earlier, min(changed, others)].compactMap { $0 }.reduce(now) { max($0, min($1, most)) }
  }
}

/// The time by which versions are deleted that were kept for too long.
///
/// A device whose clock is fast would delete for all devices what they still keep. So the time is no later than the last one that another
/// device has signed, and until one was read nothing is too old. Of a device that is alone it is its own clock.
package final class PruningClock: Sendable {
  private enum Others {
    /// There are none.
    case none
    /// The latest time of their records; nil: none was read yet.
    case some(latest: Timestamp?)
  }

  /// How long after a record was made another one is expected, in seconds.
  private static let slack: Int64 = 600

  private let others = Mutex<Others>(.none)

  /// That of a device of which it is not known yet that there are others.
  package init() {}

  /// The store has other devices, or has none any more.
  package func noteOthers(_ areThere: Bool) {
    others.withLock { others in
      switch (others, areThere) {
      case (.none, true): others = .some(latest: nil)
      case (.some, false): others = .none
      default: break
      }
    }
  }

  /// The latest time of the records of other devices.
  package func note(_ latest: Timestamp) {
    others.withLock { others in
      guard case .some(let known) = others else { return }
      others = .some(latest: max(known ?? latest, latest))
    }
  }

  /// The latest time that another device has signed; nil: there is none, or none was read yet.
  var latestOther: Timestamp? {
    others.withLock { others in
      guard case .some(let latest) = others else { return nil }
      return latest
    }
  }

  /// Not later than this device's clock. Where nothing may be deleted, it is 1970.
  package var time: Timestamp {
    others.withLock { others in
      switch others {
      case .none: .now
      case .some(nil): Timestamp(seconds: 0)
      case .some(let latest?): min(Timestamp.now, Timestamp(seconds: latest.seconds &+ Self.slack))
      }
    }
  }
}
