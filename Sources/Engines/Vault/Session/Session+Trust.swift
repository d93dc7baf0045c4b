import Crypto
import GRDB
import Model
import Store
import VaultDatabase
import VaultRecords

extension Session {
  /// Compares what was found with the manifest, and the manifest with the anchor, of which the bytes are `anchored`.
  func judge(_ found: Finding, _ anchored: [UInt8]) {
    manifest = found.manifest
    let isMissing = anchored.isEmpty && anchor.state == nil
    if let manifest { anchor.take(anchored, manifest.anchorKey) }
    distrust = reasonForDistrust(found, isMissing: isMissing)
    guard distrust == nil, let manifest, keys.format >= .two else { return }
    anchor(manifest)
    let device = directory.machine.device(manifest.anchorKey)
    guard !manifest.devices.contains(device) else { return }
    if isMissing, firstUse == nil { firstUse = manifest.changed }
    guard anchorError == nil else { return }
    // A vault that can't be written does not learn of the device.
    try? register(device)
  }

  private func reasonForDistrust(_ found: Finding, isMissing: Bool) -> String? {
    guard let manifest = found.manifest else { return "its manifest is damaged" }
    if keys.format >= .two {
      if let reason = manifest.reasonForDistrust(found.digests) { return reason }
      guard !isMissing || !manifest.devices.contains(directory.machine.device(manifest.anchorKey)) else {
        return
          "this device has used it before, but \(anchor.path), which says how new it has to be, is missing"
      }
    }
    guard !anchor.isDamaged else { return "its anchor \(anchor.path) is damaged" }
    guard manifest.generation >= anchor.generation else {
      return "it is older than what this device has seen: it was put back from a copy"
    }
    guard found.isWhole else {
      return "items were deleted, doubled or put back by another program than Keyhole"
        + (areRulesMissing ? ", and the rules for programs are missing" : "")
    }
    return areRulesMissing ? "the rules for programs are damaged" : nil
  }

  private func anchor(_ manifest: Manifest) {
    do {
      // Its writer may have been killed before it was on the disk; the anchor must never lead.
      if manifest.generation > anchor.generation { try directory.synchronizeLog() }
      advanceAnchor(manifest)
    } catch {
      anchorError = error
    }
  }

  /// Lists this device as one that has an anchor: from now on a missing one is found.
  private func register(_ device: [UInt8]) throws(StoreError) {
    let manifest = try connection.write { database in
      var manifest = try trustedManifest(database)
      guard manifest.devices.count < Manifest.mostDevices else { return manifest }
      manifest.add(device: device)
      _ = try manifest.advance()
      try manifest.store(database, keys)
      return manifest
    }
    advanceAnchor(manifest)
  }

  func advanceAnchor(_ manifest: Manifest) {
    self.manifest = manifest
    do {
      try anchor.advance(to: manifest.state, manifest.anchorKey)
      anchorError = nil
    } catch {
      // The change itself is stored; an anchor that lags finds out less, and nothing wrong.
      anchorError = error
    }
  }

  /// The manifest to write on from, inside a write transaction, compared with the slots and class keys.
  func trustedManifest(_ database: Database) throws -> Manifest {
    let manifest = try presentManifest(database)
    try requireTrust(manifest, Manifest.Digests(database, keys))
    return manifest
  }

  /// The manifest inside a write transaction, before it is compared with the slots and class keys.
  func presentManifest(_ database: Database) throws -> Manifest {
    if let reason = readOnlyReason { throw StoreError.readOnly(reason: reason) }
    guard let manifest = try Manifest.fetchIfWhole(database, keys) else {
      throw StoreError.readOnly(reason: "the vault's manifest is damaged")
    }
    guard manifest.generation >= anchor.generation else {
      throw StoreError.readOnly(reason: "the vault is older than what this process has seen")
    }
    return manifest
  }

  /// - Throws: `readOnly` where the slots or class keys are not those that the manifest was stored with.
  func requireTrust(_ manifest: Manifest, _ digests: Manifest.Digests) throws(StoreError) {
    guard let reason = manifest.reasonForDistrust(digests) else { return }
    throw .readOnly(reason: "the vault can only be read: \(reason)")
  }

  /// Why nothing can be written; nil: everything can.
  var readOnlyReason: String? {
    if let distrust { return "the vault can only be read: \(distrust)" }
    guard keys.format < .two else { return nil }
    return "the vault is of Keyhole 0.1 and can only be read: `keyhole upgrade` brings it to this version"
  }
}

