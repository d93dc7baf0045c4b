import Dispatch
import Platform
import Store
import Synchronization

/// Runs the operations that may wait, off the workers that read the kernel's requests unless they are short.
final class WaitingOperations: Sendable {
  /// The cause of a wait.
  enum Cause {
    /// A disk, or another process's lock on a suite.
    case disk
    /// The servers of a cluster.
    case server
    /// A change of the vault that is under way, which may wait for another process.
    case vault
    /// A process that may hang, as that of a Secret Service.
    case process
  }

  /// So many run on Dispatch's threads, of which there are few; more, where another process's lock holds them up, get
  /// threads of their own.
  private static let mostShared = 32

  /// An operation is run on the thread that reads requests where the last one of its kind took less than this, in nanoseconds.
  private static let shortTime: Int64 = 1_000_000

  private let running = Atomic(0)
  private let isRunningHere = Atomic(false)
  private let timeOfSettings = Atomic<Int64>(0)
  private let timeOfSecrets = Atomic<Int64>(0)
  private let group = DispatchGroup()
  private let threads = WaitingThreads()

  /// Runs an operation on this thread, which has read its request, and returns true; false: it was not run.
  ///
  /// To wait for another thread takes longer than most changes of a setting. Where other requests are there, or the last operation of its kind was not short, the
  /// spare thread reads on in place of this one. A thread that is held up otherwise is replaced after some milliseconds; so that there is always another
  /// one, only one operation at a time is run so.
  /// `hasOthers`: whether there are requests that no thread has read yet. `handOver` has the spare read on, and returns false where it can't.
  func runHere(
    ofSecrets: Bool, hasOthers: () -> Bool, handOver: () -> Bool, _ work: () -> Void
  ) -> Bool {
    guard !isRunningHere.exchange(true, ordering: .acquiring) else { return false }
    let time = ofSecrets ? timeOfSecrets.load(ordering: .relaxed) : timeOfSettings.load(ordering: .relaxed)
    guard time < Self.shortTime && !hasOthers() || handOver() else {
      isRunningHere.store(false, ordering: .releasing)
      return false
    }
    group.enter()
    work()
    group.leave()
    isRunningHere.store(false, ordering: .releasing)
    return true
  }

  /// To be called after each operation with what it took.
  func note(_ duration: Duration, ofSecrets: Bool) {
    let (seconds, attoseconds) = duration.components
    let time = seconds > 0 ? Int64.max : attoseconds / 1_000_000_000
    if ofSecrets {
      timeOfSecrets.store(time, ordering: .relaxed)
    } else {
      timeOfSettings.store(time, ordering: .relaxed)
    }
  }

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
