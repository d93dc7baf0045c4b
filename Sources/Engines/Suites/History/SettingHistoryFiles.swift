import Model
import Platform
import Store
import Synchronization

/// The values that keys of suites had, in a folder beside the times of keys: for each suite a file of records, to which one
/// more is appended with each change, and the file before it.
///
/// It is as private as the suites (0700, 0600), and may be lost: nothing here but a full disk keeps a setting from being stored. A
/// record that a crash has cut off is written over.
final class SettingHistoryFiles: Sendable {
  /// Larger values are not kept, in bytes as they are stored.
  static let largestValue = 64 << 10
  /// All files together, in bytes.
  static let largestFolder = 32 << 20
  /// A file of this size becomes the one before, in bytes.
  static let largestFile = 512 << 10
  /// Of the changes of a key by one process within so many seconds, the value before the first one is kept.
  fileprivate static let gathering: Int64 = 1
  /// A value that another program has replaced may have been recorded by that already, so many seconds before.
  fileprivate static let lateness: Int64 = 10
  /// A disk with so many bytes more has room for a record.
  private static let muchRoom: UInt64 = 1 << 20
  static let former = ".1"
  static let off = ".off"

  let folder: String
  private let largest: Int
  private let value: Mutex<HistoryRetention?>
  let state = Mutex(State())
  private let removal = PurgedKeysRemoval()

  struct State {
    /// The suites' files as they were last read or written.
    var known: [ExactString: Known] = [:]
  }

  struct Known {
    var stamp: SuiteStamp
    var lastNumber: UInt64
    /// Of each key the newest value that is kept.
    var newest: [ExactString: Newest]
  }

  struct Newest {
    var replaced: Timestamp
    /// `StableHash` of the value.
    var hash: UInt64
    /// The process that made the change, if this one has recorded it.
    var writer: Int32?
  }

  init(folder: String, retention: HistoryRetention?, largestFolder: Int = SettingHistoryFiles.largestFolder) {
    (self.folder, largest) = (folder, largestFolder)
    value = Mutex(retention)
  }

  var retention: HistoryRetention? {
    get { value.withLock { $0 } }
    set { value.withLock { $0 = newValue } }
  }
}

// MARK: - Writing

extension SettingHistoryFiles {
  /// Keeps the values that a change has replaced or removed.
  func record(_ change: SuiteChange, over old: SharedDictionary<Setting>, of suite: ExactString) {
    guard change.isOfValues, let retention, retention.keepsAny else { return }
    let former = change.differing.compactMap { key -> FormerValue? in
      guard let before = old[key], before.value != change.settings[key]?.value else { return nil }
      return FormerValue(
        key: key, value: before.value, changes: change.settings[key] == nil ? .removal : .value,
        stored: before.modified)
    }
    record(former, of: suite, at: change.time, by: change.writer)
  }

  /// `writer`: this process has changed it, for the one of that number; nil: another program has, and may have recorded it already.
  func record(_ former: [FormerValue], of suite: ExactString, at time: Timestamp, by writer: Int32?) {
    guard !former.isEmpty, let retention, retention.keepsAny, !isOff(suite) else { return }
    state.withLock { state in
      guard let file = lockedFile(suite) else { return }
      defer { removeIfEmpty(suite, file) }
      guard var known = known(suite, file, state) else { return }
      // Read with the lock: a process that removes keys for good writes it, and then deletes, with the lock.
      let purged = purgedKeys(of: suite)
      if !purged.isEmpty, writer == nil { removal.removeLater(from: self) }
      var bytes: [UInt8] = []
      for value in former
      where !purged.contains(value.key, stored: value.stored, until: time)
        && value.isNews(to: known.newest[value.key], at: time, by: writer)
      {
        let record = KeyVersionRecord(
          number: known.lastNumber + 1, suite: suite, key: value.key, value: value.value, replaced: time,
          changes: value.changes)
        let encoded = record.bytes
        guard encoded.count <= Self.largestValue else { continue }
        bytes += encoded
        known.lastNumber += 1
        known.newest[value.key] = Newest(replaced: time, hash: StableHash.of(value.value), writer: writer)
      }
      guard !bytes.isEmpty else { return }
      append(bytes, suite, file, known, &state)
    }
  }

  /// With the lock: a file without records says that something was kept of the suite.
  private func removeIfEmpty(_ suite: ExactString, _ file: borrowing Descriptor) {
    if (try? file.status.size) == 0 { try? SuiteFiles.remove(path(suite)) }
  }

