import Dispatch
import Model
import Platform
import Store
import Synchronization

/// Keys of a suite that are being removed so that nothing of them is kept: for some seconds no process records a value that
/// they had.
///
/// The file of these keys is written before they are removed. So a process that is killed between the steps leaves a key as it
/// is, without versions, or nothing of it; and a mount that notices the removal later than the process has ended records nothing.
///
/// A value that was stored after that time is kept like every other one, by the process that replaces it.
///
/// On disk, all numbers little-endian: the time in nanoseconds since 1970 (8), and of each key the hash of its name (`StableHash`, 8). The
/// names themselves are not written. An empty file, for which a full disk has room, stands for all keys, from its own time on.
struct PurgedKeys {
  /// The time for which they count, in seconds.
  static let duration: Int64 = 10
  private static let longest = 1 << 20
  private static let second: UInt64 = 1_000_000_000

  private var time: Timestamp
  private var hashes: Set<UInt64>
  private var isOfAllKeys = false

  /// Those of a file; none where it can't be read, or was written too long ago.
  init(_ path: String) {
    (time, hashes) = (Timestamp(seconds: 0), [])
    guard let file = try? Descriptor(path, [.reading, .noFollow, .nonBlocking]),
      let bytes = try? file.readToEnd(limit: Self.longest, expecting: 64)
    else { return }
    if bytes.isEmpty, let modified = try? file.status.modified {
      (time, isOfAllKeys) = (Timestamp(modified), true)
    }
    let span = bytes.span
    var reader = ByteReader(span)
    guard let nanoseconds = reader.number(8) else { return }
    time = Timestamp(
      seconds: Int64(clamping: nanoseconds / Self.second),
      nanoseconds: UInt32(clamping: nanoseconds % Self.second))
    guard !isOver else { return }
    while let hash = reader.number(8) { hashes.insert(hash) }
  }

  /// The same with further keys, from now on.
  mutating func add(_ keys: Set<ExactString>) {
    time = .now
    for key in keys { hashes.insert(StableHash.of(Array(key.utf8).span)) }
  }

  var bytes: [UInt8] {
    var writer = ByteWriter()
    let seconds = UInt64(clamping: time.seconds)
    writer.append(seconds &* Self.second &+ UInt64(time.nanoseconds), size: 8)
    for hash in hashes.sorted() { writer.append(hash, size: 8) }
    return writer.bytes
  }

  /// Whether it counts no more. A clock that was set back must not make it last.
  var isOver: Bool { (Timestamp.now.seconds &- time.seconds).magnitude > Self.duration.magnitude }

  var isEmpty: Bool { hashes.isEmpty && !(isOfAllKeys && !isOver) }

  func contains(_ key: ExactString) -> Bool {
    if isOfAllKeys { return !isOver }
    return !hashes.isEmpty && hashes.contains(StableHash.of(Array(key.utf8).span))
  }

  /// Whether nothing is kept of a value of a key that is changed at `change`. `stored`: when the value was stored, nil where that is
  /// not known. A time behind the change was set by hand, and says nothing.
  func contains(_ key: ExactString, stored: Timestamp?, until change: Timestamp) -> Bool {
    guard contains(key) else { return false }
    guard let stored, time < stored, stored <= change else { return true }
    return false
  }
}

extension SettingHistoryFiles {
  static let purgedEnding = ".purged"

  /// Those of a suite that count now.
  func purgedKeys(of suite: ExactString) -> PurgedKeys { PurgedKeys(path(suite) + Self.purgedEnding) }

  /// Writes that nothing is kept of the keys, which replaces the file in one step.
  func mark(_ keys: Set<ExactString>, of suite: ExactString) throws(StoreError) {
    var purged = purgedKeys(of: suite)
    purged.add(keys)
    let (path, bytes) = (path(suite) + Self.purgedEnding, purged.bytes)
    let temporary = path + ".tmp"
    try SuiteFiles.remove(temporary)
    try SuiteFiles.call("write") { () throws(Errno) in
      let file = try Descriptor(temporary, [.writing, .create, .exclusive, .noFollow])
      try file.write(bytes)
      try file.synchronizeData()
    }
    try SuiteFiles.rename(temporary, to: path)
  }

  /// The same of all keys of a suite, which takes no room. - Throws: the system's errors.
  func markAll(of suite: ExactString) throws(StoreError) {
    let path = path(suite) + Self.purgedEnding
    try SuiteFiles.remove(path + ".tmp")
    try SuiteFiles.remove(path)
    try SuiteFiles.call("open") { () throws(Errno) in
      _ = try Descriptor(path, [.writing, .create, .exclusive, .noFollow])
    }
  }

  func removePurgedKeys(of suite: ExactString) { try? SuiteFiles.remove(path(suite) + Self.purgedEnding) }

  /// Removes the files that count no more.
  func removePurgedKeys() {
    for name in ((try? SuiteFiles.names(in: folder)) ?? []).compactMap(\.self)
    where name.hasSuffix(Self.purgedEnding) && PurgedKeys(folder + "/" + name).isOver {
      try? SuiteFiles.remove(folder + "/" + name)
    }
  }
}

/// Removes the files of keys that were removed for good, once they count no more: they have hashes of the keys' names in them.
final class PurgedKeysRemoval: Sendable {
  private let isPlanned = Atomic(false)

  func removeLater(from files: SettingHistoryFiles) {
    guard !isPlanned.exchange(true, ordering: .acquiringAndReleasing) else { return }
    Background.run(after: .seconds(Int(PurgedKeys.duration) + 1)) { [weak files, self] in
      isPlanned.store(false, ordering: .releasing)
      files?.removePurgedKeys()
    }
  }
}
