import GRDB
import Model
import Platform
import SecretMemory
import VaultRecords

/// Makes new vaults.
///
/// The database is finished under another name before it gets its own, so that a crash leaves nothing that
/// would have to be distinguished from a damaged vault. Two processes wait for each other.
enum VaultFactory {
  static func makeIfMissing(_ place: VaultDirectory) throws(StoreError) {
    guard try !exists(place.database) || PrivateFile.isUnfinished(place.database) else { return }
    try place.locked(place.path) { () throws(StoreError) in
      try PrivateFile.finish(place.key)
      try PrivateFile.finish(place.database)
      guard try !exists(place.database) else { return }
      guard try !exists(place.log) else {
        throw .damaged(what: "the vault (\(place.database) is missing, but its log is there)")
      }
      try makeKey(place)
      try makeDatabase(place)
    }
  }

  private static func makeKey(_ place: VaultDirectory) throws(StoreError) {
    guard try !exists(place.key) else { return }
    try PrivateFile.createKey(place.key, count: KeyFileSource.length)
  }

  private static func makeDatabase(_ place: VaultDirectory) throws(StoreError) {
    let temporary = PrivateFile.temporary(place.database)
    for ending in ["", "-journal", "-wal", "-shm"] { PrivateFile.unlink(temporary + ending) }
    try PrivateFile.createEmpty(temporary)
    do {
      let (header, manifest) = try fill(temporary, KeyFileSource(bytes: place.fetchKey()), place)
      try synchronize(temporary)
      // Before the vault has its name: from then on a missing anchor is reported.
      var anchor = Anchor(place, store: header.store)
      try anchor.advance(to: manifest.state, manifest.anchorKey)
      try PrivateFile.giveName(place.database)
      // Where the disk's blocks are small, it was made without SQLite, which does not remove it.
      PrivateFile.unlink(temporary + "-shm")
    } catch {
      for ending in ["", "-journal", "-wal", "-shm"] { PrivateFile.unlink(temporary + ending) }
      throw error
    }
  }

  private static func fill(
    _ path: String, _ source: borrowing some KeySource & ~Copyable, _ place: VaultDirectory
  ) throws(StoreError) -> (VaultHeader, Manifest) {
    let connection = try Connection(path)
    let made = try connection.write { try Schema.create($0, source, place.machine) }
    try connection.run { try $0.execute(sql: "PRAGMA journal_mode = WAL") }
    try connection.close()
    return made
  }

  private static func synchronize(_ path: String) throws(StoreError) {
    guard let file = try PrivateFile.open(path) else { throw .notFound }
    try StoreError.call("fsync") { () throws(Errno) in try file.synchronize() }
  }

  /// True also for a symbolic link that leads nowhere.
  private static func exists(_ path: String) throws(StoreError) -> Bool {
    try StoreError.call("stat \(path)") { () throws(Errno) in
      try Files.status(path, followingLinks: false) != nil
    }
  }
}
