import CSystem
import Glibc
import Model
import Store

/// The attributes of a file that stat(2) returns.
struct FileStatus {
  let stamp: SuiteStamp
  let mode: mode_t
  let owner: uid_t
  let group: gid_t

  init(_ raw: stat) {
    stamp = SuiteStamp(
      device: UInt64(raw.st_dev), number: UInt64(raw.st_ino), size: Int64(raw.st_size),
      modified: Timestamp(
        seconds: Int64(raw.st_mtim.tv_sec), nanoseconds: UInt32(clamping: raw.st_mtim.tv_nsec)))
    mode = raw.st_mode
    owner = raw.st_uid
    group = raw.st_gid
  }

  var isRegular: Bool { mode & S_IFMT == S_IFREG }
  var isLink: Bool { mode & S_IFMT == S_IFLNK }
}

/// The system's calls on paths.
enum FileSystem {
  /// Runs a call until no signal interrupts it. - Throws: what its errno(3) means.
  @discardableResult
  static func retrying(_ operation: String, _ call: () -> Int) throws(StoreError) -> Int {
    while true {
      let result = call()
      if result >= 0 { return result }
      let error = errno
      if error != EINTR { throw StoreError(errno: error, operation: operation) }
    }
  }

  /// stat(2), or lstat(2) where links are not followed; nil: nothing is there.
  static func status(_ path: String, follow: Bool = true) throws(StoreError) -> FileStatus? {
    var raw = stat()
    do {
      try retrying("stat") { Int(unsafe follow ? stat(path, &raw) : lstat(path, &raw)) }
      return FileStatus(raw)
    } catch .notFound, .notDirectory {
      return nil
    }
  }

  /// unlink(2); nothing to remove is fine.
  static func remove(_ path: String) throws(StoreError) {
    do { try retrying("unlink") { Int(unsafe unlink(path)) } } catch .notFound {}
  }

  /// A folder and what is above it, private to the user where it has to be made.
  ///
  /// Its name is on the disk then: `synchronize` of a suite only sees to the names in it.
  static func makeFolder(_ path: String) throws(StoreError) {
    if try status(path) != nil { return }
    if let slash = path.lastIndex(of: "/"), slash > path.startIndex { try makeFolder(String(path[..<slash])) }
    do { try retrying("mkdir") { Int(unsafe mkdir(path, 0o700)) } } catch .exists {}
    try synchronizeNames(in: folder(of: path))
  }

  /// fsync(2) of a file; one that is gone has nothing to lose.
  static func synchronize(_ path: String) throws(StoreError) {
    do {
      let file = try Descriptor(path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
      try retrying("fsync") { Int(fsync(file.number)) }
    } catch .notFound {}
  }

  /// fsync(2) of a folder; one of another user may not let itself be opened, and stays as it is.
  static func synchronizeNames(in folder: String) throws(StoreError) {
    guard let folder = try? Descriptor(folder, O_RDONLY | O_DIRECTORY) else { return }
    try retrying("fsync") { Int(fsync(folder.number)) }
  }

  /// The present moment, as finely as the system knows it.
  static var now: Timestamp {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: UInt32(clamping: time.tv_nsec))
  }

  /// The names in a folder; none: there is no such folder.
  static func names(in folder: String) throws(StoreError) -> [String?] {
    guard let directory = unsafe opendir(folder) else {
      if errno == ENOENT { return [] }
      throw StoreError(errno: errno, operation: "opendir")
    }
    defer { unsafe closedir(directory) }
    var names: [String?] = []
    while let entry = unsafe readdir(directory) {
      // SAFETY: readdir(3) gives a name that ends with NUL, there until the next call.
      names.append(
        unsafe withUnsafePointer(to: &entry.pointee.d_name) {
          unsafe String(validatingCString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
        })
    }
    return names
  }
}

extension StoreError {
  /// The error for an errno(3) of a call on a suite's file.
  init(errno error: Int32, operation: String) {
    switch error {
    case ENOENT: self = .notFound
    case ENOTDIR: self = .notDirectory
    case EEXIST: self = .exists
    case ENOTEMPTY: self = .notEmpty
    case ENAMETOOLONG: self = .nameTooLong
    case ENOSPC: self = .noSpace
    case EDQUOT: self = .quotaExceeded
    case EROFS: self = .readOnly(reason: "the file system is mounted read-only")
    case EACCES: self = .accessDenied(reason: "the permissions of the suite's file or folder do not allow it")
    case EPERM: self = .notPermitted(reason: "the system does not permit it")
    case EMFILE, ENFILE: self = .tooManyOpen
    case ENOMEM: self = .outOfMemory
    default: self = .system(errno: error, operation: operation)
    }
  }
}

extension FileSystem {
  /// rename(2).
  static func rename(_ path: String, to target: String) throws(StoreError) {
    do {
      try retrying("rename") { Int(unsafe Glibc.rename(path, target)) }
    } catch .system(errno: EBUSY, operation: _) {
      throw .readOnly(reason: "its file is a mount point")
    }
  }

  /// A rename that never takes another file's place, in one step: renameat2(2) with RENAME_NOREPLACE.
  ///
  /// - Throws: `exists`.
  static func renameKeeping(_ path: String, to target: String) throws(StoreError) {
    do {
      try retrying("renameat2") { Int(unsafe linux_rename_noreplace(path, target)) }
    } catch .system(errno: EINVAL, operation: _), .system(errno: ENOSYS, operation: _) {
      // A file system that does not know the flag.
      guard try status(target, follow: false) == nil else { throw .exists }
      try rename(path, to: target)
    }
  }

  /// Gives each of two names the other's file, in one step: renameat2(2) with RENAME_EXCHANGE.
  ///
  /// - Returns: false: the file system does not do it. - Throws: `notFound`.
  static func exchange(_ path: String, with other: String) throws(StoreError) -> Bool {
    do {
      try retrying("renameat2") { Int(unsafe linux_rename_exchange(path, other)) }
      return true
    } catch .system(let number, operation: _) where [EINVAL, ENOSYS, EOPNOTSUPP].contains(number) {
      return false
    } catch .system(errno: EBUSY, operation: _) {
      throw .readOnly(reason: "its file is a mount point")
    }
  }

  /// The path without its last part.
  static func folder(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// faccessat(2) for the ids that files are opened with; to root nearly everything is allowed.
  static func allows(_ access: Int32, _ path: String) -> Bool {
    unsafe faccessat(AT_FDCWD, path, access, AT_EACCESS) == 0
  }

  /// False also where one of the two is missing.
  static func areOnOneDisk(_ path: String, _ other: String) -> Bool {
    guard let first = try? status(path), let second = try? status(other) else { return false }
    return first.stamp.device == second.stamp.device
  }

  /// The file system is mounted read-only: statvfs(3).
  static func isReadOnly(_ path: String) -> Bool {
    var room = statvfs()
    guard unsafe statvfs(path, &room) == 0 else { return false }
    return room.f_flag & UInt(ST_RDONLY) != 0
  }
}
