import Glibc
import Model
import Store

/// A file beside a suite's, with a name that no program takes for a suite's: the next version until it is
/// complete and in place, or the last one until it is not needed any more. It goes with this value.
struct Temporary: ~Copyable {
  let path: String
  /// The file that has the name, locked while it is needed: `removeLeftovers` spares it.
  private(set) var file: Descriptor

  /// An empty file, for the version of a moment.
  init(beside target: String, at time: Timestamp) throws(StoreError) {
    var name = TemporaryName(of: target, at: time)
    let folder = FileSystem.folder(of: target) + "/"
    var file = try Self.make(folder + name.text)
    var attempts = 1
    while attempts < Self.mostAttempts, try !Self.isSpared(folder + name.text, file) {
      name.avoid()
      file = try Self.make(folder + name.text)
      attempts += 1
    }
    path = folder + name.text
    self.file = file
  }

  /// Nothing is there any more once it was moved: no other file has its name.
  deinit { try? FileSystem.remove(path) }

  /// Writes a version, with the mode and owner of the one before. It need not be on the disk then.
  ///
  /// Watchers get IN_CLOSE_WRITE while the file has this name: it is written through a descriptor of its
  /// own.
  func write(_ version: SuiteVersion, like old: FileStatus?) throws(StoreError) -> SuiteStamp {
    try Descriptor(path, O_WRONLY | O_NOFOLLOW).write(version.bytes)
    if let old { try keep(old) }
    var times = [timespec(), timespec()]
    let time = timespec(tv_sec: Int(version.time.seconds), tv_nsec: Int(version.time.nanoseconds))
    for index in 0..<2 { times[index] = time }
    try FileSystem.retrying("futimens") { Int(unsafe futimens(file.number, times)) }
    return try file.status.stamp
  }

  /// fdatasync(2).
  func synchronize() throws(StoreError) {
    try file.synchronizeData()
  }

  /// The name has another file now, which `lock` keeps locked.
  mutating func hold(_ lock: consuming Descriptor) {
    file = lock
  }
}

extension Temporary {
  private static let mostAttempts = 8

  private static func make(_ path: String) throws(StoreError) -> Descriptor {
    try Descriptor(path, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
  }

  /// False: before it was locked, another process's `removeLeftovers` has taken it, or is about to.
  private static func isSpared(_ path: String, _ file: borrowing Descriptor) throws(StoreError) -> Bool {
    guard (try? file.tryLock()) ?? true else { return false }
    return try FileSystem.status(path, follow: false) != nil
  }

  /// An owner that can't be kept is no error; then the file's mode gives no other user rights.
  private func keep(_ old: FileStatus) throws(StoreError) {
    let isOwn = old.owner == geteuid() && old.group == getegid()
    let isKept = isOwn || fchown(file.number, old.owner, old.group) == 0
    let mode = old.mode & (isKept ? 0o7777 : 0o700)
    try FileSystem.retrying("fchmod") { Int(fchmod(file.number, mode)) }
  }
}
