import Dispatch
import Platform
import Store
import Synchronization

/// Runs the operations that may wait, off the workers that read the kernel's requests.
final class WaitingOperations: Sendable {
  /// The cause of a wait.
  enum Cause {
    /// A disk, or another process's lock on a suite.
    case disk
    /// A change of the vault that is under way, which may wait for another process.
    case vault
    /// A process that may hang, as that of a Secret Service.
    case process
  }

  /// So many run on Dispatch's threads, of which there are few; more, where another process's lock holds them up, get
  /// threads of their own.
  private static let mostShared = 32

  private let running = Atomic(0)
  private let group = DispatchGroup()
  private let threads = WaitingThreads()

  /// False: too many wait for a process that may hang. All others are run: what was written must not be lost.
  func run(_ cause: Cause, _ work: @escaping @Sendable () -> Void) -> Bool {
    if cause == .process { return threads.run(work) }
    group.enter()
    let isShared = running.add(1, ordering: .relaxed).newValue <= Self.mostShared && cause == .disk
    let counted: @Sendable () -> Void = { [self] in
      work()
      running.subtract(1, ordering: .relaxed)
      group.leave()
    }
    // Where there are too many threads already, it waits its turn.
    if isShared || !threads.run(counted) { Background.run(counted) }
    return true
  }

  /// Returns when all are done.
  func finish() {
    group.wait()
    threads.finish()
  }
}
