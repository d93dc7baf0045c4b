public import Model
public import SecretMemory

extension KeychainStore {
  /// Puts a new item into the keychain; the id is the engine's to give.
  ///
  /// `origin`, here and below: `indirect` for a change that no call of the mount has made.
  /// - Throws: `exists`, `locked`, `readOnly`, `noSpace`, `tooLarge`.
  @discardableResult
  public nonisolated func add(
    _ item: Item, secret: borrowing SecretBytes, _ permit: Permit? = nil, origin: Change.Origin = .local
  ) throws(StoreError) -> Item {
    var item = item
    item.otpauth = nil
    let none: SecretBytes
    do { none = try SecretBytes() } catch { throw .outOfMemory }
    return try add(item, secret: secret, otpauth: none, permit, origin: origin)
  }

  /// The same for an item that has an `otpauth:` URI, as `item.otpauth` says. - Throws: `invalidValue` for what is none.
  @discardableResult
  public nonisolated func add(
    _ item: Item, secret: borrowing SecretBytes, otpauth: borrowing SecretBytes, _ permit: Permit? = nil,
    origin: Change.Origin = .local
  ) throws(StoreError) -> Item {
    if item.otpauth != nil { try KeyURI.check(otpauth) }
    try loadUnlessLookedUp()
    try checkRoom(for: item)
    let engine = try engine(for: permit)
    noteUse()
    defer { wipeStack() }
    return try change { () throws(StoreError) in
      guard item.otpauth != nil else { return try engine.add(item, secret: secret) }
      return try engine.requireOtpauthURIs().add(item, secret: secret, otpauth: otpauth)
    } note: { store, added in
      store.note(added, kind: .created, origin: origin)
    }
  }

  /// Changes an item's secret, and whatever else `body` changes of it, in one step. What protects it changes only with a
  /// permit for that.
  ///
  /// - Throws: what `body` throws; `notFound`, `accessDenied`, `readOnly`, `noSpace`, `damaged`.
  @discardableResult
  public nonisolated func rewrite(
    _ item: ItemID, readingSecret: Bool, _ permit: Permit? = nil, origin: Change.Origin = .local,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    let present = try found(item)
    try checkAccess(to: present, permit)
    let (classes, guarding, engine) = (StorableClasses(engine), try guarding(permit), try engine(for: permit))
    noteUse()
    defer { wipeStack() }
    return try change { () throws(StoreError) in
      try engine.rewrite(item, readingSecret: readingSecret) { (item, secret) throws(StoreError) in
        let before = item
        try body(&item, &secret)
        try classes.check(item)
        try guarding.check(before, item)
      }
    } note: { store, written in
      store.note(written, kind: .modified, since: present, origin: origin)
    }
  }

  /// Changes attributes or identities of items, all or nothing. What protects an item changes only with its permit.
  ///
  /// - Throws: what `body` throws; `notFound`, `locked`, `exists`, `readOnly`, `noSpace`.
  public nonisolated func update(
    _ items: [ItemID], _ permit: Permit? = nil, origin: Change.Origin = .local,
    _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) {
    let present = try items.map { (id) throws(StoreError) in try item(id) }.compactMap { $0 }
    guard present.allSatisfy(engine.locking.isAccessible) else { throw .locked }
    try permit?.requireUnchangedCaller()
    if try updateFollowed(present, origin, body) { return }
    let (classes, guarding, engine) = (StorableClasses(engine), try guarding(permit), try engine(for: permit))
    _ = try change { () throws(StoreError) in
      try engine.update(items) { (item) throws(StoreError) in
        let before = item
        try body(&item)
        try classes.check(item)
        try guarding.check(before, item)
      }
    } note: { store, updated in
      let known = Dictionary(present.map { ($0.id, $0) }) { first, _ in first }
      for item in updated { store.note(item, kind: .attributes, since: known[item.id], origin: origin) }
    }
  }

  /// Gives an item another password of its own. `permit` has the present one, `new` was given for one to be chosen.
  ///
  /// - Throws: `accessDenied`, `locked`, `notFound`, `readOnly`, `noSpace`.
  public nonisolated func changePassword(
    of item: ItemID, _ permit: Permit, to new: Permit
  ) throws(StoreError) {
    try checkAccess(to: item, permit)
    guard let present = permit.password, let password = new.password else {
      throw .accessDenied(reason: "the item's present password and a new one are needed")
    }
    let passwords = try (present.engine ?? engine).requirePasswords()
    noteUse()
    defer { wipeStack() }
    // Nothing of it shows.
    try change { () throws(StoreError) in
      try passwords.changePassword(of: item, from: present, to: password)
    } note: { _, _ in
    }
  }

  /// Deletes items with their secrets, all or none.
  public nonisolated func remove(_ items: [ItemID], origin: Change.Origin = .local) throws(StoreError) {
    try loadUnlessLookedUp()
    let unread =
      lookup == nil ? [] : try items.map { (id) throws(StoreError) in try item(id) }.compactMap { $0 }
    try change { () throws(StoreError) in
      try engine.remove(items)
    } note: { store, _ in
      let known = Dictionary(unread.map { ($0.id, $0) }) { first, _ in first }
      for id in items { store.noteRemoval(of: id, known[id], origin: origin) }
    }
  }
}
