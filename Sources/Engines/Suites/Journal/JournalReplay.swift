import Model
import Store

// The contents of a suite after the records of a journal.
extension SuiteJournal.Portion {
  /// The commits that the file `base` does not have.
  ///
  /// `isExact`: the journal knows this version of the file. Else another program has written it meanwhile.
  func unfolded(by base: FileVersion) -> (commits: [(record: JournalRecord, end: Int)], isExact: Bool) {
    let folds = records.compactMap { entry -> JournalFold? in
      guard case .fold(let fold) = entry.record.content else { return nil }
      return fold
    }
    let known = folds.last { $0.to == base }
    let end = Int(clamping: (known?.end ?? folds.map(\.end).max()) ?? 0)
    let commits = records.filter { entry in
      guard case .commit = entry.record.content else { return false }
      return entry.end > end
    }
    return (commits, known != nil)
  }
}

extension SharedDictionary<Setting> {
  /// Makes the changes of commits.
  mutating func apply(_ commits: [JournalRecord]) {
    for record in commits {
      guard case .commit(let commit) = record.content else { continue }
      for change in commit.changes {
        self[change.key] = change.value.map { Setting($0, modified: change.modified ?? record.time) }
      }
    }
  }

  /// The times of the keys that have one.
  var times: [ExactString: Timestamp] {
    reduce(into: [:]) { $0[$1.key] = $1.value.modified }
  }

  /// Makes the changes of commits in a file that a program which does not know of the journal has written since.
  ///
  /// Such a program keeps the values that it does not set, as it read them: then the commit's value holds. Of a key that
  /// both have set, the later one's value does, as without a journal. `time`: when the file was written.
  mutating func merge(_ commits: [JournalRecord], into time: Timestamp) {
    var before: [ExactString: UInt64?] = [:]
    var last: [ExactString: (change: JournalCommit.Change, time: Timestamp)] = [:]
    for record in commits {
      guard case .commit(let commit) = record.content else { continue }
      for change in commit.changes {
        if before[change.key] == nil { before[change.key] = .some(change.before) }
        last[change.key] = (change, record.time)
      }
    }
    for (key, (change, moment)) in last {
      let isAsBefore = self[key].map { StableHash.of($0.value) } == before[key] ?? nil
      guard isAsBefore || moment >= time else { continue }
      self[key] = change.value.map { Setting($0, modified: change.modified ?? moment) }
    }
  }
}
