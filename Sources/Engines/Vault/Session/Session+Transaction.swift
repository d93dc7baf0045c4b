import GRDB
import Model
import Store
import VaultDatabase
import VaultRecords

extension Session {
  /// Runs `body` in a write transaction with the secrets and the manifest, which is stored at its end.
  func change<Result>(
    _ password: PasswordSeal? = nil, _ body: (SecretTable, inout Manifest) throws -> Result
  ) throws(StoreError) -> Result {
    try judgeIfTouched()
    if let readOnlyReason { throw .readOnly(reason: readOnlyReason) }
    var attempted = lostRevisions
    do {
      var version: UInt64 = 0
      var earlier: WALSnapshot?
      var rows: [ItemRow: Int] = [:]
      let (result, manifest) = try writeInPlace { database in
        (version, earlier) = (try Connection.dataVersion(database), connection.commitMarkInTransaction())
        // Another process may have changed them.
        if earlier == nil || openedVersions?.mark != earlier { openedVersions = nil }
        let before = try presentManifest(database)
        try classKeys.follow(before.classKeys, database)
        var manifest = before
        manifest.skip(lostRevisions)
        defer { attempted = manifest.generation &- before.generation }
        let start = manifest
        (committed, isResidueDue) = (manifest.generation, false)
        let result = try body(secrets(database, password), &manifest)
        guard manifest != start else { return (result, Manifest?.none) }
        rows = manifest.rowChanges
        try store(&manifest, after: before, database)
        return (result, manifest)
      }
      untold = nil
      // Where nothing was stored, the next commit is another process's.
      if let manifest {
        lostRevisions = 0
        known?.take(rows, manifest.leaves, keys)
        classKeys.settle(committed: manifest.classKeys)
        noteOwnCommit(after: earlier, version)
        advanceAnchor(manifest)
        if isResidueDue { connection.dropResidue() }
      }
      return result
    } catch {
      // Its seals are counted: a key seals a limited number of blobs.
      lostRevisions = attempted
      openedVersions = nil
      classKeys.settle(committed: nil)
      throw error
    }
  }

  private func writeInPlace<Result>(_ body: (Database) throws -> Result) throws(StoreError) -> Result {
    try connection.writeInPlace { database in try keys.makingDigests { try body(database) } }
  }

  /// Stores the manifest, of which `earlier` was read in this transaction, unless there are other slots or class keys than
  /// it was stored with.
  private func store(_ manifest: inout Manifest, after earlier: Manifest, _ database: Database) throws {
    let slots = try KeySlot.fetchAll(database, keys.format)
    let rows = try ClassKeyRow.fetchAll(database, keys.statements)
    try requireTrust(earlier, Manifest.Digests(slots, classKeys.earlier(rows), keys))
    try manifest.store(database, keys, with: Manifest.Digests(slots, rows, keys))
  }

  /// A file that was written over in place may be another vault by now: it is judged before anything is added to it.
  func judgeIfTouched() throws(StoreError) {
    guard try connection.isTouchedInPlace() else { return }
    if known != nil || isSlowToRead { try judgeManifest() } else { try reloadAsNews() }
  }
}
