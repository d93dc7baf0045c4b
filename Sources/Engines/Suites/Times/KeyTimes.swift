import Model
import Platform
import Store
import Synchronization

/// When each key of the suites last changed.
///
/// Property lists have no place for it, so there is a file of records beside them, in a folder that may be lost:
/// a key without a record has its file's time, and so has one whose value is not the one that was recorded,
/// because then another program changed it. Nothing here ever fails: without the folder, times last as long
/// as the contents that have them.
///
/// The records are not kept in memory: a suite that is read again has the times of its earlier contents, and those that
/// were recorded since.
final class KeyTimes: Sendable {
  /// The file of records of a suite.
  fileprivate struct Known {
    var file: SuiteStamp
    /// How far it was read: the end of the last whole record.
    var end = 0
    /// The records up to there.
    var records = 0
    /// The time that the last of them has.
    var last: Timestamp?
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
  /// `commits`: the times of keys that a journal has changed, which count where none is recorded. `earlier`: contents that
  /// were read before.
  func settings(
    _ values: [ExactString: SettingValue], of suite: ExactString, fileTime: Timestamp,
    commits: [ExactString: Timestamp] = [:], since earlier: SuiteContents? = nil
  ) -> (SharedDictionary<Setting>, TimesPosition?) {
    known.withLock { all in
      let recorded = records(of: suite, since: earlier?.times, &all)
      var unknown: [KeyTimeRecord] = []
      let settings = values.map { key, value in
        let found = recorded.time(of: key, value, earlier?.settings[key])
        let time = found.time ?? commits[key] ?? fileTime
        if !found.isRecorded {
          unknown.append(KeyTimeRecord(key: key, time: time, hash: StableHash.of(value)))
        }
        return (key, Setting(value, modified: time))
      }
      // Reading makes no folder: where there is none, the times are kept in memory until the first commit.
      if Files.allows([.write, .execute], folder) { append(unknown, suite, keys: values.count, &all) }
      return (SharedDictionary(uniqueKeysWithValues: settings), recorded.position)
    }
  }

  /// Whether every key of a suite that last changed at `time` has its record: only then is the last record of that time.
  func hasAll(of suite: ExactString, until time: Timestamp) -> Bool {
    known.withLock { refresh(suite, &$0)?.last == time }
  }

  /// Records what a committed change did; the first one in a file, what was read before there was a file, too.
  ///
  /// `keys`: how many the suite has, where the change does not have all.
  func record(_ change: SuiteChange, of suite: ExactString, keys count: Int? = nil) {
    guard !change.differing.isEmpty else { return }
    known.withLock { all in
      let isFirst = (try? SuiteFiles.status(path(suite))) == nil
      // The keys that have changed come last, because `hasAll` looks at the last record.
      let others = isFirst ? Set(change.settings.keys).subtracting(change.differing) : []
      let keys = Array(others) + Array(change.differing)
      let records = keys.map { key in
        let setting = change.settings[key]
        return KeyTimeRecord(
          key: key, time: setting?.modified, hash: setting.map { StableHash.of($0.value) } ?? 0)
      }
      append(records, suite, keys: count ?? change.settings.count, &all)
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
  /// Has the suite's file written without the names of keys that are gone.
  func dropRemoved(from suite: ExactString) {
    known.withLock { all in
      guard Files.hasName(path(suite)), let file = lockedFile(suite) else { return }
      defer { _ = file }
      all[suite] = nil
      compact(suite, &all)
    }
  }

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
  /// The records of a file beyond a position.
  fileprivate struct Recorded {
    var entries: [ExactString: KeyTimeRecord] = [:]
    /// nil: there is no file.
    var position: TimesPosition?
    /// They are all that the file has.
    var isWhole = true

    /// The time of a value, and whether the file has it; nil: it is not known. `earlier`: the key when the file was read up to
    /// the position.
    func time(
      of key: ExactString, _ value: SettingValue, _ earlier: Setting?
    ) -> (time: Timestamp?, isRecorded: Bool) {
      if let entry = entries[key] {
        let time = entry.time.flatMap { entry.hash == StableHash.of(value) ? $0 : nil }
        return (time, time != nil)
      }
      guard let earlier, earlier.value == value else { return (nil, false) }
      return (earlier.modified, !isWhole)
    }
  }

  /// Reads what was recorded since `position`; all, where the file is another one.
  private func records(
    of suite: ExactString, since position: TimesPosition?, _ all: inout [ExactString: Known]
  ) -> Recorded {
    guard let status = try? SuiteFiles.status(path(suite)), status.isRegular else { return Recorded() }
    let isSame = position.map { $0.file == status.id && $0.end <= Int(clamping: status.size) } ?? false
    let start = isSame ? position?.end ?? 0 : 0
    var recorded = Recorded(position: TimesPosition(file: status.id, end: start), isWhole: !isSame)
    guard status.size > Int64(start), let (records, length) = read(suite, status, from: start) else {
      return recorded
    }
    recorded.entries.reserveCapacity(records.count)
    for record in records { recorded.entries[record.key] = record }
    recorded.position?.end += length
    if start == 0 {
      let known = Known(file: status.stamp, end: length, records: records.count, last: records.last?.time)
      note(known, suite, &all)
    }
    return recorded
  }

  private func note(_ known: Known, _ suite: ExactString, _ all: inout [ExactString: Known]) {
    if all.count > Self.mostSuites { all = [:] }
    all[suite] = known
  }

  /// The whole records from an offset on, and how many bytes they take.
  private func read(
    _ suite: ExactString, _ status: FileStatus, from start: Int
  ) -> (records: [KeyTimeRecord], length: Int)? {
    bytes(suite, status, from: start).map(KeyTimeRecord.parse)
  }

  private func bytes(_ suite: ExactString, _ status: FileStatus, from start: Int) -> [UInt8]? {
    guard let file = try? Descriptor(path(suite), [.reading, .nonBlocking]),
      (try? file.seek(to: Int64(start))) != nil,
      let bytes = try? file.readToEnd(
        limit: SuiteFile.largest, expecting: max(0, Int(clamping: status.size) &- start))
    else { return nil }
    return bytes
  }

  /// Counts the records that other processes, or this one, have added since the last time.
  private func refresh(_ suite: ExactString, _ all: inout [ExactString: Known]) -> Known? {
    guard let status = try? SuiteFiles.status(path(suite)), status.isRegular else {
      all[suite] = nil
      return nil
    }
    var known = all[suite] ?? Known(file: status.stamp)
    let isSame = known.file.number == status.stamp.number && known.file.device == status.stamp.device
    if !isSame || status.size < Int64(known.end) { known = Known(file: status.stamp) }
    if status.size > Int64(known.end), let bytes = bytes(suite, status, from: known.end) {
      let (count, length, last) = KeyTimeRecord.measure(bytes)
      known.end += length
      known.records += count
      if count > 0 { known.last = last }
    }
    known.file = status.stamp
    note(known, suite, &all)
    return known
  }

  /// One write(2) under a lock that other processes obey, behind the last whole record. Without a file, the times last as
  /// long as the contents that have them. `keys`: how many the suite has.
  private func append(
    _ records: [KeyTimeRecord], _ suite: ExactString, keys: Int, _ all: inout [ExactString: Known]
  ) {
    guard !records.isEmpty, let file = lockedFile(suite), var known = refresh(suite, &all),
      let status = try? file.status
    else { return }
    // The remains of a crash behind the last whole record.
    if status.size > Int64(known.end) { try? file.truncate(to: Int64(known.end)) }
    let bytes = records.flatMap(\.bytes)
    guard (try? file.write(bytes)) != nil else { return }
    known.records += records.count
    known.end += bytes.count
    known.last = records.last?.time
    if let stamp = try? file.status.stamp { known.file = stamp }
    all[suite] = known
    if known.records > 2 * keys + Self.slack { compact(suite, &all) }
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

  /// Writes the last record of each key into a new file.
  private func compact(_ suite: ExactString, _ all: inout [ExactString: Known]) {
    let present = records(of: suite, since: nil, &all).entries.values.compactMap { record in
      record.time.map { (record, $0) }
    }
    let entries = present.sorted { $0.1 < $1.1 }.map(\.0)
    let temporary = path(suite) + ".tmp"
    try? SuiteFiles.remove(temporary)
    guard let file = try? Descriptor(temporary, [.writing, .create, .exclusive, .noFollow]),
      (try? file.write(entries.flatMap(\.bytes))) != nil,
      (try? SuiteFiles.rename(temporary, to: path(suite))) != nil
    else { return }
    all[suite] = nil
  }
}
