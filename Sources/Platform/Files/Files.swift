import CSystem
import Glibc

/// Linux's calls on paths.
package enum Files {}

// MARK: - What is there

extension Files {
  /// stat(2), or lstat(2) where links are not followed; nil: nothing has the path (ENOENT, ENOTDIR).
  package static func status(_ path: String, followingLinks: Bool = true) throws(Errno) -> FileStatus? {
    var raw = stat()
    do {
      try Errno.retrying { unsafe followingLinks ? stat(path, &raw) : lstat(path, &raw) }
      return FileStatus(raw)
    } catch .ENOENT, .ENOTDIR {
      return nil
    }
  }

  /// getxattr(2), symbolic links followed; nil: it has no such attribute, the value is longer than 255 bytes, or it can't be read.
  package static func attribute(_ name: String, of path: String) -> [UInt8]? {
    var value = [UInt8](repeating: 0, count: 255)
    let size = value.count
    // SAFETY: the array has the size that is given, and lives during the call as the names do.
    let count = unsafe linux_attribute(path, name, &value, UInt(size))
    return count < 0 ? nil : Array(value[..<count])
  }

  /// Whether something has a path, symbolic links followed: access(2) with F_OK. False also where that can't be found out.
  package static func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

  /// access(2) with R_OK, symbolic links followed: whether this process may read a file, which is not opened: it may be a pipe.
  package static func checkReadable(_ path: String) throws(Errno) {
    try Errno.retrying { unsafe access(path, R_OK) }
  }

  /// Whether something has a path, which may be a symbolic link that leads nowhere.
  package static func hasName(_ path: String) -> Bool {
    (try? status(path, followingLinks: false)) != nil
  }

  /// Whether stat(2) of a path in the file system that this process serves has a result; nil: no process could be made that
  /// asks.
  ///
  /// A process of its own asks: a thread of this one could not be killed while it waits, and as long as it lives, nothing
  /// ends the wait.
  package static func answers(_ path: String) -> Bool? {
    let error = unsafe linux_stat_in_child(path)
    return error < 0 ? nil : error == 0
  }

  package struct Rights: OptionSet, Sendable {
    package let rawValue: Int32
    package init(rawValue: Int32) { self.rawValue = rawValue }

    /// As that of `OpenFlags`.
    package init(arrayLiteral rights: Rights...) {
      rawValue = rights.reduce(0) { $0 | $1.rawValue }
    }

    package static let read = Rights(rawValue: R_OK)
    package static let write = Rights(rawValue: W_OK)
    /// Of a folder: using the names in it.
    package static let execute = Rights(rawValue: X_OK)
  }

  /// faccessat(2) for the ids that files are opened with; to root nearly everything is allowed.
  ///
  /// - Throws: why not: EACCES, EROFS, ENOENT …
  package static func require(_ rights: Rights, _ path: String) throws(Errno) {
    try Errno.retrying { unsafe faccessat(AT_FDCWD, path, rights.rawValue, AT_EACCESS) }
  }

  /// Whether `require` throws nothing.
  package static func allows(_ rights: Rights, _ path: String) -> Bool {
    (try? require(rights, path)) != nil
  }

  /// realpath(3): the path without symbolic links, `.` and `..`; the file has to be there.
  package static func realPath(_ path: String) throws(Errno) -> String {
    guard let real = unsafe realpath(path, nil) else { throw .current }
    defer { unsafe free(real) }
    return unsafe String(cString: real)
  }

  /// The path from the root on, of one that may count from the current directory. Symbolic links and `..` stay; where the current
  /// directory has no path, as it was given.
  package static func pathFromRoot(_ path: String) -> String {
    guard !path.hasPrefix("/"), let folder = currentFolder else { return path }
    return (folder == "/" ? "" : folder) + "/" + (path.hasPrefix("./") ? String(path.dropFirst(2)) : path)
  }

  /// getcwd(3): the current directory without symbolic links; nil: it was removed, or has no path here.
  package static var currentFolder: String? {
    guard let path = unsafe getcwd(nil, 0) else { return nil }
    defer { unsafe free(path) }
    let folder = unsafe String(validatingCString: path)
    return folder.flatMap { $0.hasPrefix("/") ? $0 : nil }
  }

