import KeychainSelection
import Model
import Platform
import SecretMemory

/// The rest of an adoption: its link has the file's name, and the old file may still be there.
package struct AdoptionRest {
  private let entry: AdoptionJournal.Entry
  private let places: StoragePaths

  /// The old file; nil: it was overwritten and removed.
  package let remains: String?

  /// The path in the tree that the link leads to.
  package var target: String { entry.target }

  /// nil: the file is not the link of an adoption. Notes that the link has the file's name, if the run that put it there was ended
  /// before it could.
  ///
  /// - Throws: `Failure`.
  package init?(_ path: String) throws {
    let path = try ViewLinks.absolute(path)
    places = try StoragePaths.ofMount()
    var journal = try AdoptionJournal(in: places.state)
    try journal.follow(path)
    guard var entry = journal.entry(of: path), [.making, .adopted, .erasing].contains(entry.stage),
      (try? Files.target(ofLink: path)) == entry.link
    else { return nil }
    if entry.stage == .making {
      entry.stage = .adopted
      try journal.add(entry)
    }
    let target = AdoptedTarget(path: entry.target)
    if entry.target.hasPrefix("views/") { try ViewLinks(target.name).link(path) }
    self.entry = entry
    let remains = path + AdoptionJournal.remainsEnding
    self.remains = Files.hasName(remains) ? remains : nil
  }

  /// The end of the old file's name.
  package static let remainsEnding = AdoptionJournal.remainsEnding

  /// Whether `git add` would take an old file, with the secrets in it.
  package static func wouldGitAdd(_ remains: String) -> Bool { GitIndex.wouldAdd(remains) }

  /// Overwrites the old file and removes it.
  ///
  /// - Throws: `Failure`, also where it has something else in it than the link leads to; the file is then still there.
  package func erase() throws {
    guard let remains else { return }
    var file = try PlainFile(remains)
    try file.protect()
    // One that is overwritten in part has lost what it had.
    if entry.stage != .erasing {
      let old = AdoptedContent(try file.content())
      let isSame: Bool
      do throws(Errno) { isSame = old.isEqual(to: try Adoption.read(entry.file)) } catch {
        let remedy = error == .ENOKEY ? ". `keyhole unlock`, and then the same command again" : ""
        throw Failure(entry.file, "it can't be read (\(error)); \(remains) is still there\(remedy)")
      }
      guard isSame else {
        throw Failure(
          remains,
          "it has not the same in it as \(entry.target), which was changed since or is of another file; look at it. "
            + "`shred -u \(remains.quotedForShell)` overwrites and removes it")
      }
    }
    try Self.erase(file, remains, entry, places)
  }

  /// Notes that it was confirmed, so that a run which is ended in the middle is known.
  static func erase(
    _ file: borrowing PlainFile, _ remains: String, _ entry: AdoptionJournal.Entry, _ places: StoragePaths
  ) throws {
    var journal = try AdoptionJournal(in: places.state)
    var entry = entry
    entry.stage = .erasing
    try journal.add(entry)
    do throws(Errno) {
      try file.overwrite()
      try Files.remove(remains)
      try Files.synchronizeFolder(Files.folder(of: remains))
    } catch {
      throw Failure(remains, "it can't be overwritten and removed: \(error)")
    }
    entry.stage = .adopted
    try journal.add(entry)
  }
}
