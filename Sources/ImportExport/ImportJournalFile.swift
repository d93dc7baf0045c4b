import Glibc
import Model
import Platform
import Store

/// The journal's file and its lock.
struct ImportJournalFile: ~Copyable {
  private let folder: String
  private let lock: Int32

  private static func path(_ folder: String) -> String { folder + "/import.journal" }

  static func exists(in folder: String) -> Bool {
    unsafe access(path(folder), F_OK) == 0
  }

  /// Takes the lock; nil: another process has it. - Throws: `StoreError.system`.
  init?(in folder: String) throws(StoreError) {
    self.folder = folder
    UserFolders.make(folder)
    // SAFETY: a variadic call with its one argument.
    let descriptor = unsafe open(folder + "/import.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw Self.failure("opening import.lock") }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      close(descriptor)
      return nil
    }
    lock = descriptor
  }

  deinit { close(lock) }

  /// The journal that an import has left; nil: there is none.
  ///
  /// - Throws: `damaged` for one that can't be read.
  func read(_ lists: any PropertyListCoding) throws(StoreError) -> ImportJournal? {
    let text = readFile(Self.path(folder))
    guard !text.isEmpty else { return nil }
    guard let value = lists.value(xml: Array(text.utf8)), let journal = ImportJournal(value) else {
      throw .damaged(what: Self.path(folder))
    }
    return journal
  }

  /// Returns when the journal is on the disk.
  func write(_ journal: ImportJournal, _ lists: any PropertyListCoding) throws(StoreError) {
    let bytes = try lists.xml(journal.value)
    let temporary = Self.path(folder) + ".new"
    unlink(temporary)
    // SAFETY: a variadic call with its one argument.
    let descriptor = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw Self.failure("writing import.journal") }
    defer { close(descriptor) }
    do throws(StoreError) {
      try Self.write(bytes, to: descriptor)
      guard fsync(descriptor) == 0, unsafe rename(temporary, Self.path(folder)) == 0 else {
        throw Self.failure("writing import.journal")
      }
    } catch {
      unlink(temporary)
      throw error
    }
    synchronizeFolder()
  }

  func remove() {
    unlink(Self.path(folder))
    synchronizeFolder()
  }

  private func synchronizeFolder() {
    // SAFETY: a variadic call without its variable part.
    let descriptor = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }

  private func unlink(_ path: String) { _ = unsafe Glibc.unlink(path) }

  private static func write(_ bytes: [UInt8], to descriptor: Int32) throws(StoreError) {
    var position = 0
    while position < bytes.count {
      // SAFETY: the buffer says how long it is.
      let count = unsafe bytes[position...].withUnsafeBytes {
        unsafe Glibc.write(descriptor, $0.baseAddress, $0.count)
      }
      guard count > 0 || errno == EINTR else { throw failure("writing import.journal") }
      position += max(count, 0)
    }
  }

  private static func failure(_ operation: String) -> StoreError {
    switch errno {
    case ENOSPC: .noSpace
    case EDQUOT: .quotaExceeded
    case let error: .system(Errno(rawValue: error), operation: operation)
    }
  }
}
