import Glibc
import Model
import Store

extension SuiteFile {
  /// Names of files that are written and not yet in place: nothing that a program would take for a suite.
  static let temporaryPrefix = ".keyhole-"
  static let temporaryEnding = ".tmp"

  /// Puts `bytes` in place of the target, in one step, and keeps its mode and owner.
  ///
  /// - Returns: the new stamp; nil: the target is no longer what `old` says, and nothing was written.
  static func replace(
    _ target: String, _ old: FileStatus, with bytes: [UInt8], at time: Timestamp
  ) throws(StoreError) -> SuiteStamp? {
    let temporary = try Temporary(beside: target)
    try temporary.write(bytes, like: old, at: time)
    guard try FileSystem.status(target)?.stamp == old.stamp else { return nil }
    return try temporary.move(to: target, FileSystem.rename)
  }

  /// Makes the file, where nothing has its name. - Throws: `exists`.
  func make(_ bytes: [UInt8], at time: Timestamp) throws(StoreError) -> SuiteStamp? {
    let temporary = try Temporary(beside: path)
    try temporary.write(bytes, like: nil, at: time)
    return try temporary.move(to: path, FileSystem.renameKeeping)
  }
}

/// A file that takes another's place when it is complete, and is gone if it never does.
///
/// It is locked while its writer lives: `removeLeftovers` spares it.
private struct Temporary: ~Copyable {
  let path: String
  let file: Descriptor

  init(beside target: String) throws(StoreError) {
    let folder = FileSystem.folder(of: target)
    var path = Self.newPath(in: folder)
    var file = try Self.make(path)
    var attempts = 1
    while attempts < Self.mostAttempts, try !Self.isSpared(path, file) {
      path = Self.newPath(in: folder)
      file = try Self.make(path)
      attempts += 1
    }
    self.path = path
    self.file = file
  }

  private static let mostAttempts = 8

  private static func newPath(in folder: String) -> String {
    let name = SuiteFile.temporaryPrefix + String(UInt64.random(in: 0 ... .max), radix: 36)
    return folder + "/" + name + SuiteFile.temporaryEnding
  }

  private static func make(_ path: String) throws(StoreError) -> Descriptor {
    try Descriptor(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
  }

  /// False: before it was locked, another process's `removeLeftovers` has taken it, or is about to.
  private static func isSpared(_ path: String, _ file: borrowing Descriptor) throws(StoreError) -> Bool {
    guard (try? file.tryLock()) ?? true else { return false }
    return try FileSystem.status(path, follow: false) != nil
  }

  /// Nothing is there any more once it was moved: no other file has its name.
  deinit { try? FileSystem.remove(path) }

  /// fdatasync(2) belongs to it: without, XFS and ext4 may have the name and no content after a power cut.
  func write(_ bytes: [UInt8], like old: FileStatus?, at time: Timestamp) throws(StoreError) {
    try file.write(bytes)
    if let old { try keep(old) }
    // A time of its own for each write: the kernel's has steps of 4 ms, in which a stamp could come again.
    var times = [timespec(), timespec()]
    for index in 0..<2 { times[index] = timespec(tv_sec: Int(time.seconds), tv_nsec: Int(time.nanoseconds)) }
    try FileSystem.retrying("futimens") { Int(unsafe futimens(file.number, times)) }
    try FileSystem.retrying("fdatasync") { Int(fdatasync(file.number)) }
  }

  /// An owner that can't be kept is no error; then nobody else gets rights by the file's mode.
  private func keep(_ old: FileStatus) throws(StoreError) {
    let isOwn = old.owner == geteuid() && old.group == getegid()
    let isKept = isOwn || fchown(file.number, old.owner, old.group) == 0
    let mode = old.mode & (isKept ? 0o7777 : 0o700)
    try FileSystem.retrying("fchmod") { Int(fchmod(file.number, mode)) }
  }

  /// nil: another process took this file for a leftover.
  func move(
    to target: String, _ rename: (String, String) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteStamp? {
    do {
      try rename(path, target)
    } catch .notFound {
      return nil
    }
    return try file.status.stamp
  }
}