// MARK: - Accepting

extension Session {
  /// The vault as it is, and what this device last saw.
  func comparison() throws(StoreError) -> VaultComparison {
    try judgeIfTouched()
    let (scan, found) = try connection.read { database in
      (try items(database).scan(), try Manifest.fetchIfWhole(database, keys))
    }
    let present = VaultState(
      generation: found?.generation ?? scan.lastRevision, changed: found?.changed ?? Timestamp(seconds: 0),
      items: scan.count)
    return VaultComparison(
      present: present, lastSeen: anchor.isDamaged ? nil : anchor.state, reason: distrust)
  }

  /// Makes a manifest that fits what is there, newer than everything that was.
  ///
  /// Of slots that are not those that were stored, only the one that opened the vault stays: another one could be an
  /// attacker's, and a new master key would be sealed to it.
  func accept() throws(StoreError) {
    guard keys.format >= .two else {
      throw .unsupported(reason: "the vault is of Keyhole 0.1: `keyhole upgrade --accept` takes it as it is")
    }
    try judgeIfTouched()
    let isReadable =
      (try? connection.read { try DigestTable(database: $0, keys: keys).isReadable() }) ?? false
    let manifest = try connection.write { database in
      let scan = try self.items(database).scan()
      let old = try Manifest.fetchIfWhole(database, self.keys)
      try dropUnknownSlots(database, old)
      var manifest = old ?? Manifest()
      manifest.generation = max(anchor.generation, manifest.generation, scan.lastRevision)
      if old == nil { manifest.keysSince = 0 }
      _ = try manifest.advance()
      manifest.add(device: directory.machine.device(manifest.anchorKey))
      manifest.count = try items(database).rebuild(replacingTable: !isReadable)
      manifest.hasRules = scan.items.contains { $0.identity == .rules }
      if !isReadable { try Schema.replaceTable("digest", database) }
      try DigestTable(database: database, keys: keys).rebuild(&manifest)
      try manifest.store(database, keys)
      return manifest
    }
    if !isReadable { connection.dropUnusedPages() }
    let before = (distrust, firstUse)
    (distrust, firstUse, areRulesMissing) = (nil, nil, false)
    advanceAnchor(manifest)
    // Without its anchor the vault would be distrusted again the next time that it is opened.
    if let anchorError {
      (distrust, firstUse) = before
      throw anchorError
    }
    (untold, known) = (nil, nil)
  }

  private func dropUnknownSlots(_ database: Database, _ manifest: Manifest?) throws {
    let slots = try KeySlot.fetchAll(database, keys.format)
    guard manifest?.slots != keys.digest(of: KeySlot.fields(of: slots)) else { return }
    try KeySlot.replaceAll(with: slots.filter { $0.id == slot }, database, keys.format)
  }
}

// MARK: - Restored backups

extension Session {
  /// Items of other devices only of which the vault has no secret.
  func itemsLeftOut() throws(StoreError) -> [ItemID] {
    guard keys.format >= .two else { return [] }
    return try connection.read { database in
      let secrets = secrets(database)
      return try items(database).scan().items.filter { item in
        guard item.accessibility.isBoundToDevice, let key = ItemKey(item.id) else { return false }
        return try !secrets.hasSecret(key)
      }.map(\.id)
    }
  }
}

// MARK: - Problems

extension Session {
  var trust: KeychainTrust {
    if let problem = distrustProblem { return .distrusted(problem) }
    return firstUse.map { .firstUse(lastChange: $0) } ?? .trusted
  }

  private var distrustProblem: Problem? {
    distrust.map {
      Problem(
        subject: directory.database, reason: "it can only be read: \($0)",
        remedy:
          "put back the newest copy, or take the vault as it is: `keyhole accept` shows both and asks"
      )
    }
  }

  func problems() -> [Problem] {
    var problems = damaged.map { key in
      Problem(
        subject: "item \(key.text)", reason: "its entry in the vault is damaged",
        remedy:
          "put back a copy of the vault; without one, `keyhole export -o FILE` saves all others: move the vault away, "
          + "and `keyhole import FILE`")
    }
    if let distrustProblem { problems.append(distrustProblem) }
    if keys.format < .two {
      problems.append(
        Problem(
          subject: directory.database, reason: "it is of Keyhole 0.1 and can only be read",
          remedy: "`keyhole upgrade` brings it to this version and keeps a copy"))
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
