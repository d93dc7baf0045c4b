import Formats
import Platform
import Suites

/// Puts the content of a backup in its places, and sets aside what is there.
///
/// Everything is written beside its place first, so that a damaged backup or a full disk changes nothing; then it is
/// moved, each file in one step. `RestoreRecovery` does the rest where a restore was interrupted.
public struct Restore {
  private let folders: BackupFolders

  /// `folders`: where the content is put.
  public init(_ folders: BackupFolders) {
    self.folders = folders
  }

  /// `confirm` is called when all is prepared and nothing is moved yet; what it throws takes the restore back.
  public func run(
    _ backup: OpenBackup, confirm: (BackupSummary) throws(BackupError) -> Void
  ) throws(BackupError) -> RestoreReport {
    guard let file = try RestoreJournalFile(in: folders.state) else {
      throw BackupError(nil, "another restore is under way; nothing was changed")
    }
    _ = try RestoreRecovery.recover(file)
    // The changes in a journal belong to the suite that is set aside, and not to the one that takes its place.
    PropertyListFolder(folder: folders.settings, stateFolder: folders.state).endJournals()
    let places = RestorePlaces(folders)
    // Prepared files without a journal belong to no restore that could go on.
    RestorePlaces.remove(places.prepared)
    try file.write(RestoreJournal(.preparing, prepared: places.prepared))
    do throws(BackupError) {
      return try move(prepare(backup, places, confirm), places, file)
    } catch {
      if let journal = try file.read(), journal.isUntouched {
        RestorePlaces.remove(places.prepared)
        file.remove()
        throw BackupError(error.subject, Self.nothingChanged(error.reason))
      }
      throw BackupError(
        error.subject, "\(error.reason); what is missing is done by the next keyhole command that can")
    }
  }

  private static func nothingChanged(_ reason: String) -> String {
    reason.hasSuffix("nothing was changed") ? reason : "\(reason); nothing was changed"
  }

  private typealias Prepared = (summary: BackupSummary, moves: [RestoreMove], suites: UInt64)

  private func prepare(
    _ backup: OpenBackup, _ places: RestorePlaces, _ confirm: (BackupSummary) throws(BackupError) -> Void
  ) throws(BackupError) -> Prepared {
    let preparation = RestorePreparation(folders, places)
    let summary = try backup.read { record in try preparation.take(record) }
    try confirm(summary)
    try preparation.switchOffVersions()
    return (summary, preparation.moves, preparation.suitesMoved)
  }

  private func move(
    _ prepared: Prepared, _ places: RestorePlaces, _ file: borrowing RestoreJournalFile
  ) throws(BackupError) -> RestoreReport {
    let journal = RestoreJournal(.moving, prepared: places.prepared, moves: prepared.moves)
    try file.write(journal)
    let aside = try journal.carryOut()
    file.remove()
    return RestoreReport(
      summary: prepared.summary, suites: prepared.suites,
      setAside: aside.filter { !$0.hasPrefix(places.asideTimes) })
  }
}

/// The result of a restore.
public struct RestoreReport: Hashable, Sendable {
  /// The summary of the backup.
  public let summary: BackupSummary
  /// Suites that were not there or had another content.
  public let suites: UInt64
  /// The paths that what was there has now.
  public let setAside: [String]
}

/// Finishes or takes back a restore that was interrupted.
public enum RestoreRecovery {
  /// The result of looking for an interrupted restore.
  public enum Outcome: Sendable {
    /// No restore was interrupted.
    case nothing
    /// One was, before it moved anything: what it had prepared is removed.
    case takenBack
    /// One was, and is finished now. The paths of what was set aside.
    case finished(setAside: [String])
    /// It can't be finished yet.
    case waiting(BackupError)
  }

  /// How long a command waits for a restore that is moving files, in milliseconds.
  private static let patience = 9_000

  /// Whether there is something to recover: one system call.
  public static func isNeeded(state folder: String) -> Bool { RestoreJournalFile.exists(in: folder) }

  /// Finishes an interrupted restore, or takes it back. Waits for a restore of another process that is moving files.
  public static func run(state folder: String) -> Outcome {
    do throws(BackupError) {
      for _ in 0..<(patience / 20) {
        guard isNeeded(state: folder) else { return .nothing }
        if let file = try RestoreJournalFile(in: folder) { return try recover(file) }
        // As long as another process only prepares files, all is as it was.
        guard RestoreJournalFile.read(in: folder)?.phase == .moving else { return .nothing }
        Pause.microseconds(20_000)
      }
      throw BackupError(folder, "another process is restoring a backup")
    } catch {
      return .waiting(error)
    }
  }

  static func recover(_ file: borrowing RestoreJournalFile) throws(BackupError) -> Outcome {
    guard let journal = try file.read() else { return .nothing }
    guard !journal.isUntouched else {
      RestorePlaces.remove(journal.prepared)
      file.remove()
      return .takenBack
    }
    let aside = try journal.carryOut()
    file.remove()
    return .finished(setAside: aside.filter { !$0.contains("/times-set-aside-") })
  }
}

extension RestoreJournal {
  /// Whether no file was moved yet.
  var isUntouched: Bool {
    phase == .preparing || !moves.isEmpty && moves.allSatisfy { $0.isPending && !Files.hasName($0.aside) }
  }

  /// Moves what is not moved yet, and brings all names to the disk.
  ///
  /// - Returns: the paths of what was set aside, also by an earlier attempt.
  func carryOut() throws(BackupError) -> [String] {
    var aside: [String] = []
    for move in moves { if let path = try move.carryOut() { aside.append(path) } }
    let folders = Set((moves.flatMap { [$0.prepared, $0.place] } + aside).map { Files.folder(of: $0) })
    for folder in folders { Folder.synchronize(around: folder + "/x") }
    RestorePlaces.remove(prepared)
    return aside
  }
}
