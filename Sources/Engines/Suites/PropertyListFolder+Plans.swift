import Dispatch
import Model
import Platform
import Store
import Synchronization

// The work after a commit to a journal, on threads of its own.
extension PropertyListFolder {
  /// When a journal is brought to the disk: many commits in a row share the wait.
  private static let synchronizingDelay = DispatchTimeInterval.milliseconds(10)

  /// Folds the suite later, where its file lacks something; else removes the journal later.
  func planFolding(of suite: ExactString, after delay: DispatchTimeInterval? = nil) {
    let isPlanned = journals.change(suite) { state in
      guard !state.pending.isEmpty else { return false }
      defer { state.isFoldingPlanned = true }
      return !state.isFoldingPlanned
    }
    guard isPlanned == true else { return planRemoval(of: suite) }
    Background.run(after: delay ?? journals.delay) { [self] in
      journals.change(suite) { $0.isFoldingPlanned = false }
      let isDone = (try? fold(suite, .none)) ?? false
      planFolding(of: suite, after: isDone ? nil : .seconds(1))
    }
  }

  func planRemoval(of suite: ExactString) {
    let stamp = journals.change(suite) { state -> JournalStamp? in
      guard state.pending.isEmpty, !state.isRemovalPlanned else { return nil }
      state.isRemovalPlanned = true
      return state.stamp
    }
    guard let stamp, let stamp else { return }
    Background.run(after: journals.removalDelay) { [self] in
      let isUnchanged = journals.change(suite) { state in
        state.isRemovalPlanned = false
        return state.stamp == stamp
      }
      guard let isUnchanged else { return }
      if isUnchanged, (try? removeJournal(of: suite)) == true { return }
      planFolding(of: suite)
    }
  }

  private func removeJournal(of suite: ExactString) throws(StoreError) -> Bool {
    let file = try existing(suite)
    let target = try file.target()
    return try removeJournal(of: file, target, SuiteLock(target, .none))
  }

  func planSynchronizing(of file: SuiteFile) {
    let isPlanned = journals.change(file.suite) { state in
      defer { state.isSynchronizingPlanned = true }
      return !state.isSynchronizingPlanned
    }
    guard isPlanned == true else { return }
    Background.run(after: Self.synchronizingDelay) { [self] in
      let isNameSafe = journals.change(file.suite) { state in
        state.isSynchronizingPlanned = false
        return state.isNameSafe
      }
      do throws(StoreError) {
        try file.journal.synchronize(name: isNameSafe != true)
        journals.change(file.suite) { $0.isNameSafe = true }
      } catch {
        journals.change(file.suite) { $0.failure = error }
      }
    }
  }
}

// MARK: - At the end of a process

extension PropertyListFolder {
  private static let writers = Mutex<[PropertyListFolder]>([])

  /// Folds what this process has committed, when it ends: atexit(3). After a kill, the next command does.
  func foldAtExit() {
    _ = Self.foldsAtExit
    Self.writers.withLock { writers in
      if !writers.contains(where: { $0.journals === journals }) { writers.append(self) }
    }
  }

  private static let foldsAtExit: Void = {
    CurrentProcess.atExit {
      for folder in writers.withLock({ $0 }) {
        for suite in folder.journals.unfolded { folder.foldBeforeExit(suite) }
      }
    }
  }()

  private func foldBeforeExit(_ suite: ExactString) {
    guard let file = SuiteFile(folder: folder, suite: suite), let target = try? file.target() else { return }
    for _ in 0..<100 {
      if (try? fold(suite, .none)) == true { break }
      Pause.microseconds(10_000)
    }
    _ = try? SuiteCommits.to(target).settle()
  }
}

// MARK: - After a kill or a power cut

extension PropertyListFolder {
  /// In seconds: the journals of processes that live are folded and removed before that.
  private static let abandonedAge = Int64(5)

  /// Folds and removes all journals, so that the files have everything.
  public func endJournals() {
    endJournals(among: ((try? SuiteFiles.names(in: folder)) ?? []).compactMap { $0 }, from: 0)
  }

  /// Folds and removes journals that no process has seen to.
  func endAbandonedJournals(among names: [String]) { endJournals(among: names, from: Self.abandonedAge) }

  private func endJournals(among names: [String], from age: Int64) {
    for name in names where name.hasSuffix(SuiteFile.ending + SuiteJournal.ending) {
      guard let suite = Self.suite(ofFile: name), let file = SuiteFile(folder: folder, suite: suite),
        let status = try? SuiteFiles.status(file.journal.path, follow: false),
        !(0..<age).contains(Timestamp.now.seconds &- status.modified.seconds)
      else { continue }
      // Of a suite that is gone, nothing is kept.
      if (try? file.status()) == nil { try? file.journal.lock()?.remove() } else { try? endJournal(of: file) }
    }
  }
}
