public import Model
public import SecretMemory

extension KeychainStore {
  /// An item's `otpauth:` URI, given under the conditions of its secret.
  ///
  /// - Throws: `notFound`, also for an item that has none; as `secret`.
  public nonisolated func otpauth(of item: Item, _ permit: Permit? = nil) throws(StoreError) -> SecretBytes {
    try checkAccess(to: item, permit, .otpauth)
    guard item.otpauth != nil else { throw .notFound }
    noteUse()
    defer { wipeStack() }
    return try engine(for: permit).requireOtpauthURIs().otpauth(of: item.id)
  }

  /// Gives an item another `otpauth:` URI, or its first, or takes it away, in one step: `OtpauthKeychain.rewriteOtpauth`.
  ///
  /// Taking it away needs no permit, as removing the item does not.
  /// - Throws: what `body` throws; `invalidValue` for what is no such URI; `unsupported` for a keychain that holds none;
  ///   `notFound`, `accessDenied`, `locked`, `readOnly`, `noSpace`, `damaged`.
  @discardableResult
  public nonisolated func rewriteOtpauth(
    of item: ItemID, readingSecret: Bool, _ permit: Permit? = nil,
    _ body: (inout FurtherSecret?, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    let present = try found(item)
    try checkAccess(to: present, permit, .otpauth)
    let uris = try engine(for: permit).requireOtpauthURIs()
    noteUse()
    defer { wipeStack() }
    return try change { () throws(StoreError) in
      try uris.rewriteOtpauth(of: item, readingSecret: readingSecret) {
        (further, secret) throws(StoreError) in
        try body(&further, &secret)
        if further != nil { try KeyURI.check(secret) }
      }
    } note: { store, written in
      store.note(written, kind: .attributes, since: present)
    }
  }

  /// Takes an item's `otpauth:` URI away; the item stays. As for an item, no question is asked.
  ///
  /// - Throws: `notFound`, also for an item that has none; `readOnly`, `noSpace`.
  public nonisolated func removeOtpauth(of item: ItemID) throws(StoreError) {
    let present = try found(item)
    guard present.otpauth != nil else { throw .notFound }
    let uris = try engine.requireOtpauthURIs()
    _ = try change { () throws(StoreError) in
      try uris.rewriteOtpauth(of: item, readingSecret: false) { further, _ in further = nil }
    } note: { store, written in
      store.note(written, kind: .attributes, since: present)
    }
  }
}

extension KeyURI {
  /// - Throws: `invalidValue` for what is no `otpauth:` URI.
  public static func check(_ secret: borrowing SecretBytes) throws(StoreError) {
    try check(secret.span)
  }
}
