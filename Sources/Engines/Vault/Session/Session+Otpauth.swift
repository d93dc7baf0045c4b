import Crypto
import GRDB
import Model
import SecretMemory
import Store
import VaultDatabase
import VaultRecords

// The second secret of an item. All that is sealed with the main one's class key and rules is so with this one.
extension Session {
  func otpauth(of id: ItemID) throws(StoreError) -> SecretBytes {
    if id.version != nil {
      let version = try sealedSecret(ofVersion: id, part: ItemRecord.FurtherSecret.otpauth)
      guard let (sealed, classKey) = version else { throw .notFound }
      do { return try sealed.open(under: classKey, nil) } catch { throw StoreError(vault: error, errno: 0) }
    }
    guard let key = ItemKey(id) else { throw .notFound }
    var secret: SecretBytes?
    try read(key) { database in
      guard let sealed = try sealedOtpauth(key, database) else { return }
      secret = try secrets(database).open(sealed)
    }
    guard let secret else { throw .notFound }
    return secret
  }

  /// As it is sealed, and its class key: to be opened where nothing waits for it. nil: there is none.
  func sealedOtpauth(of id: ItemID) throws(StoreError) -> (SealedSecret, SymmetricKey)? {
    if id.version != nil {
      return try sealedSecret(ofVersion: id, part: ItemRecord.FurtherSecret.otpauth)
    }
    guard let key = ItemKey(id) else { return nil }
    return try read(key) { database in
      try sealedOtpauth(key, database).map { ($0, try secrets(database).classKey(of: $0)) }
    }
  }

  private func sealedOtpauth(_ key: ItemKey, _ database: Database) throws -> SealedSecret? {
    guard let row = try items(database).fetch(key), !row.record.item.identity.isRemoved,
      let place = row.record.placeOfOtpauth(key)
    else { return nil }
    // A backup leaves out all secrets of such an item.
    guard try !row.record.item.accessibility.isBoundToDevice || secrets(database).hasSecret(key) else {
      throw StoreError.stayedOnItsDevice
    }
    return try secrets(database).fetchSealed(place, row.record)
  }

  func rewriteOtpauth(
    of id: ItemID, readingSecret: Bool, _ password: PasswordSeal?,
    _ body: (inout FurtherSecret?, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try change(password) { secrets, manifest in
      let row = try fetch(id, secrets.database)
      var further = row.record.item.otpauth
      var present = try SecretBytes()
      if readingSecret, let place = row.record.placeOfOtpauth(row.key) {
        present = try secrets.open(secrets.fetchSealed(place, row.record))
      }
      var secret = try SecretBytes(copying: present)
      try body(&further, &secret)
      let isSame = further == row.record.item.otpauth && (readingSecret || further == nil)
      if isSame, secret == present { return row.record.item }
      // A counter is no version: an older one would have its codes given out again.
      let isCounted = readingSecret && KeyURI.areSameButForCounter(present.span, secret.span)
      return try setOtpauth(
        of: row, to: further, secret, secrets, &manifest, keepingVersion: !isCounted)
    }
  }

  /// `further`: nil where the item is to have none.
  func setOtpauth(
    of row: ItemTable.Row, to further: FurtherSecret?, _ secret: borrowing SecretBytes,
    _ secrets: SecretTable, _ manifest: inout Manifest, keepingVersion: Bool = true
  ) throws -> Item {
    try checkSize(secret)
    // Both are sealed with one password.
    if further != nil, row.record.item.access.needsPassword { _ = try secrets.fetch(row.key, row.record) }
    let former = row.record.placeOfOtpauth(row.key)
    var new = row
    if keepingVersion { try keepVersion(of: row.record, in: &new, .otpauth, secrets, &manifest) }
    let revision = manifest.generation + 1
    new.record.setOtpauth(
      further.map { FurtherSecret(size: secret.count, modified: $0.modified) }, revision: revision)
    new.record.item.otpauth = nil
    try take(row, secrets.database, &manifest)
    let record = try put(new, secrets.database, &manifest)
    let hasVersions = !record.versions.isEmpty || !row.record.versions.isEmpty
    if let place = record.placeOfOtpauth(row.key) {
      try secrets.put(secret, place, record, former: hasVersions ? nil : former?.revision ?? revision)
    } else if let former, !hasVersions {
      try secrets.deleteNewest(former, from: former.revision)
    }
    if hasVersions { try deleteUnusedSecrets(row.key, record, secrets) }
    return record.item
  }
}

extension Optional {
  func orNotFound() throws(StoreError) -> Wrapped {
    guard let self else { throw .notFound }
    return self
  }
}