  /// readlink(2): where a symbolic link leads, as it says. - Throws: EINVAL: it is none.
  package static func target(ofLink path: String) throws(Errno) -> String {
    var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
    // SAFETY: the array says how long it is.
    let count = try Errno.retrying { unsafe readlink(path, &bytes, bytes.count) }
    guard count < bytes.count else { throw .ENAMETOOLONG }
    return String(decoding: bytes[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The names in a folder as the file system has them, which need not be UTF-8, in no order; without `.` and `..`.
  package static func rawNames(in folder: String) throws(Errno) -> [[UInt8]] {
    try entries(in: folder).map(\.name)
  }

  /// An entry of a folder, as readdir(3) gives it.
  package struct Entry {
    package let name: [UInt8]
    /// False: it is no symbolic link. Some file systems don't say.
    package let mayBeLink: Bool
  }

  /// The entries of a folder, without `.` and `..`.
  package static func entries(in folder: String) throws(Errno) -> [Entry] {
    guard let stream = unsafe opendir(folder) else { throw .current }
    defer { unsafe closedir(stream) }
    var entries: [Entry] = []
    while true {
      errno = 0
      guard let entry = unsafe readdir(stream) else { break }
      // SAFETY: readdir(3) gives a name that ends with NUL, there until the next call.
      let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { unsafe Array($0.prefix { $0 != 0 }) }
      guard name != Array(".".utf8), name != Array("..".utf8) else { continue }
      let kind = unsafe Int(entry.pointee.d_type)
      entries.append(Entry(name: name, mayBeLink: kind == DT_LNK || kind == DT_UNKNOWN))
    }
    guard errno == 0 else { throw .current }
    return entries
  }

  /// The same as text; bytes that are not UTF-8 become U+FFFD.
  package static func names(in folder: String) throws(Errno) -> [String] {
    try rawNames(in: folder).map { String(decoding: $0, as: UTF8.self) }
  }
}

// MARK: - Names

extension Files {
  /// unlink(2). - Returns: false: nothing had the name.
  @discardableResult
  package static func remove(_ path: String) throws(Errno) -> Bool {
    do {
      try Errno.retrying { unsafe unlink(path) }
      return true
    } catch .ENOENT {
      return false
    }
  }

  /// rmdir(2). - Throws: ENOTEMPTY.
  package static func removeFolder(_ path: String) throws(Errno) {
    try Errno.retrying { unsafe rmdir(path) }
  }

  /// mkdir(2). - Throws: EEXIST.
  package static func makeFolder(_ path: String, permissions: UInt32 = 0o700) throws(Errno) {
    try Errno.retrying { unsafe mkdir(path, permissions) }
  }

  /// rename(2), which replaces what has the new name.
  package static func rename(_ path: String, to target: String) throws(Errno) {
    try Errno.retrying { unsafe Glibc.rename(path, target) }
  }

  /// renameat2(2) with RENAME_NOREPLACE.
  ///
  /// - Throws: EEXIST where the new name is taken; EINVAL or ENOSYS where the file system can't do it.
  package static func renameWithoutReplacing(_ path: String, to target: String) throws(Errno) {
    try Errno.retrying { unsafe linux_rename_noreplace(path, target) }
  }

  /// renameat2(2) with RENAME_EXCHANGE: each of two names gets the other's file, in one step.
  ///
  /// - Throws: ENOENT where one is missing; EINVAL, ENOSYS or EOPNOTSUPP where the file system can't do it.
  package static func exchange(_ path: String, with other: String) throws(Errno) {
    try Errno.retrying { unsafe linux_rename_exchange(path, other) }
  }

  /// linkat(2): a further name for a file. - Throws: EEXIST; EPERM where the file system has no hard links.
  package static func link(_ path: String, as name: String, followingLinks: Bool = false) throws(Errno) {
    let flags = followingLinks ? AT_SYMLINK_FOLLOW : 0
    try Errno.retrying { unsafe linkat(AT_FDCWD, path, AT_FDCWD, name, flags) }
  }

  /// symlink(2). - Throws: EEXIST.
  package static func makeLink(_ path: String, to target: String) throws(Errno) {
    try Errno.retrying { unsafe symlink(target, path) }
  }

  /// statfs(2): the file system that a path is on, as a number of `linux/magic.h`.
  package static func fileSystem(of path: String) throws(Errno) -> UInt64 {
    var type: UInt64 = 0
    try Errno.retrying { unsafe linux_file_system(path, &type) }
    return type
  }

  /// FUSE_SUPER_MAGIC of `linux/magic.h`.
  package static let fuse: UInt64 = 0x6573_5546

  /// removexattr(2). - Throws: ENODATA where there is no such attribute.
  package static func removeAttribute(_ name: String, of path: String) throws(Errno) {
    try Errno.retrying { unsafe linux_remove_attribute(path, name) }
  }

  /// utimensat(2): gives a file the present moment as the time of its last change and access.
  package static func touch(_ path: String) throws(Errno) {
    // SAFETY: no times mean now.
    try Errno.retrying { unsafe utimensat(AT_FDCWD, path, nil, 0) }
  }

  /// The path without its last part; `.` for a name alone.
  package static func folder(of path: String) -> String {
    // By bytes: a slash and a combining mark behind it are one Character.
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.utf8.startIndex ? "/" : String(decoding: path.utf8[..<slash], as: UTF8.self)
  }

  /// The last part of a path.
  package static func name(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path }
    return String(decoding: path.utf8[path.utf8.index(after: slash)...], as: UTF8.self)
  }
}

// MARK: - Whole files

extension Files {
  /// read(2) once, from a descriptor that other code owns: how many bytes came; 0 at the end.
  package static func read(
    into bytes: inout MutableSpan<UInt8>, from number: Int32
  ) throws(Errno) -> Int {
    try unsafe bytes.withUnsafeMutableBytes { (buffer) throws(Errno) in
      // SAFETY: the buffer says how long it is, and lives during the call.
      try Errno.retrying { unsafe Glibc.read(number, buffer.baseAddress, buffer.count) }
    }
  }

  /// write(2) to a descriptor that other code owns, until all is written.
  package static func write(_ bytes: Span<UInt8>, to number: Int32) throws(Errno) {
    var written = 0
    while written < bytes.count { written += try writeSome(bytes.extracting(written...), to: number) }
  }

  /// write(2) once to a descriptor that other code owns. - Returns: how many bytes were written, one or more.
  package static func writeSome(_ bytes: Span<UInt8>, to number: Int32) throws(Errno) -> Int {
    let count = try unsafe bytes.withUnsafeBytes { (buffer) throws(Errno) in
      // SAFETY: the buffer says how long it is, and lives during the call.
      try Errno.retrying { unsafe Glibc.write(number, buffer.baseAddress, buffer.count) }
    }
    // Only a file system with a defect takes nothing and reports no error.
    guard count > 0 else { throw .EIO }
    return count
  }

  /// read(2) once of a descriptor that other code owns: up to 4096 bytes; none at the end.
  package static func readSome(_ number: Int32) throws(Errno) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 4096)
    // SAFETY: the array says how long it is.
    let count = try Errno.retrying { unsafe Glibc.read(number, &bytes, bytes.count) }
    return Array(bytes.prefix(count))
  }

  /// posix_fallocate(3) of a descriptor that another library owns.
  package static func allocate(_ number: Int32, at offset: Int64, count: Int64) throws(Errno) {
    try Errno.checking { posix_fallocate(number, Int(clamping: offset), Int(clamping: count)) }
  }

  /// The whole file. - Throws: EFBIG beyond `limit` bytes.
  package static func read(
    _ path: String, _ options: OpenFlags = .reading, limit: Int = 16 << 20
  ) throws(Errno) -> [UInt8] {
    let bytes = try Descriptor(path, options).readToEnd(limit: limit)
    guard bytes.count <= limit else { throw .EFBIG }
    return bytes
  }

  /// fsync(2) of a folder, so that its names last.
  package static func synchronizeFolder(_ path: String) throws(Errno) {
    try Descriptor(path, [.reading, .folder]).synchronize()
  }
}
