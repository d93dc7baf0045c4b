import Formats
import Platform

/// The intended moves of a restore, so that the next start of any command or mount can finish it or take it back.
///
/// `restore.journal` in the state folder holds no secret. As long as files are only prepared beside their places, an
/// interrupted restore is taken back; from the first move on, it is finished. A process that uses it holds
/// `restore.lock`, which ends with the process.
struct RestoreJournal: Equatable {
  enum Phase: String {
    /// Files are written beside their places.
    case preparing
    /// They are complete, and moved.
    case moving
  }

  var phase: Phase
  /// The folders in which files are prepared.
  var prepared: [String]
  var moves: [RestoreMove]

  private static let title = "keyhole restore 2"

  /// Of all bytes only zero is in no path.
  var text: String {
    let parts = [Self.title, phase.rawValue, String(prepared.count)] + prepared + moves.flatMap(\.fields)
    return parts.joined(separator: "\0")
  }

  init(_ phase: Phase, prepared: [String], moves: [RestoreMove] = []) {
    self.phase = phase
    self.prepared = prepared
    self.moves = moves
  }

  /// nil: it is none, or of a newer version.
  init?(_ text: String) {
    var parts = text.split(separator: "\0", omittingEmptySubsequences: false).map(String.init)[...]
    guard parts.popFirst() == Self.title, let phase = parts.popFirst().flatMap(Phase.init),
      let count = parts.popFirst().flatMap({ Int($0) }), (0...parts.count).contains(count)
    else { return nil }
    self.init(phase, prepared: Array(parts.prefix(count)))
    parts = parts.dropFirst(count)
    while !parts.isEmpty {
      guard let move = RestoreMove(Array(parts.prefix(RestoreMove.fieldCount))) else { return nil }
      moves.append(move)
      parts = parts.dropFirst(RestoreMove.fieldCount)
    }
  }
}

/// The journal's file and its lock.
struct RestoreJournalFile: ~Copyable {
  private let folder: String
  private let lock: OpenFile

  private static func path(_ folder: String) -> String { folder + "/restore.journal" }

  static func exists(in folder: String) -> Bool { Files.exists(path(folder)) }

  /// The journal, also while another process holds the lock; nil: there is none that can be read.
  static func read(in folder: String) -> RestoreJournal? { RestoreJournal(readFile(path(folder))) }

  /// Takes the lock; nil: another process has it.
  init?(in folder: String) throws(BackupError) {
    self.folder = folder
    UserFolders.make(folder)
    lock = try OpenFile(folder + "/restore.lock", [.readingAndWriting, .create, .noFollow])
    guard lock.tryLock() else { return nil }
  }

  /// nil: there is none. - Throws: `BackupError` for one that can't be read.
  func read() throws(BackupError) -> RestoreJournal? {
    guard Self.exists(in: folder) else { return nil }
    guard let journal = Self.read(in: folder) else {
      throw BackupError(
        Self.path(folder), "it is damaged, or of a newer Keyhole; what a restore moved lies beside its place")
    }
    return journal
  }

  /// Returns when the journal is on the disk.
  func write(_ journal: RestoreJournal) throws(BackupError) {
    let path = Self.path(folder)
    let temporary = path + ".new"
    _ = try? Files.remove(temporary)
    try attempt(path) {
      let file = try OpenFile(temporary, [.writing, .create, .exclusive, .noFollow])
      try file.write(Array(journal.text.utf8))
      try file.synchronize()
    }
    do { try Files.rename(temporary, to: path) } catch {
      throw BackupError(path, "it can't be written: \(error)")
    }
    Folder.synchronize(around: path)
  }

  func remove() {
    _ = try? Files.remove(Self.path(folder))
    Folder.synchronize(around: Self.path(folder))
  }
}
