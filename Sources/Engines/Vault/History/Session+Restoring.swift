import Model
import SecretMemory
import Store
import VaultDatabase
import VaultRecords

extension Session {
  /// Makes an item what a version of it says. `password`: of the version, where it has one.
  func restore(_ id: ItemID, _ password: PasswordSeal?) throws(StoreError) -> Item {
    guard let (item, number) = id.version, let key = ItemKey(item) else { throw .notFound }
    return try change(password) { secrets, manifest in
      let database = secrets.database
      guard let owner = try items(database).fetch(key), owner.record.versions.contains(number) else {
        throw StoreError.notFound
      }
      let version = StateOfItem(key: key, record: try versions(database).fetch(key, number))
      guard owner.record.item.identity.isRemoved else {
        return try restore(version, over: owner, secrets, &manifest)
      }
      let identity = try identity(ofRemoved: owner, versions(database))
      if let present = try items(database).fetch(identity) {
        return try restore(version, over: present, secrets, &manifest)
      }
      let isNewest = owner.record.versions.last == number
      let row = try bringBack(owner, identity, secrets, &manifest)
      // It is what was stored when it was removed.
      committed = row.revision
      return isNewest ? row.record.item : try restore(version, over: row, secrets, &manifest)
    }
  }

  private struct StateOfItem {
    var key: ItemKey
    var record: ItemRecord
  }

  /// Makes a removed item an item again, as it was when it was removed. No secret is opened.
  private func bringBack(
    _ removed: ItemTable.Row, _ identity: ItemIdentity, _ secrets: SecretTable, _ manifest: inout Manifest
  ) throws -> ItemTable.Row {
    guard let newest = removed.record.versions.last else { throw StoreError.notFound }
    let table = versions(secrets.database)
    var row = removed
    row.record = try table.fetch(removed.key, newest)
    row.record.replacement = nil
    row.record.versions = removed.record.versions.dropLast()
    try table.delete(removed.key, newest)
    try take(removed, secrets.database, &manifest)
    let record = try put(row, secrets.database, &manifest)
    try deleteUnusedSecrets(removed.key, record, secrets)
    try closeGap(removed.record.item.identity, secrets, &manifest)
    guard let stored = try items(secrets.database).fetch(removed.key) else { throw StoreError.notFound }
    return stored
  }

  /// A counter does not go back with the version: codes that were given out would be given out again.
  private func restore(
    _ version: StateOfItem, over present: ItemTable.Row, _ secrets: SecretTable, _ manifest: inout Manifest
  ) throws -> Item {
    if try isSame(version, as: present, secrets) { return present.record.item }
    let counted = try uriCountedFurther(present, than: version, secrets)
    let item = try restoreSecrets(of: version, over: present, secrets, &manifest)
    guard let counted else { return item }
    return try setOtpauth(
      of: fetch(item.id, secrets.database), to: FurtherSecret(modified: .now), counted.secret, secrets,
      &manifest,
      keepingVersion: false)
  }

  /// Whether an item is what it would be as a version has it: then it is not changed, which would make a further version.
  private func isSame(
    _ version: StateOfItem, as present: ItemTable.Row, _ secrets: SecretTable
  ) throws -> Bool {
    guard version.key == present.key else { return false }
    let item = present.record.item
    var restored = try item.restoring(version.record.item)
    guard (restored.otpauth == nil) == (item.otpauth == nil) else { return false }
    (restored.modified, restored.created, restored.otpauth) = (item.modified, item.created, item.otpauth)
    guard restored == item else { return false }
    let (former, places) = (version.record.places(version.key), present.record.places(present.key))
    guard former.count == places.count else { return false }
    for place in former where !places.contains(place) {
      guard let other = places.first(where: { $0.part == place.part }) else { return false }
      guard isSame(place, version.record, as: other, present.record, secrets) else { return false }
    }
    return true
  }

  /// false also where one of them can't be opened: a version is what a damaged secret is mended by.
  private func isSame(
    _ former: SecretPlace, _ version: ItemRecord, as place: SecretPlace, _ present: ItemRecord,
    _ secrets: SecretTable
  ) -> Bool {
    do {
      let then = try secrets.open(sealed(former, version, secrets))
      return try secrets.open(sealed(place, present, secrets)) == then
    } catch { return false }
  }

