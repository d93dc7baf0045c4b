package import Dispatch
public import Model
import Platform
public import Store

/// The suites of Foundation's UserDefaults on Linux: property lists in a folder.
///
/// A suite is `<folder>/<suite>.plist`. It is read in both forms and written as XML, or in the binary form where
/// a string holds what XML can't say. Foundation's programs do not lock, so of two writes in one instant either
/// may win; all that use this engine lock each other out.
public final class PropertyListFolder: SuiteEngine {
  /// The folder of the property lists, `~/.config` by default.
  public let folder: String
  /// XML and binary property lists, read as Foundation reads them.
  public let propertyLists: any PropertyListCoding = PropertyLists()
  let times: KeyTimes
  let texts: EncodedSuiteCache
  let journals: SuiteJournals
  let reserve: SettingsReserve
  let historyFiles: SettingHistoryFiles
  private let stateFolder: String
  /// For another process that holds a suite's lock.
  let patience: SuiteLock.Patience

  /// - Parameters:
  ///   - folder: Foundation's place: `$XDG_CONFIG_HOME`, by default `~/.config`. It need not be there yet.
  ///   - stateFolder: `$XDG_STATE_HOME/keyhole`; the times of keys are kept in its folder `times`. Without it
  ///     keys have their files' times.
  ///   - retention: how much of what keys were is kept, in the state folder's `history`; nil: this process adds nothing.
  public convenience init(folder: String, stateFolder: String, retention: HistoryRetention? = nil) {
    self.init(
      folder: folder, stateFolder: stateFolder, journalsFrom: SuiteJournal.smallestFile,
      foldingAfter: .milliseconds(500), removingAfter: .seconds(2), retention: retention)
  }

  /// Suites whose files have at least `journalsFrom` bytes get a journal, which is folded into the file after a delay, and
  /// removed after another one in which nothing changes.
  package init(
    folder: String, stateFolder: String, journalsFrom smallestFile: Int,
    foldingAfter delay: DispatchTimeInterval, removingAfter removalDelay: DispatchTimeInterval,
    retention: HistoryRetention? = nil
  ) {
    historyFiles = SettingHistoryFiles(folder: stateFolder + "/history", retention: retention)
    self.folder = folder
    journals = SuiteJournals(smallestFile: smallestFile, delay: delay, removalDelay: removalDelay)
    self.stateFolder = stateFolder
    times = KeyTimes(folder: stateFolder + "/times")
    texts = EncodedSuiteCache()
    reserve = SettingsReserve(folder, stateFolder)
    patience = .tenSeconds
  }

  /// The file with the times of a suite's keys, which need not be there: a backup holds it beside the suite.
  public func timesFile(of suite: ExactString) -> String { times.path(suite) }

  private init(withoutWaiting other: PropertyListFolder) {
    (folder, times, texts, patience) = (other.folder, other.times, other.texts, .none)
    historyFiles = other.historyFiles
    (reserve, stateFolder, journals) = (other.reserve, other.stateFolder, other.journals)
  }

  /// The same folder, whose changes throw `wouldWait` while another process holds a suite's flock(2).
  public var withoutWaiting: any SuiteEngine { PropertyListFolder(withoutWaiting: self) }

  /// Waits for the suite's flock(2), and gives it back. - Throws: `notFound`; `unreachable` after ten seconds.
  public func waitForLock(of suite: ExactString) throws(StoreError) {
    _ = try SuiteLock(existing(suite).target())
  }

  /// The files `NAME.plist` of the folder whose name is a suite's, by stat(2); none is read.
  public func suites() throws(StoreError) -> [ExactString: SuiteStamp] {
    var suites: [ExactString: SuiteStamp] = [:]
    for file in try files().compactMap(\.file) {
      suites[file.suite] = try? stamp(of: file)
    }
    return suites
  }

  /// stat(2) of the suite's file, and of its journal where it may have one.
  public func stamp(of suite: ExactString) throws(StoreError) -> SuiteStamp? {
    guard let file = SuiteFile(folder: folder, suite: suite) else { return nil }
    return try stamp(of: file)
  }

  /// Reads and parses the file, with the times of its keys from the state folder, and what its journal has beyond it.
  ///
  /// Only the new part of the journal is read where nothing else than this engine, in any process, has changed the suite
  /// since `known` was read.
  public func read(_ suite: ExactString, since known: SuiteContents?) throws(StoreError) -> SuiteContents? {
    guard let file = SuiteFile(folder: folder, suite: suite) else { return nil }
    return try contents(of: file, since: known)
  }

  /// Looks at the file, and whether the disk takes a new file (`DiskProbe`).
  public func readOnlyReason(of suite: ExactString) throws(StoreError) -> String? {
    guard let file = SuiteFile(folder: folder, suite: suite), try file.status() != nil else { return nil }
    let target = try file.target()
    if let reason = file.readOnlyReason(of: target) { return reason }
    let folder = Files.folder(of: target)
    switch DiskProbe.refusal(of: SuiteFiles.areOnOneDisk(folder, stateFolder) ? stateFolder : folder) {
    case .readOnly(let reason): return reason
    case let refusal?: throw refusal
    case nil: return nil
    }
  }

  /// fsync(2) of the file, its journal and their folder; nothing for a suite without a file.
  public func synchronize(_ suite: ExactString) throws(StoreError) {
    guard let file = SuiteFile(folder: folder, suite: suite), try file.status() != nil else { return }
    if let failure = journals.change(suite, { $0.failure.take() }) ?? nil { throw failure }
    try file.journal.synchronize()
    try SuiteCommits.to(file.target()).synchronize()
  }

  /// statvfs(3) of the folder, or of the nearest one above that exists.
  public func room() throws(StoreError) -> DiskRoom {
    var place = folder
    while try SuiteFiles.status(place) == nil, place != "/", place != "." {
      place = Files.folder(of: place)
    }
    return try DiskRoom(SuiteFiles.call("statvfs") { [place] () throws(Errno) in try Volume(at: place) })
  }
}

extension PropertyListFolder {
  /// One file of the folder that is named like a suite; no `file`: its name is no suite's.
  struct Entry {
    let name: String?
    let file: SuiteFile?
  }

  func files() throws(StoreError) -> [Entry] {
    try SuiteFiles.names(in: folder).compactMap { name in
      guard let name else { return Entry(name: nil, file: nil) }
      guard name.hasSuffix(SuiteFile.ending) else { return nil }
      let suite = ExactString(String(name.dropLast(SuiteFile.ending.count)))
      return Entry(name: name, file: SuiteFile(folder: folder, suite: suite))
    }
  }

  /// The file of a suite that is there. - Throws: `notFound`.
  func existing(_ suite: ExactString) throws(StoreError) -> SuiteFile {
    guard let file = SuiteFile(folder: folder, suite: suite), try file.status() != nil else {
      throw .notFound
    }
    return file
  }
}
