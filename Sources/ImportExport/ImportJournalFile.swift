import Model
import Platform
import Store

/// The journal's file and its lock.
struct ImportJournalFile: ~Copyable {
  private let folder: String
  private let lock: Descriptor

  static func path(_ folder: String) -> String { folder + "/import.journal" }

  static func exists(in folder: String) -> Bool {
    Files.exists(path(folder))
  }

  /// Takes the lock; nil: another process has it. - Throws: `StoreError.system`.
  init?(in folder: String) throws(StoreError) {
    UserFolders.make(folder)
    guard let lock = try Self.lock(in: folder) else { return nil }
    self.lock = lock
    self.folder = folder
  }

  private static func lock(in folder: String) throws(StoreError) -> Descriptor? {
    do throws(Errno) {
      let file = try Descriptor(folder + "/import.lock", [.readingAndWriting, .create, .noFollow])
      guard try file.tryLock() else { return nil }
      return file
    } catch {
      throw StoreError(error, "opening import.lock")
    }
  }

  /// The journal that an import has left; nil: there is none.
  ///
  /// - Throws: `damaged` for one that can't be read.
  func read(_ lists: any PropertyListCoding) throws(StoreError) -> ImportJournal? {
    let bytes: [UInt8]
    do throws(Errno) { bytes = try Files.read(Self.path(folder), limit: .max - 1) } catch {
      if error == .ENOENT { return nil }
      // One that can't be read is not missing: what it would take back stands in it.
      throw StoreError(error, "reading import.journal")
    }
    guard !bytes.isEmpty else { return nil }
    guard let value = lists.value(xml: bytes), let journal = ImportJournal(value) else {
      throw .damaged(what: Self.path(folder))
    }
    return journal
  }

  /// Returns when the journal is on the disk.
  func write(_ journal: ImportJournal, _ lists: any PropertyListCoding) throws(StoreError) {
    let bytes = try lists.xml(journal.value)
    let temporary = Self.path(folder) + ".new"
    do throws(Errno) {
      try Files.remove(temporary)
      let file = try Descriptor(temporary, [.writing, .create, .exclusive, .noFollow])
      try file.write(bytes)
      try file.synchronize()
      try Files.rename(temporary, to: Self.path(folder))
    } catch {
      _ = try? Files.remove(temporary)
      throw StoreError(error, "writing import.journal")
    }
    try? Files.synchronizeFolder(folder)
  }

  func remove() {
    _ = try? Files.remove(Self.path(folder))
    try? Files.synchronizeFolder(folder)
  }
}
