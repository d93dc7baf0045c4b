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
        var manifest = try presentManifest(database, version)
        let before = manifest
        manifest.skip(lostRevisions)
        defer { attempted = manifest.generation &- before.generation }
        let start = manifest
        let result = try body(secrets(database, password), &manifest)
        guard manifest != start else { return (result, before) }
        try manifest.store(database, keys)
        return (result, manifest)
      }
      lostRevisions = 0
      untold = nil
      noteOwnCommit(of: manifest, after: earlier, version)
      classKeys.settle(committed: true)
      advanceAnchor(manifest)
      return result
    } catch {
      forgetCommitted()
      // Its seals are counted: a key seals a limited number of blobs.
      lostRevisions = attempted
      classKeys.settle(committed: false)
      throw error
    }
  }

  /// The manifest to write on from: the one that this process committed last, where no other process has committed since.
  private func presentManifest(_ database: Database, _ version: UInt64) throws -> Manifest {
    guard let committed, committed.version == version else { return try trustedManifest(database) }
    return committed.manifest
  }

  /// The next refresh reports what the file holds.
  private func judgeAgain() throws(StoreError) {
    forgetCommitted()
    _ = try reload()
    forgetTold()
  }
}
