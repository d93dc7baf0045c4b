import Crypto
import GRDB
import Model
import Store
import VaultDatabase
import VaultRecords

// All items at once.
extension Session {
  /// The state of the vault in one transaction.
  struct Finding {
    var version: UInt64
    /// nil: the items were not read.
    var scan: ItemTable.ItemScan?
    /// Of a vault of many items that are whole.
    var known: KnownRows?
    /// Whether the rows that were read are those that the manifest answers for.
    var isWhole = true
    var manifest: Manifest?
    var digests: Manifest.Digests
  }

  /// Reads all items, or none, and compares what it has read with the manifest and the anchor.
  ///
  /// - Throws: `interrupted` where another process has made new keys since `fitsVault` was asked. After any error the next
  ///   call of `changes` reads all again.
  func load(_ reading: VaultReading = .allItems) throws(StoreError) -> [Item] {
    let (found, anchored) = try look { (database, found) in
      // Without a manifest no single item could be proven.
      guard readsAll(reading, found.manifest) else { return true }
      let scan = try items(database).scan(expecting: found.manifest?.count ?? 0)
      if let manifest = found.manifest {
        (found.isWhole, found.known) = try compare(scan, manifest, database)
      }
      found.scan = scan
      return true
    }
    guard let found else { throw .interrupted }
    areRulesMissing = areRulesMissing(found)
    untold = nil
    isUnread = found.scan == nil
    known = found.known
    isVerificationDue = isUnread && isVerificationDue
    toldVersion = found.version
    damaged = found.scan?.damaged ?? []
    judge(found, anchored)
    return found.scan?.items ?? []
  }

  /// Judges the vault by its manifest alone, before something is changed in it: of its rows each one that is changed is
  /// proven, and all are to be compared by `verification`. The next call of `changes` reports what the file holds.
  func judgeManifest() throws(StoreError) {
    let (found, anchored) = try look { _, found in found.manifest != nil }
    guard let found else { return _ = try reloadAsNews() }
    isVerificationDue = true
    judge(found, anchored)
  }

  /// Runs `body` in a transaction with what is there, and the anchor as it was before: others advance the vault first, and
  /// read later the anchor could be the newer one.
  ///
  /// - Returns: nil: `body` has returned false.
  func look(
    _ body: (Database, inout Finding) throws -> Bool
  ) throws(StoreError) -> (Finding?, anchored: [UInt8]) {
    let anchored = anchor.read()
    // A file that was written over in place may have other keys and secrets at the same moment of the last commit.
    (checked, sealed, openedVersions) = (nil, SealedSecrets(), nil)
    forgetTold()
    do throws(StoreError) {
      if connection.noteChecked() { try connection.dropCache() }
      let found = try connection.read { database -> Finding? in
        // The first read fixes what the transaction sees, and so what the version stands for.
        let manifest = try Manifest.fetchIfWhole(database, keys)
        // Between two transactions another process may have made new keys, under which nothing opens with these.
        if manifest == nil, slotsDigest != nil, try isReplaced(database) { throw StoreError.interrupted }
        if let manifest { try classKeys.follow(manifest.classKeys, database) }
        var found = Finding(
          version: try Connection.dataVersion(database), manifest: manifest,
          digests: try Manifest.Digests(database, keys))
        return try body(database, &found) ? found : nil
      }
      return (found, anchored)
    } catch {
      connection.noteUnchecked()
      throw error
    }
  }

  private func readsAll(_ reading: VaultReading, _ manifest: Manifest?) -> Bool {
    guard let manifest, keys.format >= .two else { return true }
    switch reading {
    case .allItems: return true
    case .fewItems: return manifest.count < many
    case .singleItems: return false
    }
  }

  /// Without a manifest it is not known whether there were any.
  private func areRulesMissing(_ found: Finding) -> Bool {
    guard let scan = found.scan, keys.format >= .two, found.manifest?.hasRules ?? true else { return false }
    return !scan.items.contains { $0.identity == .rules }
  }

  private func compare(
    _ scan: ItemTable.ItemScan, _ manifest: Manifest, _ database: Database
  ) throws -> (isWhole: Bool, KnownRows?) {
    guard scan.nameless == 0, scan.count == manifest.count else { return (false, nil) }
    guard keys.format >= .two else { return (scan.sum == manifest.sum, nil) }
    let table = DigestTable(database: database, keys: keys)
    guard manifest.count >= many else { return (try table.isWhole(manifest), nil) }
    let known = try table.knownRows(manifest)
    return (known != nil, known)
  }
}
