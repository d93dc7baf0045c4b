package import Model
package import Platform
import SecretMemory
import Synchronization
import VaultRecords

/// Files that belong to one user alone: 0600, never a symbolic link, whole or not there.
package enum PrivateFile {
  /// Opens a file after making sure that no other user can read it or have put it there; nil: there is none.
  package static func open(_ path: String, _ flags: OpenFlags = .reading) throws(StoreError) -> Descriptor? {
    guard let file = try openIfPresent(path, flags) else { return nil }
    try check(StoreError.call("stat \(path)") { () throws(Errno) in try file.status }, path)
    return file
  }

  private static func openIfPresent(_ path: String, _ flags: OpenFlags) throws(StoreError) -> Descriptor? {
    do throws(Errno) {
      // Not blocking: a FIFO put in the file's place must not hold us up.
      return try Descriptor(path, flags.union(.noFollow).union(.nonBlocking))
    } catch {
      switch error {
      case .ENOENT: return nil
      case .ELOOP:
        throw .accessDenied(reason: "\(path) is a symbolic link; put the file itself there")
      default: throw StoreError(error, "open \(path)")
      }
    }
  }

  /// All of a small file; nil: there is none.
  package static func read(_ path: String, limit: Int = 4096) throws(StoreError) -> [UInt8]? {
    guard let file = try open(path) else { return nil }
    return (try? file.read(limit)) ?? []
  }

  /// The `count` bytes of a key file; nil: there is none.
  static func readKey(_ path: String, count: Int) throws(StoreError) -> SecretBytes? {
    guard let file = try open(path) else { return nil }
    guard (try? file.status)?.size == Int64(count) else { throw .damaged(what: path) }
    guard var key = try? SecretBytes(count: count) else { throw .outOfMemory }
    var bytes = key.mutableSpan
    guard (try? file.read(into: &bytes)) == count else { throw .damaged(what: path) }
    return key
  }

  /// Makes a file of random bytes, whole and on the disk before it has its name. One that is there stays.
  ///
  /// Call it under `VaultDirectory.locked`: the temporary name is always the same.
  static func createKey(_ path: String, count: Int) throws(StoreError) {
    guard var key = try? SecretBytes(count: count) else { throw .outOfMemory }
    do throws(Errno) {
      var bytes = key.mutableSpan
      try bytes.fillWithEntropy()
    } catch {
      throw StoreError(error, "getentropy")
    }
    try create(temporary(path), key.span)
    try giveName(path)
  }

  /// Makes an empty file of 0600. - Throws: `exists`.
  package static func createEmpty(_ path: String) throws(StoreError) {
    try create(path, Span<UInt8>())
  }

  /// Makes a file of 0600 that is on the disk when this returns. - Throws: `exists`.
  package static func create(_ path: String, _ bytes: Span<UInt8>) throws(StoreError) {
    let file = try StoreError.call("open \(path)") { () throws(Errno) in
      try Descriptor(path, [.writing, .create, .exclusive, .noFollow])
    }
    do throws(Errno) { try file.write(bytes) } catch {
      unlink(path)
      throw StoreError(error, "write \(path)")
    }
    try StoreError.call("fsync") { () throws(Errno) in try file.synchronize() }
  }

  /// Numbers the temporary files of this process: two of its threads may replace the same file.
  private static let replacements = Atomic<UInt64>(0)

  /// Replaces a file in one step.
  package static func replace(_ path: String, with bytes: [UInt8]) throws(StoreError) {
    let number = replacements.wrappingAdd(1, ordering: .relaxed).newValue
    let temporary = "\(path).\(CurrentProcess.number).\(number)"
    do throws(StoreError) {
      do throws(StoreError) {
        try create(temporary, bytes.span)
      } catch .exists {
        // A process with the same number was killed here.
        unlink(temporary)
        try create(temporary, bytes.span)
      }
      try StoreError.call("rename") { () throws(Errno) in try Files.rename(temporary, to: path) }
    } catch {
      unlink(temporary)
      throw error
    }
  }

  /// Removes what `replace` left of processes that were killed meanwhile.
  static func removeLeftovers(of path: String) {
    let start = Files.name(of: path) + "."
    for name in (try? Files.names(in: Files.folder(of: path))) ?? [] where name.hasPrefix(start) {
      // Earlier versions had the number of the process alone.
      let numbers = name.dropFirst(start.count).split(separator: ".", omittingEmptySubsequences: false)
      guard let process = numbers.first.flatMap({ Int32($0) }), numbers.count <= 2,
        numbers.allSatisfy({ UInt64($0) != nil }), !ProcessNumber.isTaken(process)
      else { continue }
      unlink(Files.folder(of: path) + "/" + name)
    }
  }

  /// The name under which a file is made.
  package static func temporary(_ path: String) -> String { path + ".new" }

  /// Links a finished file to its name unless that is taken, and drops the temporary one.
  ///
  /// In this order: as long as the temporary name is there, the other may not be on the disk yet.
  package static func giveName(_ path: String) throws(StoreError) {
    do { try Files.link(temporary(path), as: path) } catch {
      if error != .EEXIST {
        unlink(temporary(path))
        throw .system(error, operation: "link \(path)")
      }
    }
    try synchronizeFolders(of: path)
    unlink(temporary(path))
  }

  /// True: its maker is still at it, or was killed before the file's name was on the disk.
  static func isUnfinished(_ path: String) -> Bool {
    Files.exists(temporary(path))
  }

  /// Goes on where a maker was killed: a file that has its name keeps it. Call it under `VaultDirectory.locked`.
  package static func finish(_ path: String) throws(StoreError) {
    guard isUnfinished(path) else { return }
    if Files.exists(path) { try synchronizeFolders(of: path) }
    unlink(temporary(path))
  }

  /// Makes the file's name durable, and those of the folders that lead to it: they may be as new.
  ///
  /// Up to the first that is not the user's: what is above it was not made by this user.
  static func synchronizeFolders(of path: String) throws(StoreError) {
    var folder = path[...]
    while let slash = folder.lastIndex(of: "/"), slash > folder.startIndex {
      folder = folder[..<slash]
      guard let status = try? Files.status(String(folder)) else { return }
      // Not every folder of others can be opened.
      guard status.owner == User.effective else { return _ = try? synchronize(directory: String(folder)) }
      try synchronize(directory: String(folder))
    }
  }

  package static func synchronize(directory: String) throws(StoreError) {
    do { try Files.synchronizeFolder(directory) } catch {
      throw .system(error, operation: "fsync \(directory)")
    }
  }

  package static func unlink(_ path: String) {
    _ = try? Files.remove(path)
  }
}

extension PrivateFile {
  package static func check(_ status: FileStatus, _ path: String) throws(StoreError) {
    guard status.isRegular else { throw .accessDenied(reason: "\(path) is no regular file") }
    guard status.owner == User.effective else {
      throw .accessDenied(reason: "\(path) belongs to another user")
    }
    guard !status.isShared else {
      throw .accessDenied(reason: "others can access \(path): `chmod 600 \(path)`")
    }
  }
}

extension StoreError {
  /// Runs calls of the system. `operation` names them in messages, and what they are about.
  package static func call<Value: ~Copyable>(
    _ operation: String, _ body: () throws(Errno) -> Value
  ) throws(StoreError) -> Value {
    do { return try body() } catch { throw StoreError(error, operation) }
  }
}
