import Crypto
public import Model
public import SecretMemory
public import Store
import VaultDatabase
import VaultRecords

extension VaultEngine: OtpauthKeychain {
  /// The vault itself: a row of its own holds the URI.
  public var otpauthURIs: (any OtpauthKeychain)? { self }

  /// Opens the URI with the keys of the item's class. - Throws: `notFound`, `locked`, `damaged`, `outOfMemory`.
  public func otpauth(of item: ItemID) throws(StoreError) -> SecretBytes {
    try withSession { session throws(StoreError) in try session.otpauth(of: item) }
  }

  /// Changes the URI in one transaction. - Throws: as the protocol.
  public func rewriteOtpauth(
    of item: ItemID, readingSecret: Bool,
    _ body: (inout FurtherSecret?, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try withSession { session throws(StoreError) in
      try session.rewriteOtpauth(of: item, readingSecret: readingSecret, nil, body)
    }
  }

  func sealedOtpauth(of item: ItemID) throws(StoreError) -> (SealedSecret, SymmetricKey)? {
    try withSession { session throws(StoreError) in try session.sealedOtpauth(of: item) }
  }
}

extension SecretBytes {
  /// No bytes at all. - Throws: `outOfMemory`.
  static func nothing() throws(StoreError) -> SecretBytes {
    do { return try SecretBytes() } catch { throw .outOfMemory }
  }
}
