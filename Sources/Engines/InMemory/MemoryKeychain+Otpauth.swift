public import Model
public import SecretMemory
public import Store

extension MemoryKeychain: OtpauthKeychain {
  /// nil where the initialiser got `holdsOtpauth: false`.
  public var otpauthURIs: (any OtpauthKeychain)? { holdsOtpauth ? self : nil }

  /// A copy of the URI. - Throws: `notFound`, `locked`, `rejected`.
  public func otpauth(of item: ItemID) throws(StoreError) -> SecretBytes {
    try attempt { state throws(StoreError) in
      guard let entry = state.entries[item], let otpauth = entry.otpauth else { throw .notFound }
      guard state.lock == .open || entry.item.accessibility.survivesLock else { throw .locked }
      try check(entry)
      return try copy(otpauth.secret)
    }
  }

  /// Adds the item with both secrets. - Throws: as `add(_:secret:)`.
  public func add(
    _ item: Item, secret: borrowing SecretBytes, otpauth: borrowing SecretBytes
  ) throws(StoreError) -> Item {
    let added = try add(item, secret: secret)
    guard let further = item.otpauth else { return added }
    let new = Entry.Box(try copy(otpauth))
    do throws(StoreError) {
      return try rewriteOtpauth(of: added.id, readingSecret: false) { present, secret throws(StoreError) in
        present = further
        secret = try copy(new.secret)
      }
    } catch {
      try remove([added.id])
      throw error
    }
  }

  /// Changes the URI alone. - Throws: as `rewrite`.
  public func rewriteOtpauth(
    of item: ItemID, readingSecret: Bool,
    _ body: (inout FurtherSecret?, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    return try attempt { state throws(StoreError) in
      guard let entry = state.entries[item] else { throw .notFound }
      var changed = entry.item
      let present = try readingSecret ? openOtpauth(entry) : nil
      var secret = try Self.empty()
      if let present { secret = try copy(present.secret) }
      try body(&changed.otpauth, &secret)
      try checkSize(secret)
      if changed.otpauth == nil, entry.otpauth == nil { return entry.item }
      changed.otpauth?.size = secret.count
      if let present, changed == entry.item, secret == present.secret { return entry.item }
      if changed.otpauth != nil { try check(entry) }
      let stored = Entry(changed, entry, otpauth: changed.otpauth == nil ? nil : Entry.Box(secret))
      try change(state) { draft throws(StoreError) in draft[item] = stored }
      return changed
    }
  }
}
