import Dispatch
import Fuse
import Platform
import Synchronization
import Tree

/// Whether the nodes that the kernel knows are to be looked through.
final class PruningSchedule: Sendable {
  /// From so many lookups on, the nodes are worth a timer.
  private static let many = 1000

  private let lookups = Atomic(0)
  private let isPlanned = Atomic(false)

  /// The kernel does not know the notification.
  let isImpossible = Atomic(false)

  /// Counts a lookup. Returns whether the caller has to plan a sweep.
  func note() -> Bool {
    lookups.wrappingAdd(1, ordering: .relaxed).newValue >= Self.many && begin()
  }

  /// Returns whether the caller has to plan a sweep, as none is planned.
  func begin() -> Bool {
    guard !isPlanned.load(ordering: .relaxed), !isImpossible.load(ordering: .relaxed) else { return false }
    return !isPlanned.exchange(true, ordering: .acquiringAndReleasing)
  }

  /// The sweep begins; what is looked up from now on counts for the next one.
  func end() {
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
    if pruning.note() { planSweep() }
  }

  private func planSweep() {
    Background.run(after: Self.pruningInterval) { [weak self] in self?.sweep() }
  }

  /// Has the kernel forget what was not looked up since the last sweep; another one follows while something was.
  func sweep() {
    pruning.end()
    let (unused, used) = tree.takeUnusedNodes()
    prune(unused.map { NodeID(rawValue: $0.number) })
    if used > 0, pruning.begin() { planSweep() }
  }
}
