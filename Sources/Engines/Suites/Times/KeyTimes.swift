import Model
import Platform
import Store
import Synchronization

/// When each key of the suites last changed.
///
/// Property lists have no place for it, so there is a file of records beside them, in a folder that may be lost:
/// a key without a record has its file's time, and so has one whose value is not the one that was recorded,
/// because then another program changed it. Nothing here ever fails: without the folder, times last as long
/// as the process.
final class KeyTimes: Sendable {
  fileprivate struct Known {
    /// The file that was read, and how far; nil: there is none.
    var file: SuiteStamp?
    var end = 0
    var records = 0
    var entries: [ExactString: KeyTimeRecord] = [:]
  }

  private static let mostSuites = 512
  /// A file is written again as a whole when it has this many records more than twice what it needs.
  private static let slack = 1000

  private let folder: String
  private let known = Mutex<[ExactString: Known]>([:])

  init(folder: String) {
    self.folder = folder
  }

  /// The contents of a suite, with times; a key that is new or was changed by others is recorded, so that it keeps its
  /// time when the file changes again.
  ///
  /// `commits`: the times of keys that a journal has changed, which count where none is recorded.
  func settings(
    _ values: [ExactString: SettingValue], of suite: ExactString, fileTime: Timestamp,
    commits: [ExactString: Timestamp] = [:]
  ) -> SharedDictionary<Setting> {
    known.withLock { all in
      refresh(suite, &all)
      let entries = all[suite]?.entries ?? [:]
      var unknown: [KeyTimeRecord] = []
      let settings = values.map { key, value in
        let hash = StableHash.of(value)
        let entry = entries[key].flatMap { $0.hash == hash ? $0.time : nil }
        let time = entry ?? commits[key] ?? fileTime
        if entry == nil { unknown.append(KeyTimeRecord(key: key, time: time, hash: hash)) }
        return (key, Setting(value, modified: time))
      }
      // Reading makes no folder: where there is none, the times are kept in memory until the first commit.
      if Files.allows([.write, .execute], folder) {
        append(unknown, suite, &all)
      } else if !unknown.isEmpty {
        all[suite, default: Known()].take(unknown)
      }
      return SharedDictionary(uniqueKeysWithValues: settings)
    }
  }

  /// Records what a committed change did.
  func record(_ change: SuiteChange, of suite: ExactString) {
    guard !change.differing.isEmpty else { return }
    known.withLock { all in
      refresh(suite, &all)
      let records = change.differing.map { key in
        let setting = change.settings[key]
        return KeyTimeRecord(
          key: key, time: setting?.modified, hash: setting.map { StableHash.of($0.value) } ?? 0)
      }
      append(records, suite, &all)
    }
  }

  func forget(_ suite: ExactString) {
    known.withLock { all in
      all[suite] = nil
      try? SuiteFiles.remove(path(suite))
    }
  }

  func move(_ suite: ExactString, to name: ExactString) {
    known.withLock { all in
      all[name] = all.removeValue(forKey: suite)
      try? SuiteFiles.remove(path(name))
      try? SuiteFiles.rename(path(suite), to: path(name))
    }
  }

  /// A name that people recognize where it is plain, and that is different for every suite.
  func path(_ suite: ExactString) -> String { folder + "/" + Self.fileName(suite) }

  /// As `path`, without the folder.
  static func fileName(_ suite: ExactString) -> String {
    let plain = suite.utf8.prefix(100).map { byte in
      let isPlain = byte < 0x80 && Character(Unicode.Scalar(byte)).isLetter || (0x30...0x39).contains(byte)
      return isPlain || byte == 0x2E && byte != suite.utf8.first ? byte : UInt8(ascii: "-")
    }
    return String(decoding: plain, as: UTF8.self) + "-" + String(StableHash.of(suite.utf8.span), radix: 16)
  }
}

