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
    // A file that was written over in place may be another vault by now: it is judged before anything is added to it.
    if try connection.isTouchedInPlace() { try judgeAgain() }
    if let readOnlyReason { throw .readOnly(reason: readOnlyReason) }
    var attempted: UInt64 = 0
    do {
      var version: UInt64 = 0
      var earlier: WALSnapshot?
      let (result, manifest) = try connection.writeInPlace { database in
        (version, earlier) = (try Connection.dataVersion(database), connection.commitMarkInTransaction())
        let before = try presentManifest(database)
        var manifest = before
        manifest.skip(lostRevisions)
        defer { attempted = manifest.generation &- before.generation }
        let start = manifest
        let result = try body(secrets(database, password), &manifest)
        guard manifest != start else { return (result, Manifest?.none) }
        try store(&manifest, after: before, database)
        return (result, manifest)
      }
      lostRevisions = 0
      untold = nil
      classKeys.settle(committed: true)
      // Where nothing was stored, the next commit is another process's.
      if let manifest {
        noteOwnCommit(after: earlier, version)
        advanceAnchor(manifest)
      }
      return result
    } catch {
      // Its seals are counted: a key seals a limited number of blobs.
      lostRevisions = attempted
      classKeys.settle(committed: false)
      throw error
    }
  }

  /// Stores the manifest, of which `earlier` was read in this transaction, unless there are other slots or class keys than
  /// it was stored with.
  private func store(_ manifest: inout Manifest, after earlier: Manifest, _ database: Database) throws {
    var digests = try Manifest.Digests(database, keys)
    let present = digests
    // A class key that this transaction made is meant to be there.
    if classKeys.hasMade { digests.classKeys = earlier.classKeys }
    try requireTrust(earlier, digests)
    try manifest.store(database, keys, with: present)
  }

  /// The next refresh reports what the file holds.
  private func judgeAgain() throws(StoreError) {
    _ = try reload()
    forgetTold()
  }
}
