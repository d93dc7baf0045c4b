import Model
import Platform
import Store

/// The calls on suites' files, with errors as `StoreError`.
enum SuiteFiles {
  /// Runs calls of the system. `operation` names them in messages.
  static func call<Value: ~Copyable>(
    _ operation: String, _ body: () throws(Errno) -> Value
  ) throws(StoreError) -> Value {
    do { return try body() } catch { throw StoreError(ofSuite: error, operation) }
  }

  /// stat(2), or lstat(2) where links are not followed; nil: nothing is there.
  static func status(_ path: String, follow: Bool = true) throws(StoreError) -> FileStatus? {
    try call("stat") { () throws(Errno) in try Files.status(path, followingLinks: follow) }
  }

  /// unlink(2); nothing to remove is fine.
  static func remove(_ path: String) throws(StoreError) {
    _ = try call("unlink") { () throws(Errno) in try Files.remove(path) }
  }

  /// A folder and what is above it, private to the user where it has to be made.
  ///
  /// Its name is on the disk then: `synchronize` of a suite only sees to the names in it.
  static func makeFolder(_ path: String) throws(StoreError) {
    if try status(path) != nil { return }
    if let slash = path.lastIndex(of: "/"), slash > path.startIndex { try makeFolder(String(path[..<slash])) }
    do throws(StoreError) {
      try call("mkdir") { () throws(Errno) in try Files.makeFolder(path) }
    } catch .exists {}
    try synchronizeNames(in: Files.folder(of: path))
  }

  /// fsync(2) of a file; one that is gone has nothing to lose.
  static func synchronize(_ path: String) throws(StoreError) {
    do throws(StoreError) {
      try call("fsync") { () throws(Errno) in
        try Descriptor(path, [.reading, .nonBlocking, .noControllingTerminal]).synchronize()
      }
    } catch .notFound {}
  }

  /// fsync(2) of a folder; one of another user may not let itself be opened, and stays as it is.
  static func synchronizeNames(in folder: String) throws(StoreError) {
    guard let folder = try? Descriptor(folder, [.reading, .folder]) else { return }
    try call("fsync") { () throws(Errno) in try folder.synchronize() }
  }

  /// The names in a folder, nil for one that is not UTF-8; none: there is no such folder.
  static func names(in folder: String) throws(StoreError) -> [String?] {
    do throws(StoreError) {
      return try call("opendir") { () throws(Errno) in try Files.rawNames(in: folder) }
        .map { String(validating: $0, as: UTF8.self) }
    } catch .notFound {
      return []
    }
  }

  /// rename(2).
  static func rename(_ path: String, to target: String) throws(StoreError) {
    try call("rename") { () throws(Errno) in try Files.rename(path, to: target) }
  }

  /// A rename that never takes another file's place, in one step: renameat2(2) with RENAME_NOREPLACE.
  ///
  /// - Throws: `exists`.
  static func renameKeeping(_ path: String, to target: String) throws(StoreError) {
    do throws(StoreError) {
      try call("renameat2") { () throws(Errno) in
        try Files.renameWithoutReplacing(path, to: target)
      }
    } catch .system(.EINVAL, operation: _), .system(.ENOSYS, operation: _) {
      // A file system that does not know the flag.
      guard try status(target, follow: false) == nil else { throw .exists }
      try rename(path, to: target)
    }
  }

  /// False also where one of the two is missing.
  static func areOnOneDisk(_ path: String, _ other: String) -> Bool {
    guard let first = FileID(path), let second = FileID(other) else { return false }
    return first.device == second.device
  }
}

extension FileStatus {
  /// Which version of a suite the file is.
  var stamp: SuiteStamp {
    SuiteStamp(device: id.device, number: id.inode, size: size, modified: Timestamp(modified))
  }
}

extension Descriptor {
  func suiteStatus() throws(StoreError) -> FileStatus {
    do { return try status } catch { throw StoreError(ofSuite: error, "fstat") }
  }
}

extension StoreError {
  /// The meaning of an error of a call on a suite's file.
  init(ofSuite error: Errno, _ operation: String) {
    switch error {
    case .ENOENT: self = .notFound
    case .ENOTDIR: self = .notDirectory
    case .ENOTEMPTY: self = .notEmpty
    case .ENAMETOOLONG: self = .nameTooLong
    case .EBUSY where operation == "rename": self = .readOnly(reason: "its file is a mount point")
    case .EACCES:
      self = .accessDenied(reason: "the permissions of the suite's file or folder do not allow it")
    case .EPERM: self = .notPermitted(reason: "the system does not permit it")
    default: self = StoreError(error, operation)
    }
  }
}