extension KeyTimes {
  /// Reads what other processes, or this one, have recorded since the last time.
  private func refresh(_ suite: ExactString, _ all: inout [ExactString: Known]) {
    if all.count > Self.mostSuites { all = [:] }
    var known = all[suite] ?? Known()
    guard let status = try? SuiteFiles.status(path(suite)), status.isRegular else {
      // Times that were never in a file, because there can be none, are kept.
      if known.file != nil { all[suite] = nil }
      return
    }
    if known.file == status.stamp { return }
    let isSame = known.file.map { $0.number == status.stamp.number && $0.device == status.stamp.device }
    if isSame != true || status.stamp.size < known.end { known = Known() }
    guard let file = try? Descriptor(path(suite), [.reading, .nonBlocking]),
      (try? file.seek(to: Int64(known.end))) != nil,
      let bytes = try? file.readToEnd(limit: SuiteFile.largest, expecting: Int(status.stamp.size) - known.end)
    else { return }
    let (records, length) = KeyTimeRecord.parse(bytes)
    all[suite] = nil
    known.file = status.stamp
    known.end += length
    known.take(records)
    all[suite] = known
  }

  /// One write(2) under a lock that other processes obey, behind the last whole record.
  private func append(_ records: [KeyTimeRecord], _ suite: ExactString, _ all: inout [ExactString: Known]) {
    guard !records.isEmpty else { return }
    if store(records, suite, &all) { return }
    all[suite, default: Known()].take(records)
  }

  /// false: there is no file to keep them in.
  private func store(
    _ records: [KeyTimeRecord], _ suite: ExactString, _ all: inout [ExactString: Known]
  ) -> Bool {
    // Times that were read before there was a file for them.
    let unstored = all[suite].flatMap { $0.file == nil ? Array($0.entries.values) : nil } ?? []
    guard let file = lockedFile(suite), let status = try? file.status else { return false }
    refresh(suite, &all)
    // Out of `all` meanwhile: to change the entries of a suite must not copy them.
    var known = all.removeValue(forKey: suite) ?? Known()
    if known.file?.number != status.stamp.number { known = Known() }
    let records = (known.entries.isEmpty ? unstored : []) + records
    // The remains of a crash behind the last whole record.
    if status.stamp.size > known.end { try? file.truncate(to: Int64(known.end)) }
    let bytes = records.flatMap(\.bytes)
    let isWritten = (try? file.write(bytes)) != nil
    if isWritten {
      known.take(records)
      known.end += bytes.count
      known.file = try? file.status.stamp
    }
    let isLong = known.records > 2 * known.entries.count + Self.slack
    all[suite] = known
    if isWritten, isLong { compact(suite, &all) }
    return isWritten
  }

  private func lockedFile(_ suite: ExactString) -> Descriptor? {
    try? SuiteFiles.makeFolder(folder)
    for _ in 0..<10 {
      do {
        let file = try Descriptor(path(suite), [.writing, .create, .append, .noFollow, .nonBlocking])
        // Others hold it for one write(2), which no disk delays. A process that holds it longer must not delay a
        // reader: then the times are kept in memory only.
        guard try file.tryLock() else {
          Pause.microseconds(1000)
          continue
        }
        let own = try file.status.id
        if try SuiteFiles.status(path(suite))?.id == own { return file }
      } catch { return nil }
    }
    return nil
  }

  private func compact(_ suite: ExactString, _ all: inout [ExactString: Known]) {
    guard let known = all[suite] else { return }
    let temporary = path(suite) + ".tmp"
    try? SuiteFiles.remove(temporary)
    guard let file = try? Descriptor(temporary, [.writing, .create, .exclusive, .noFollow]),
      (try? file.write(known.entries.values.flatMap(\.bytes))) != nil,
      (try? SuiteFiles.rename(temporary, to: path(suite))) != nil
    else { return }
    all[suite] = nil
  }
}

extension KeyTimes.Known {
  fileprivate mutating func take(_ added: [KeyTimeRecord]) {
    records += added.count
    entries.reserveCapacity(entries.count + added.count)
    for record in added { entries[record.key] = record.time == nil ? nil : record }
  }
}
