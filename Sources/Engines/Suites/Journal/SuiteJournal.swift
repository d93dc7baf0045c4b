import Model
import Platform
import Store

/// The journal of a large suite: commits that its file does not have yet.
///
/// A property list can only be written as a whole. That takes 27 ms for 100,000 keys, so a commit to a large suite is
/// appended here, and the file follows within a second (`SuiteJournals`). A reader takes the file and then the
/// records that it lacks. Only programs that do not know of the journal, as those with Foundation, see a change later.
///
/// It lies beside the file, as `.NAME.plist.journal`, and begins with eight bytes that say its format. Records are
/// appended under the suite's lock and the journal's own. What is behind the last whole record was cut off by a crash.
struct SuiteJournal {
  /// Files from this size on have a journal, in bytes: from about 5,000 keys on, writing the whole takes longer than
  /// everything else of a commit.
  static let smallestFile = 256 << 10
  /// Changes that take more bytes are written to the file at once.
  static let largestCommit = 64 << 10
  /// A journal of this size in bytes is folded at once, and removed.
  static let largest = 16 << 20
  static let ending = ".journal"

  private static let magic = Array("KHSUITE\u{1}".utf8)

  let path: String

  /// Of the file that is written: a suite that is a link has the journal beside the file that it leads to.
  init(of target: String) {
    path = Files.folder(of: target) + "/." + Files.name(of: target) + Self.ending
  }

  /// The journal as it is now; nil: there is none.
  var stamp: JournalStamp? {
    guard let status = try? SuiteFiles.status(path, follow: false), status.isRegular else { return nil }
    return JournalStamp(status)
  }

  /// Whether a file can have the name: of a suite with a long name, none can.
  var isPossible: Bool { Files.name(of: path).utf8.count <= 255 }

  /// Records, and where they end.
  struct Portion {
    /// Each with the offset of its end.
    var records: [(record: JournalRecord, end: Int)] = []
    /// The journal up to its last whole record.
    var stamp: JournalStamp
  }

  /// The records behind those of `known`, or all; nil: there is no such journal. One without a beginning has no records.
  func read(after known: JournalStamp? = nil) throws(StoreError) -> Portion? {
    guard let file = try open([.reading, .noFollow]) else { return nil }
    let status = try file.suiteStatus()
    guard status.isRegular, status.size >= known?.size ?? 0 else { return nil }
    // With the time of the last record that is known, which tells one journal from the next.
    let start = known.map { Int(clamping: $0.size) - JournalRecord.timeLength } ?? 0
    guard start >= 0 else { return nil }
    let bytes = try SuiteFiles.call("read") { () throws(Errno) in
      try file.seek(to: Int64(start))
      return try file.readToEnd(
        limit: Self.largest + SuiteFile.largest, expecting: max(Int(clamping: status.size) - start, 0))
    }
    var position: Int
    if let known {
      position = JournalRecord.timeLength
      guard bytes.count >= position,
        JournalRecord.time(bytes.span.extracting(..<position)) == known.modified
      else { return nil }
    } else {
      position = Self.magic.count
      guard bytes.starts(with: Self.magic) else {
        return Portion(stamp: JournalStamp(size: 0, modified: Timestamp(status.modified)))
      }
    }
    var portion = Portion(
      stamp: known ?? JournalStamp(size: 0, modified: Timestamp(status.modified)))
    while let (record, length) = JournalRecord.read(bytes.span.extracting(position...)) {
      position += length
      portion.records.append((record, start + position))
      portion.stamp = JournalStamp(size: Int64(start + position), modified: record.time)
    }
    return portion
  }

  /// Locks the journal; nil: there is none.
  func lock() throws(StoreError) -> LockedJournal? {
    while let file = try open([.writing, .append, .noFollow]) {
      // Others hold it for some microseconds.
      try SuiteFiles.call("flock") { () throws(Errno) in try file.lock() }
      let status = try file.suiteStatus()
      if status.links > 0 { return LockedJournal(path, file, JournalStamp(status)) }
    }
    return nil
  }

  /// Makes the journal of a file, with one record. Call it with the suite's lock.
  ///
  /// - Returns: nil: something else has the name.
  func make(for base: FileVersion, _ record: JournalRecord) throws(StoreError) -> JournalStamp? {
    guard let file = try makeFile() else { return nil }
    let beginning = JournalRecord(
      time: base.modified, content: .fold(JournalFold(from: base, to: base, end: 0)))
    var journal = LockedJournal(path, file, JournalStamp(size: 0, modified: base.modified))
    do throws(StoreError) {
      return try journal.append(record, behind: Self.magic + beginning.bytes)
    } catch {
      try? SuiteFiles.remove(path)
      throw error
    }
  }

  /// fdatasync(2), and fsync(2) of its folder for its name.
  func synchronize(name: Bool = true) throws(StoreError) {
    guard let file = try open([.reading, .noFollow]) else { return }
    try SuiteFiles.call("fdatasync") { () throws(Errno) in try file.synchronizeData() }
    if name { try SuiteFiles.synchronizeNames(in: Files.folder(of: path)) }
  }

  /// nil: there is none.
  private func open(_ options: OpenFlags) throws(StoreError) -> Descriptor? {
    do throws(StoreError) {
      return try SuiteFile.open(path, options)
    } catch .notFound {
      return nil
    } catch .nameTooLong {
      return nil
    } catch .system(.ELOOP, operation: _) {
      return nil
    }
  }

  /// nil: something else has the name.
  private func makeFile() throws(StoreError) -> Descriptor? {
    do throws(StoreError) {
      return try SuiteFiles.call("open") { () throws(Errno) in
        try Descriptor(path, [.writing, .create, .exclusive, .append, .noFollow])
      }
    } catch .exists {
      return nil
    }
  }
}

/// A journal that no other process appends to or removes, until this value goes.
struct LockedJournal: ~Copyable {
  private let path: String
  private let file: Descriptor
  private(set) var stamp: JournalStamp

  fileprivate init(_ path: String, _ file: consuming Descriptor, _ stamp: JournalStamp) {
    self.path = path
    self.file = file
    self.stamp = stamp
  }

  /// All or nothing: what does not fit on the disk is cut off again.
  @discardableResult
  mutating func append(
    _ record: JournalRecord, behind beginning: [UInt8] = []
  ) throws(StoreError) -> JournalStamp {
    let bytes = beginning + record.bytes
    do throws(Errno) {
      try file.write(bytes)
      try file.setModified(SystemTime(record.time))
    } catch {
      try? file.truncate(to: stamp.size)
      throw StoreError(ofSuite: error, "write")
    }
    stamp = JournalStamp(size: stamp.size + Int64(bytes.count), modified: record.time)
    return stamp
  }

  /// Cuts off what a crash has left behind the last whole record.
  func cutOff(after whole: JournalStamp) throws(StoreError) {
    try SuiteFiles.call("ftruncate") { () throws(Errno) in
      try file.truncate(to: whole.size)
      try file.setModified(SystemTime(whole.modified))
    }
  }

  /// After a power cut it must not be there beside a file that is newer: its name is gone from the disk, too.
  func remove() throws(StoreError) {
    try SuiteFiles.remove(path)
    try SuiteFiles.synchronizeNames(in: Files.folder(of: path))
  }
}

extension JournalStamp {
  fileprivate init(_ status: FileStatus) {
    self.init(size: status.size, modified: Timestamp(status.modified))
  }
}
