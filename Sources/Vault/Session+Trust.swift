import GRDB
import Model
import Store

extension Session {
  /// Compares what was found with the manifest, and the manifest with the anchor.
  func judge(_ census: ItemTable.Census, _ manifest: Manifest?) {
    distrust = reasonForDistrust(census, manifest)
    guard distrust == nil, let manifest else { return }
    do {
      // Who wrote it may have been killed before it was on the disk; the anchor must never lead.
      if manifest.generation > anchor.generation { try directory.synchronizeLog() }
      advanceAnchor(to: manifest.generation)
    } catch {
      anchorError = error
    }
  }

  private func reasonForDistrust(_ census: ItemTable.Census, _ manifest: Manifest?) -> String? {
    guard let manifest else { return "the vault's manifest is damaged" }
    guard !anchor.isDamaged else { return "the vault's anchor \(anchor.path) is damaged" }
    guard manifest.generation >= anchor.generation else {
      return "the vault is older than what this device has seen: it was put back from a copy"
    }
    guard census.nameless == 0, census.count == manifest.count, census.sum == manifest.sum else {
      return "items of the vault were deleted, doubled or put back behind Keyhole's back"
    }
    return nil
  }

  func advanceAnchor(to generation: UInt64) {
    do {
      try anchor.advance(to: generation)
      anchorError = nil
    } catch {
      // The change itself is stored; a lagging anchor only finds out less.
      anchorError = error
    }
  }

  /// The manifest to write on from, inside a write transaction.
  func trustedManifest(_ database: Database) throws -> Manifest {
    if let distrust { throw StoreError.readOnly(reason: distrust) }
    guard let manifest = try Manifest.fetchIfWhole(database, keys, header) else {
      throw StoreError.readOnly(reason: "the vault's manifest is damaged")
    }
    guard manifest.generation >= anchor.generation else {
      throw StoreError.readOnly(reason: "the vault is older than what this process has seen")
    }
    return manifest
  }

  /// Makes a manifest that fits what is there, newer than everything that was.
  func accept() throws(StoreError) {
    let manifest = try connection.write { database in
      let census = try self.items(database).census()
      let old = try Manifest.fetchIfWhole(database, self.keys, self.header)
      var manifest = Manifest(count: census.count, sum: census.sum)
      manifest.generation = max(anchor.generation, old?.generation ?? 0, census.lastRevision)
      _ = try manifest.advance()
      try database.execute(sql: "DELETE FROM item WHERE length(uuid) <> 16")
      try manifest.store(database, keys, header)
      return manifest
    }
    distrust = nil
    untold = nil
    advanceAnchor(to: manifest.generation)
  }

  func problems() -> [Problem] {
    var problems = damaged.map { key in
      Problem(
        subject: "item \(key.text)", reason: "its entry in the vault is damaged",
        remedy: "put back a copy of the vault, or delete the item")
    }
    if let distrust {
      problems.append(
        Problem(
          subject: directory.database, reason: "it can only be read: " + distrust,
          remedy: "put back the newest copy, or accept the vault as it is"))
    }
    if anchorError != nil {
      problems.append(
        Problem(
          subject: anchor.path, reason: "it can't be written",
          remedy: "make room and make \(directory.state) writable"))
    }
    return problems
  }
}
