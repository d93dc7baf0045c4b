import Glibc
import Model
import SecretMemory

/// Files that belong to one user alone: 0600, never a symbolic link, whole or not there.
enum PrivateFile {
  /// Opens a file after making sure that no other user can read it or have put it there; nil: there is none.
  static func open(_ path: String, _ flags: Int32) throws(StoreError) -> Descriptor? {
    // O_NONBLOCK: a FIFO put in the file's place must not hold us up.
    let number = unsafe Glibc.open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
    guard number >= 0 else { return try missing(path, errno) }
    let descriptor = Descriptor(number)
    try check(descriptor.status(path), path)
    return descriptor
  }

  /// All of a small file; nil: there is none.
  static func read(_ path: String, limit: Int = 4096) throws(StoreError) -> [UInt8]? {
    guard let file = try open(path, O_RDONLY) else { return nil }
    var bytes = [UInt8](repeating: 0, count: limit)
    let count = unsafe bytes.withUnsafeMutableBytes { unsafe file.read(into: $0, at: 0) }
    return Array(bytes.prefix(max(0, count)))
  }

  /// The `count` bytes of a key file; nil: there is none.
  static func readKey(_ path: String, count: Int) throws(StoreError) -> SecretBytes? {
    guard let file = try open(path, O_RDONLY) else { return nil }
    guard Int(try file.status(path).st_size) == count else { throw .damaged(what: path) }
    guard var key = try? SecretBytes(count: count) else { throw .outOfMemory }
    let got = unsafe key.withUnsafeMutableBytes { unsafe file.read(into: $0, at: 0) }
    guard got == count else { throw .damaged(what: path) }
    return key
  }

  /// Makes a file of random bytes, whole and on the disk before it has its name. One that is there stays.
  ///
  /// Call it under `VaultDirectory.locked`: the temporary name is always the same.
  static func createKey(_ path: String, count: Int) throws(StoreError) {
    guard var key = try? SecretBytes(count: count) else { throw .outOfMemory }
    guard unsafe key.withUnsafeMutableBytes({ unsafe getentropy($0.baseAddress, count) }) == 0 else {
      throw .system(errno: errno, operation: "getentropy")
    }
    try unsafe key.withUnsafeBytes { bytes throws(StoreError) in
      try unsafe write(bytes, to: temporary(path))
    }
    try giveName(path)
  }

  /// Makes an empty file of 0600. - Throws: `exists`.
  static func createEmpty(_ path: String) throws(StoreError) {
    try unsafe write(UnsafeRawBufferPointer(start: nil, count: 0), to: path)
  }

  /// Makes a file of 0600 that is on the disk when this returns. - Throws: `exists`.
  static func create(_ path: String, _ bytes: UnsafeRawBufferPointer) throws(StoreError) {
    try unsafe write(bytes, to: path)
  }

  /// Replaces a file in one step.
  static func replace(_ path: String, with bytes: [UInt8]) throws(StoreError) {
    let temporary = path + ".\(getpid())"
    unlink(temporary)
    let failure: StoreError? = unsafe bytes.withUnsafeBytes { bytes in
      do throws(StoreError) { try unsafe write(bytes, to: temporary) } catch { return error }
      return nil
    }
    if let failure { throw failure }
    guard unsafe rename(temporary, path) == 0 else { throw .system(errno: errno, operation: "rename") }
  }

  /// Removes what `replace` left of processes that were killed meanwhile.
  static func removeLeftovers(of path: String) {
    let parts = path.unicodeScalars.split(separator: "/", omittingEmptySubsequences: false).map { String($0) }
    guard let name = parts.last, let folder = unsafe opendir(parts.dropLast().joined(separator: "/")) else {
      return
    }
    defer { unsafe closedir(folder) }
    while let entry = unsafe readdir(folder) {
      let found = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      guard found.hasPrefix(name + "."), let process = Int32(found.dropFirst(name.count + 1)) else {
        continue
      }
      if kill(process, 0) != 0, errno == ESRCH { unlink(path + ".\(process)") }
    }
  }

  /// The name under which a file is made.
  static func temporary(_ path: String) -> String { path + ".new" }

