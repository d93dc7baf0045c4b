import Dispatch
import Fuse
import Platform
import Synchronization
import Tree

/// Whether the nodes that the kernel knows are to be looked through.
final class PruningSchedule: Sendable {
  /// From so many lookups on, the nodes are worth a timer.
  private static let many = 1000
  /// From so many lookups on, they are looked through at once: a program goes over very many files, each of which the kernel would keep in its
  /// memory, and this process a node for it.
  static let most = 131_072

  /// When the nodes are to be looked through.
  enum Due {
    case later
    case now
  }

  private let lookups = Atomic(0)
  private let isPlanned = Atomic(false)
  private let sweeps = Atomic(0)

  /// The kernel does not know the notification.
  let isImpossible = Atomic(false)

  /// How many sweeps have begun.
  var count: Int { sweeps.load(ordering: .relaxed) }

  /// Counts a lookup. Returns when the caller has to plan a sweep; nil: it need not.
  func note() -> Due? {
    let count = lookups.wrappingAdd(1, ordering: .relaxed).newValue
    if count == Self.most, !isImpossible.load(ordering: .relaxed) { return .now }
    return count >= Self.many && begin() ? .later : nil
  }

  /// Returns whether the caller has to plan a sweep, as none is planned.
  func begin() -> Bool {
    guard !isPlanned.load(ordering: .relaxed), !isImpossible.load(ordering: .relaxed) else { return false }
    return !isPlanned.exchange(true, ordering: .acquiringAndReleasing)
  }

  /// The sweep begins; what is looked up from now on counts for the next one.
  func end() {
    sweeps.wrappingAdd(1, ordering: .relaxed)
    lookups.store(0, ordering: .relaxed)
    isPlanned.store(false, ordering: .releasing)
  }
}

// The kernel keeps a file that was looked at until it needs the memory itself, and this process a node for each.
extension KernelCache {
  /// A file that was not looked up for one to two of these is forgotten.
  private static let pruningInterval = DispatchTimeInterval.seconds(60)

  /// To be called with each entry that the kernel gets.
  func noteLookup() {
    switch pruning.note() {
    case .now: Background.run { [weak self] in self?.sweep() }
    case .later: planSweep()
    case nil: break
    }
  }

  private func planSweep() {
    let count = pruning.count
    Background.run(after: Self.pruningInterval) { [weak self] in
      // One that was made meanwhile has planned the next.
      if self?.pruning.count == count { self?.sweep() }
    }
  }

  /// Has the kernel forget what was not looked up since the last sweep; another one follows while something was.
  func sweep() {
    pruning.end()
    let (unused, used) = tree.takeUnusedNodes()
    prune(unused.map { NodeID(rawValue: $0.number) })
    if used > 0, pruning.begin() { planSweep() }
  }
}
