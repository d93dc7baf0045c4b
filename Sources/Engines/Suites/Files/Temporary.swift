import Model
import Platform
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
    let folder = Files.folder(of: target) + "/"
    var file = try Self.make(folder, &name)
    var attempts = 1
    while attempts < Self.mostAttempts, try !Self.isSpared(folder + name.text, file) {
      name.avoid()
      file = try Self.make(folder, &name)
      attempts += 1
    }
    path = folder + name.text
    self.file = file
  }

  /// Nothing is there any more once it was moved: no other file has its name.
  deinit { try? SuiteFiles.remove(path) }

  /// Writes a version, with the mode and owner of the one before. It need not be on the disk then.
  ///
  /// Watchers get IN_CLOSE_WRITE while the file has this name: it is written through a descriptor of its
  /// own.
  func write(_ version: SuiteVersion, like old: FileStatus?) throws(StoreError) -> SuiteStamp {
    try SuiteFiles.call("write") { () throws(Errno) in
      try Descriptor(path, [.writing, .noFollow]).write(version.bytes)
    }
    if let old { try keep(old) }
    try SuiteFiles.call("futimens") { () throws(Errno) in try file.setModified(SystemTime(version.time)) }
    return try file.suiteStatus().stamp
  }

  /// fdatasync(2).
  func synchronize() throws(StoreError) {
    try SuiteFiles.call("fdatasync") { () throws(Errno) in try file.synchronizeData() }
  }

  /// The name has another file now, which `lock` keeps locked.
  mutating func hold(_ lock: consuming Descriptor) {
    file = lock
  }
}

extension Temporary {
  /// A program that removes leftovers without a pause may take many of them.
  private static let mostAttempts = 1000

  /// The version before may have the name: a commit that is made again, after a crash or by another process, has its time.
  private static func make(_ folder: String, _ name: inout TemporaryName) throws(StoreError) -> Descriptor {
    for _ in 1..<mostAttempts {
      do throws(StoreError) { return try make(folder + name.text) } catch .exists { name.avoid() }
    }
    return try make(folder + name.text)
  }

  private static func make(_ path: String) throws(StoreError) -> Descriptor {
    try SuiteFiles.call("open") { () throws(Errno) in
      try Descriptor(path, [.reading, .create, .exclusive, .noFollow])
    }
  }

  /// False: before it was locked, another process's `removeLeftovers` has taken it, or is about to.
  private static func isSpared(_ path: String, _ file: borrowing Descriptor) throws(StoreError) -> Bool {
    guard (try? file.tryLock()) ?? true else { return false }
    return try SuiteFiles.status(path, follow: false) != nil
  }

  /// An owner that can't be kept is no error; then the file's mode gives no other user rights.
  private func keep(_ old: FileStatus) throws(StoreError) {
    let isOwn = old.owner == User.effective && old.group == User.effectiveGroup
    let isKept = isOwn || (try? file.setOwner(old.owner, group: old.group)) != nil
    try SuiteFiles.call("fchmod") { () throws(Errno) in
      try file.setPermissions(old.permissions & (isKept ? 0o7777 : 0o700))
    }
  }
}
