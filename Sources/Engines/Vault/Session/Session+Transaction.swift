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
    if connection.isTouched { try judgeAgain() }
    if let readOnlyReason { throw .readOnly(reason: readOnlyReason) }
    var attempted: UInt64 = 0
    do {
      var version: UInt64 = 0
      let (result, manifest) = try connection.write { database in
        version = try Connection.dataVersion(database)
        var manifest = try trustedManifest(database)
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
      noteOwnCommit(since: version)
      classKeys.settle(committed: true)
      advanceAnchor(manifest)
      return result
    } catch {
      // Its seals are counted: a key seals a limited number of blobs.
      lostRevisions = attempted
      classKeys.settle(committed: false)
      throw error
    }
  }

  /// The next refresh reports what the file holds.
  private func judgeAgain() throws(StoreError) {
    _ = try reload()
    toldVersion = nil
  }
}