  private func append(
    _ bytes: [UInt8], _ suite: ExactString, _ file: borrowing Descriptor, _ known: Known, _ state: inout State
  ) {
    // The setting is stored already. Room was there before that; what another program took since is not kept.
    guard (try? file.write(bytes)) != nil, let stamp = try? file.status.stamp else {
      try? file.truncate(to: known.stamp.size)
      state.known[suite] = nil
      return
    }
    var known = known
    known.stamp = stamp
    state.known[suite] = known
    if state.known.count > 512 { state.known = [:] }
    guard stamp.size > Int64(Self.largestFile) else { return }
    state.known[suite] = nil
    rotate(suite)
    limitFolder()
  }

  /// Whether the disk has room for the values that a change replaces or removes, so that they can be kept; it is taken for them.
  ///
  /// True also where none of them is to be kept, and where the folder can't be written for another reason.
  func hasRoom(
    toKeep change: SuiteChange, over old: SharedDictionary<Setting>, of suite: ExactString
  ) -> Bool {
    guard change.isOfValues, let retention, retention.keepsAny, !isOff(suite) else { return true }
    let purged = purgedKeys(of: suite)
    var size: Int64 = 0
    for key in change.differing {
      guard let value = old[key]?.value, value != change.settings[key]?.value,
        !purged.contains(key, stored: old[key]?.modified, until: change.time)
      else { continue }
      let record = KeyVersionRecord(
        number: 0, suite: suite, key: key, value: value, replaced: change.time, changes: .removal)
      let count = record.bytes.count
      if count <= Self.largestValue { size &+= Int64(count) }
    }
    return size == 0 || hasRoom(for: size, suite)
  }

  private func hasRoom(for size: Int64, _ suite: ExactString) -> Bool {
    do throws(StoreError) { try SuiteFiles.makeFolder(folder) } catch { return !error.isOutOfSpace }
    let volume = try? Volume(at: folder)
    // Looked at more closely, each removal would have the file read again.
    if let volume, volume.availableBytes > UInt64(clamping: size) &+ Self.muchRoom { return true }
    return state.withLock { _ in
      do throws(Errno) {
        guard let file = lockedFile(suite) else { return true }
        // Zeros behind the last record count for nothing, and are written over.
        try file.allocate(file.status.size &+ size)
        return true
      } catch {
        return error != .ENOSPC && error != .EDQUOT
      }
    }
  }

  /// Makes the file the one before, with what is still to be kept of both.
  private func rotate(_ suite: ExactString) {
    guard let retention else { return }
    let kept = KeptVersions(read(suite), retention, at: .now)
    try? replace(path(suite) + Self.former, with: kept.records)
    try? SuiteFiles.remove(path(suite))
  }

  /// Deletes the files that were written first, until all together are small enough.
  private func limitFolder() {
    var files = ((try? SuiteFiles.names(in: folder)) ?? []).compactMap { name -> (String, FileStatus)? in
      guard let name, let status = try? SuiteFiles.status(folder + "/" + name, follow: false),
        status.isRegular
      else { return nil }
      return (name, status)
    }
    files.sort { Timestamp($0.1.modified) < Timestamp($1.1.modified) }
    var size = files.reduce(0) { $0 + Int(clamping: $1.1.size) }
    for (name, status) in files where size > largest && status.size > 0 {
      try? SuiteFiles.remove(folder + "/" + name)
      size = max(0, size &- Int(clamping: status.size))
    }
  }

  /// Writes a file beside it, and gives it the name.
  func replace(_ path: String, with records: [KeyVersionRecord]) throws {
    let temporary = path + ".tmp"
    try? SuiteFiles.remove(temporary)
    guard !records.isEmpty else { return try SuiteFiles.remove(path) }
    let file = try Descriptor(temporary, [.writing, .create, .exclusive, .noFollow])
    try file.write(records.flatMap(\.bytes))
    try SuiteFiles.rename(temporary, to: path)
  }

  /// Appends to the file; no other process does meanwhile. nil: there can be none.
  func lockedFile(_ suite: ExactString) -> Descriptor? {
    try? SuiteFiles.makeFolder(folder)
    for _ in 0..<10 {
      do {
        let file = try Descriptor(
          path(suite), [.writing, .reading, .create, .append, .noFollow, .nonBlocking])
        guard try file.tryLock() else {
          Pause.microseconds(1000)
          continue
        }
        if try SuiteFiles.status(path(suite))?.id == file.status.id { return file }
      } catch { return nil }
    }
    return nil
  }

