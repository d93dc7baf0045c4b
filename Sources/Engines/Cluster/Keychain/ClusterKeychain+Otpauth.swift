import ClusterRecords
package import Model
package import SecretMemory
package import Store
import VaultRecords

extension ClusterKeychain: OtpauthKeychain {
  /// The keychain itself.
  package var otpauthURIs: (any OtpauthKeychain)? { self }

  package func otpauth(of item: ItemID) throws(StoreError) -> SecretBytes {
    try secret(of: item, part: ItemRecord.FurtherSecret.otpauth)
  }

  package func rewriteOtpauth(
    of item: ItemID, readingSecret: Bool,
    _ body: (inout FurtherSecret?, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try change { present throws(StoreError) in
      guard let id = ItemKey(item), let old = present.entries[id] else { throw .notFound }
      let stored = old.record.item.otpauth
      var secret = try self.secret(
        of: item, part: ItemRecord.FurtherSecret.otpauth, isNeeded: readingSecret && stored != nil)
      let unchanged = try Self.copy(secret)
      var further = stored
      try body(&further, &secret)
      let isSame = further?.modified == stored?.modified && secret == unchanged
      if further == nil, stored == nil { return (ItemsPlan(), old.record.item) }
      if readingSecret, isSame, further != nil { return (ItemsPlan(), old.record.item) }
      // A counter is no version: an older one would have its codes given out again.
      let isCounted = readingSecret && KeyURI.areSameButForCounter(unchanged.span, secret.span)
      var writing = ItemWriting(id, old, old, on: present, session)
      if let further { try writing.putOtpauth(secret, further) } else { writing.removeOtpauth() }
      return (try writing.plan(isCounted ? nil : .otpauth, retention), writing.entry.record.item)
    }
  }
}