  /// Links a finished file to its name unless that is taken, and drops the temporary one.
  ///
  /// In this order: as long as the temporary name is there, the other may not be on the disk yet.
  static func giveName(_ path: String) throws(StoreError) {
    let result = unsafe link(temporary(path), path)
    let error = errno
    guard result == 0 || error == EEXIST else {
      unlink(temporary(path))
      throw .system(errno: error, operation: "link \(path)")
    }
    try synchronizeFolders(of: path)
    unlink(temporary(path))
  }

  /// True: its maker is still at it, or was killed before the file's name was on the disk.
  static func isUnfinished(_ path: String) -> Bool {
    unsafe access(temporary(path), F_OK) == 0
  }

  /// Goes on where a maker was killed: a file that has its name keeps it. Call it under `VaultDirectory.locked`.
  static func finish(_ path: String) throws(StoreError) {
    guard isUnfinished(path) else { return }
    if unsafe access(path, F_OK) == 0 { try synchronizeFolders(of: path) }
    unlink(temporary(path))
  }

  /// Makes the file's name durable, and those of the folders that lead to it: they may be as new.
  ///
  /// Up to the first that is not the user's: what is above it was not made by this user.
  static func synchronizeFolders(of path: String) throws(StoreError) {
    var folder = path[...]
    while let slash = folder.lastIndex(of: "/"), slash > folder.startIndex {
      folder = folder[..<slash]
      var status = stat()
      guard unsafe stat(String(folder), &status) == 0 else { return }
      // Not every folder of others can be opened.
      guard status.st_uid == geteuid() else { return _ = try? synchronize(directory: String(folder)) }
      try synchronize(directory: String(folder))
    }
  }

  static func synchronize(directory: String) throws(StoreError) {
    let number = unsafe Glibc.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard number >= 0 else { throw .system(errno: errno, operation: "open \(directory)") }
    try Descriptor(number).synchronize()
  }

  static func unlink(_ path: String) {
    _ = unsafe Glibc.unlink(path)
  }
}

extension PrivateFile {
  private static func write(_ bytes: UnsafeRawBufferPointer, to path: String) throws(StoreError) {
    let number = unsafe Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard number >= 0 else { throw StoreError(errno: errno, "open \(path)") }
    let file = Descriptor(number)
    guard unsafe bytes.isEmpty || pwrite(number, bytes.baseAddress, bytes.count, 0) == bytes.count else {
      let error = errno
      unlink(path)
      throw StoreError(errno: error, "write \(path)")
    }
    try file.synchronize()
  }

  private static func missing(_ path: String, _ error: Int32) throws(StoreError) -> Descriptor? {
    switch error {
    case ENOENT: return nil
    case ELOOP: throw .accessDenied(reason: "\(path) is a symbolic link; put the file itself there")
    default: throw StoreError(errno: error, "open \(path)")
    }
  }

  static func check(_ status: stat, _ path: String) throws(StoreError) {
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw .accessDenied(reason: "\(path) is no regular file")
    }
    guard status.st_uid == geteuid() else {
      throw .accessDenied(reason: "\(path) belongs to another user")
    }
    guard status.st_mode & 0o077 == 0 else {
      throw .accessDenied(reason: "others can access \(path): `chmod 600 \(path)`")
    }
  }
}

/// An open file, closed when dropped.
struct Descriptor: ~Copyable {
  let number: Int32

  init(_ number: Int32) {
    self.number = number
  }

  deinit {
    close(number)
  }

  func status(_ path: String) throws(StoreError) -> stat {
    var status = stat()
    guard unsafe fstat(number, &status) == 0 else { throw .system(errno: errno, operation: "stat \(path)") }
    return status
  }

  /// pread(2): how many bytes came.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
    unsafe pread(number, buffer.baseAddress, buffer.count, offset)
  }

  func synchronize() throws(StoreError) {
    guard fsync(number) == 0 else { throw .system(errno: errno, operation: "fsync") }
  }
}

extension StoreError {
  /// The error for an errno(3) of the vault's own files.
  init(errno error: Int32, _ operation: String) {
    switch error {
    case ENOSPC: self = .noSpace
    case EDQUOT: self = .quotaExceeded
    case EROFS: self = .readOnly(reason: "the disk is mounted read-only")
    case EMFILE, ENFILE: self = .tooManyOpen
    case EEXIST: self = .exists
    case ENOMEM: self = .outOfMemory
    default: self = .system(errno: error, operation: operation)
    }
  }
}
