import Dispatch
import Model
import Platform
import Store
import Synchronization

/// The journals of a folder's suites, as far as this process has read them.
///
/// A suite is folded half a second after a commit that its file does not have: the file is written as a whole, on a
/// thread of its own. When nothing has changed for two more seconds, the journal is removed.
final class SuiteJournals: Sendable {
  /// One journal.
  struct State {
    /// How far it was read.
    var stamp: JournalStamp
    /// Keys that the file does not have as they are, with the offset of the end of the last record of each.
    var pending: [ExactString: Int] = [:]
    /// The contents of the suite where keys are pending: those of `stamp`; nil: not all keys are known.
    var contents: SuiteContents?
    /// The time of the last commit.
    var lastCommit = Timestamp(seconds: 0)
    /// This process has appended to it.
    var isOwn = false
    var isFoldingPlanned = false
    var isRemovalPlanned = false
    var isSynchronizingPlanned = false
    /// The journal's name is on the disk.
    var isNameSafe = false
    /// Why the disk did not take the last commit, until a caller got the error.
    var failure: StoreError?
  }

  private let states = Mutex<[ExactString: State]>([:])
  /// By how much the file may lag behind the journal, less the time that writing it takes.
  let delay: DispatchTimeInterval
  /// When an unchanged journal that the file does not need is removed: other processes go on by it until then.
  let removalDelay: DispatchTimeInterval
  /// Files from this size on have a journal, in bytes.
  let smallestFile: Int

  init(smallestFile: Int, delay: DispatchTimeInterval, removalDelay: DispatchTimeInterval) {
    (self.smallestFile, self.delay, self.removalDelay) = (smallestFile, delay, removalDelay)
  }

  func state(of suite: ExactString) -> State? { states.withLock { $0[suite] } }

  /// Whether the suite has a journal, or had one when it was last looked at.
  func knows(_ suite: ExactString) -> Bool { states.withLock { $0[suite] != nil } }

  /// Forgets a journal that is not there any more, or is not to be gone on from; not one that another thread has made since
  /// `stamp`, or read further.
  func forget(_ suite: ExactString, _ stamp: JournalStamp?) {
    states.withLock { states in
      if states[suite]?.stamp == stamp { states[suite] = nil }
    }
  }

  /// Takes over what was read of a journal behind `known`, or appended to it. `contents`: nil where not all keys are known.
  func note(
    _ portion: SuiteJournal.Portion, after known: JournalStamp?, of suite: ExactString,
    contents: SuiteContents?
  ) {
    states.withLock { states in
      var state = states[suite] ?? State(stamp: portion.stamp)
      // Another thread may have read or written more meanwhile. Nothing is lost by that: a fold reads what is behind
      // `stamp`, and before a removal the journal says whether the file has everything.
      if known == nil || state.stamp != known { state.pending = [:] }
      if known == nil { state.isNameSafe = false }
      for (record, end) in portion.records { state.take(record, end) }
      state.stamp = portion.stamp
      state.contents = state.pending.isEmpty ? nil : contents
      states[suite] = state
    }
  }

  /// Runs a change of a suite's state; nil: there is none.
  @discardableResult
  func change<Result>(_ suite: ExactString, _ body: (inout State) -> Result) -> Result? {
    states.withLock { states in
      guard var state = states[suite] else { return nil }
      defer { states[suite] = state }
      return body(&state)
    }
  }

  /// The suites of which the file lacks something that this process has committed.
  var unfolded: [ExactString] {
    states.withLock { $0.filter { $0.value.isOwn && !$0.value.pending.isEmpty }.map(\.key) }
  }
}

extension SuiteJournals.State {
  mutating func take(_ record: JournalRecord, _ end: Int) {
    switch record.content {
    case .commit(let commit):
      for change in commit.changes { pending[change.key] = end }
      lastCommit = record.time
    case .fold(let fold): pending = pending.filter { $0.value > Int(clamping: fold.end) }
    }
  }
}
