public import Model
public import SecretMemory

extension KeychainStore {
  /// Lends an item's `otpauth:` URI to compute a code from it. A permit for the code is enough, so no more than the code may
  /// leave `body`.
  ///
  /// - Throws: what `body` throws; as `otpauth`.
  public nonisolated func withOtpauth<Value: ~Copyable>(
    of item: Item, forCode permit: Permit?, _ body: (borrowing SecretBytes) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    try checkAccess(to: item, permit, .code)
    guard item.otpauth != nil else { throw .notFound }
    noteUse()
    defer { wipeStack() }
    return try body(engine(for: permit).requireOtpauthURIs().otpauth(of: item.id))
  }

  /// The keychain in whose process the codes of items with this permit are computed; nil: in this one.
  ///
  /// - Throws: `unsupported` for a keychain without passwords, where the permit has one.
  public nonisolated func oneTimeCodes(
    for permit: Permit?
  ) throws(StoreError) -> (any OneTimeCodeKeychain)? {
    try engine(for: permit).oneTimeCodes
  }

  /// Has an item's `otpauth:` URI changed while a code is computed from it, in one transaction: the code of a counter is
  /// given out once.
  ///
  /// - Throws: what `body` throws; as `rewriteOtpauth`.
  public nonisolated func updateOtpauth(
    of item: Item, forCode permit: Permit?, _ body: (inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) {
    try checkAccess(to: item, permit, .code)
    let uris = try engine(for: permit).requireOtpauthURIs()
    noteUse()
    defer { wipeStack() }
    _ = try change { () throws(StoreError) in
      try uris.rewriteOtpauth(of: item.id, readingSecret: true) { (further, secret) throws(StoreError) in
        guard further != nil else { throw .notFound }
        try body(&secret)
        try KeyURI.check(secret)
        further = FurtherSecret(modified: .now)
      }
    } note: { store, written in
      store.note(written, kind: .attributes, since: item)
    }
  }

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
