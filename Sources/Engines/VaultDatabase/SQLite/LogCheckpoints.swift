import Dispatch
import GRDB
import Platform
import Synchronization
import VaultRecords

/// Brings the database's log (`-wal`) into the database two seconds after the last commit, and when the process ends.
///
/// After that `vault.db` and `vault.key` are the whole vault, and a copy of the two files is a backup.
final class LogCheckpoints: Sendable {
  /// How long after the last commit, in seconds.
  static let delay = 2
  /// The longest pause between two attempts while others keep the log busy, in seconds.
  private static let longestDelay = 64

  /// How long the last attempt waits for other connections, in milliseconds.
  private static let lastWait: Int32 = 1000

  private struct State {
    var timer: (any DispatchSourceTimer)?
    /// When the timer fires; nil: it is not set. A commit leaves it as it is: to set it wakes a thread.
    var timerTime: DispatchTime?
    /// When the next attempt is due: not before the timer fires.
    var due = DispatchTime.now()
    var delay = LogCheckpoints.delay
    var isPending = false
  }

  private let path: String
  private let database: WeakDatabase
  private let known: KnownStamp
  private let work = DispatchQueue(label: "keyhole.vault.checkpoint")
  private let state = Mutex(State())

  init(_ path: String, _ database: DatabaseQueue, _ known: KnownStamp) {
    self.path = path
    self.database = WeakDatabase(database)
    self.known = known
    Self.all.withLock { $0.append(WeakCheckpoints(self)) }
    _ = Self.runsAtExit
  }

  deinit {
    state.withLock { $0.timer?.cancel() }
    Self.all.withLock { all in all.removeAll { $0.value == nil } }
  }

  /// The log holds something: this process committed it, or found that another one did.
  func noteCommit() {
    state.withLock { state in
      (state.isPending, state.delay) = (true, Self.delay)
      schedule(&state)
    }
  }

  /// Brings the log into the database now. A database that something else has written to or replaced is left alone until
  /// that was looked at.
  ///
  /// - Returns: false: that, or another connection is reading or writing.
  @discardableResult func run(waiting milliseconds: Int32 = 0) -> Bool {
    guard let database = database.value else { return true }
    let isDone = database.writeWithoutTransaction { [known] database in
      guard database.isOpen, !known.isTouched else { return false }
      guard database.checkpoint(truncatingLog: false, waiting: milliseconds) else {
        known.note()
        return false
      }
      // Looked at before others can see that the log is empty. What writes to the file from now on is another program.
      known.note()
      return database.checkpoint(truncatingLog: true, waiting: milliseconds)
    }
    if isDone { state.withLock { $0.isPending = false } }
    return isDone
  }

  /// The connection ends: what it committed is brought in while it still can be.
  func finish() {
    if isDue { run(waiting: Self.lastWait) }
  }
}

extension LogCheckpoints {
  private func schedule(_ state: inout State) {
    state.due = .now() + .seconds(state.delay)
    if state.timerTime.map({ state.due < $0 }) ?? true { setTimer(&state) }
  }

  private func setTimer(_ state: inout State) {
    let timer = state.timer ?? makeTimer()
    (state.timer, state.timerTime) = (timer, state.due)
    timer.schedule(deadline: state.due, leeway: .milliseconds(200))
  }

  private func makeTimer() -> any DispatchSourceTimer {
    let timer = DispatchSource.makeTimerSource(queue: work)
    timer.setEventHandler { [weak self] in self?.fire() }
    timer.activate()
    return timer
  }

  private func fire() {
    let isDue = state.withLock { state in
      state.timerTime = nil
      guard state.due > .now() else { return true }
      setTimer(&state)
      return false
    }
    guard isDue, !run() else { return }
    state.withLock { state in
      state.delay = min(2 * state.delay, Self.longestDelay)
      schedule(&state)
    }
  }

  private static let all = Mutex<[WeakCheckpoints]>([])

  /// atexit(3): what this process committed, and what one that was killed left, is in the database when a command ends.
  private static let runsAtExit: Void = {
    CurrentProcess.atExit {
      let due = (LogCheckpoints.all.withLockIfAvailable { $0.compactMap(\.value) } ?? [])
        .filter(\.isDue)
      guard !due.isEmpty else { return }
      let isDone = DispatchSemaphore(value: 0)
      DispatchQueue(label: "keyhole.vault.exit").async {
        // There is no other attempt.
        for checkpoints in due { checkpoints.run(waiting: LogCheckpoints.lastWait) }
        isDone.signal()
      }
      // A disk that hangs must not keep the process.
      _ = isDone.wait(timeout: .now() + 5)
    }
  }()

  private var isDue: Bool {
    if state.withLock({ $0.isPending }) { return true }
    guard let status = try? Files.status(path + "-wal"), status.size > 0 else { return false }
    // The process that wrote it lately is still there, and will do it.
    return status.modified.seconds < SystemTime.now.seconds - 2 * Int64(Self.delay)
  }
}

private final class WeakCheckpoints: Sendable {
  private let box: Mutex<Weak<LogCheckpoints>>
  init(_ value: LogCheckpoints) { box = Mutex(Weak(value)) }
  var value: LogCheckpoints? { box.withLock { $0.value } }
}

private final class WeakDatabase: Sendable {
  private let box: Mutex<Weak<DatabaseQueue>>
  init(_ value: DatabaseQueue) { box = Mutex(Weak(value)) }
  var value: DatabaseQueue? { box.withLock { $0.value } }
}

private struct Weak<Value: AnyObject & Sendable>: Sendable {
  weak var value: Value?
  init(_ value: Value) { self.value = value }
}