  private func known(_ suite: ExactString, _ file: borrowing Descriptor, _ state: State) -> Known? {
    guard let stamp = try? file.status.stamp else { return nil }
    if let known = state.known[suite], known.stamp == stamp { return known }
    let (records, end) = parsed(path(suite))
    if stamp.size > Int64(end) { try? file.truncate(to: Int64(end)) }
    let all = records + parsed(path(suite) + Self.former).records
    var known = Known(stamp: stamp, lastNumber: all.map(\.number).max() ?? 0, newest: [:])
    for record in all.sorted(by: { $0.number < $1.number }) {
      known.newest[record.key] = Newest(replaced: record.replaced, hash: StableHash.of(record.value))
    }
    return known
  }
}

// MARK: - Reading

extension SettingHistoryFiles {
  /// Everything that is kept of a suite, the oldest first.
  func versions(of suite: ExactString) -> [KeyVersionRecord] {
    KeptVersions(read(suite), retention ?? .standard, at: .now).records
  }

  func read(_ suite: ExactString) -> [KeyVersionRecord] {
    parsed(path(suite) + Self.former).records + parsed(path(suite)).records
  }

  private func parsed(_ path: String) -> (records: [KeyVersionRecord], end: Int) {
    guard let file = try? Descriptor(path, [.reading, .noFollow, .nonBlocking]),
      let bytes = try? file.readToEnd(limit: SuiteFile.largest, expecting: Self.largestFile)
    else { return ([], 0) }
    return KeyVersionRecord.parse(bytes)
  }

  /// The suites of which something is kept.
  func suites() -> Set<ExactString> {
    let names = ((try? SuiteFiles.names(in: folder)) ?? []).compactMap(\.self)
    let found = names.filter { !$0.hasSuffix(Self.off) }.compactMap { name in
      parsed(folder + "/" + name).records.last?.suite
    }
    return Set(found).filter { !versions(of: $0).isEmpty }
  }

  /// Deletes what is kept for too long, or is too much: of each suite that has such, the files are written over, and one without
  /// it is made. Returns how many values.
  func prune() -> Int {
    removePurgedKeys()
    guard let retention else { return 0 }
    let names = ((try? SuiteFiles.names(in: folder)) ?? []).compactMap(\.self)
    let suites = Set(
      names.filter { !$0.hasSuffix(Self.off) }.compactMap { parsed(folder + "/" + $0).records.last?.suite })
    return suites.reduce(0) { count, suite in
      let kept = Set(KeptVersions(read(suite), retention, at: .now).records.map(\.number))
      return count + ((try? remove(from: suite) { !kept.contains($0.number) }) ?? 0)
    }
  }

  /// Gives the versions of a suite the suite's new name, and removes the mark of the former one.
  func move(_ suite: ExactString, to name: ExactString) {
    removeMark(suite)
    state.withLock { state in
      (state.known[suite], state.known[name]) = (nil, nil)
      var records = read(suite)
      guard !records.isEmpty else { return }
      for index in records.indices { records[index].suite = name }
      try? SuiteFiles.remove(path(name))
      guard (try? replace(path(name) + Self.former, with: records)) != nil else { return }
      for file in [path(suite), path(suite) + Self.former] { try? SuiteFiles.remove(file) }
    }
  }

  func path(_ suite: ExactString) -> String { folder + "/" + KeyTimes.fileName(suite) }
}

/// A value that a key had until now.
struct FormerValue {
  let key: ExactString
  let value: SettingValue
  let changes: VersionChanges
  /// When the value was stored, of a change by this process; nil: that is not known.
  var stored: Timestamp?

  /// Whether it is to be kept, where `last` was kept of the key.
  fileprivate func isNews(to last: SettingHistoryFiles.Newest?, at time: Timestamp, by writer: Int32?) -> Bool
  {
    guard let last else { return true }
    let seconds = time.seconds &- last.replaced.seconds
    // The mount may have seen the change before the process that made it has recorded it.
    let isKnown = last.hash == StableHash.of(value)
    if isKnown, seconds.magnitude <= SettingHistoryFiles.lateness.magnitude { return false }
    let isSeries =
      writer != nil && writer == last.writer && seconds >= 0 && seconds < SettingHistoryFiles.gathering
    return !isSeries || changes.contains(.removal)
  }
}