  /// The `otpauth:` URI of an item, if that of a version differs by a lower counter only; else nil.
  private func uriCountedFurther(
    _ present: ItemTable.Row, than version: StateOfItem, _ secrets: SecretTable
  ) throws -> OpenedPart? {
    guard let place = present.record.placeOfOtpauth(present.key),
      let former = version.record.placeOfOtpauth(version.key), place != former
    else { return nil }
    let now = OpenedPart(
      part: place.part, secret: try secrets.open(sealed(place, present.record, secrets)))
    let then = try secrets.open(sealed(former, version.record, secrets))
    return Self.isCountedFurther(now.secret, than: then) ? now : nil
  }

  private static func isCountedFurther(
    _ one: borrowing SecretBytes, than other: borrowing SecretBytes
  ) -> Bool {
    KeyURI.isCountedFurther(one.span, than: other.span)
  }

  private func restoreSecrets(
    of version: StateOfItem, over present: ItemTable.Row, _ secrets: SecretTable, _ manifest: inout Manifest
  ) throws -> Item {
    var new = present
    new.record.item = try present.record.item.restoring(version.record.item)
    new.record.item.modified = .now
    new.record.furtherSecrets = version.record.furtherSecrets
    let changes = present.record.changes(to: version.record)
    let (before, after) = (version.record.item, new.record.item)
    if version.key == present.key, before.hasSameAccess(as: after),
      after.hasSameAccess(as: present.record.item)
    {
      // Its secrets are sealed as the item's have to be.
      new.record.secretRevision = version.record.secretRevision
      try keepVersion(of: present.record, in: &new, changes, secrets, &manifest, isRestoring: true)
      try take(present, secrets.database, &manifest)
      let record = try put(new, secrets.database, &manifest)
      try deleteUnusedSecrets(present.key, record, secrets)
      return record.item
    }
    return try reseal(version, as: new, over: present, changes, secrets, &manifest)
  }

  /// Stores the secrets of a version as another item's, or under other rules.
  private func reseal(
    _ version: StateOfItem, as new: ItemTable.Row, over present: ItemTable.Row, _ changes: VersionChanges,
    _ secrets: SecretTable, _ manifest: inout Manifest
  ) throws -> Item {
    // The password that seals the item from now on has to be the one that it has.
    if present.record.item.access.needsPassword { _ = try secrets.fetch(present.key, present.record) }
    var new = new
    try keepVersion(of: present.record, in: &new, changes, secrets, &manifest, isRestoring: true)
    let revision = manifest.generation + 1
    for part in new.record.places(new.key).map(\.part) { new.record.setRevision(revision, ofPart: part) }
    var opened: [OpenedPart] = []
    for place in version.record.places(version.key) {
      let sealed = try self.sealed(place, version.record, secrets)
      opened.append(OpenedPart(part: place.part, secret: try secrets.open(sealed)))
    }
    try take(present, secrets.database, &manifest)
    let record = try put(new, secrets.database, &manifest)
    for part in opened {
      let place = SecretPlace(item: new.key, part: part.part, revision: revision)
      try secrets.put(part.secret, place, record, former: nil)
    }
    try strengthenVersions(new.key, record, secrets, secrets, otherPassword: false, &manifest)
    try deleteUnusedSecrets(new.key, record, secrets)
    return record.item
  }
}

/// A secret while it is sealed again.
private final class OpenedPart {
  let part: UInt8
  let secret: SecretBytes

  init(part: UInt8, secret: consuming SecretBytes) {
    self.part = part
    self.secret = secret
  }
}

extension ItemRecord {
  /// The secrets that are other ones in a version.
  fileprivate func changes(to version: ItemRecord) -> VersionChanges {
    var changes: VersionChanges = []
    if secretRevision != version.secretRevision { changes.insert(.value) }
    if furtherSecrets != version.furtherSecrets { changes.insert(.otpauth) }
    return changes
  }
}
