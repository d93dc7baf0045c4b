public import Model
public import SecretMemory

extension KeychainStore {
  /// Whether `apply` makes all its changes in one transaction.
  public nonisolated var isTransactional: Bool { engine.batches != nil }

  /// Adds items and replaces others, all or none. `permits`: for items that ask before they are changed; those with a
  /// password of their own are not changed so.
  ///
  /// - Throws: `unsupported` where `isTransactional` is false; what `secret` throws; `exists`, `notFound`,
  ///   `accessDenied`, `locked`, `readOnly`, `noSpace`, `tooLarge`; `unreachable`: see `finishBatches`.
  public nonisolated func apply(
    _ changes: [ItemChange], _ permits: [ItemID: Permit] = [:],
    secret: (Int) throws(StoreError) -> SecretBytes
  ) throws(StoreError) {
    try apply(checked(changes, permits), origin: .local, secret: secret)
  }

  /// Makes changes that were checked. All are published when the index has them all.
  nonisolated func apply(
    _ checked: [ItemChange], origin: Change.Origin, secret: (Int) throws(StoreError) -> SecretBytes
  ) throws(StoreError) {
    let batches = try engine.requireBatches()
    let removed = checked.compactMap { if case .remove(let id) = $0 { id } else { nil } }
    noteUse()
    defer { wipeStack() }
    _ = try change { () throws(StoreError) in
      try batches.apply(checked) { index throws(StoreError) in
        let content = try secret(index)
        if case .setOtpauth = checked[index] { try KeyURI.check(content) }
        return content
      }
    } note: { store, items in
      // Of an item with several changes, the last one is what it is now.
      let last = Dictionary(items.map { ($0.id, $0) }) { _, last in last }
      store.note(Array(last.values), removed: removed, origin: origin)
    }
  }

  /// The same for another process, whose secrets are in a spool. No other caller of the store waits for it.
  public nonisolated func apply(
    _ changes: [ItemChange], _ permits: [ItemID: Permit], from spool: any SecretSpool,
    progress: () throws(StoreError) -> Void
  ) throws(StoreError) {
    let spooling = try engine.requireSpooling()
    let checked = try checked(changes, permits, allowingDocuments: true)
    noteUse()
    defer { wipeStack() }
    _ = try spooling.apply(checked, from: spool, progress: progress)
    // A failed refresh is no error: the items are stored.
    try? refresh()
  }

  /// Keeps the secrets of a batch that comes from another process.
  public nonisolated func makeSpool() throws(StoreError) -> any SecretSpool {
    try engine.requireSpooling().makeSpool()
  }

  /// Returns when it is known whether the batches of processes that have ended were applied, and what is stored.
  ///
  /// - Throws: `locked`, `unreachable`.
  public nonisolated func finishBatches() throws(StoreError) {
    try remote?.finishBatches()
    try load()
    try refresh()
  }

  /// The changes, each refused where it may not be made. Sealed documents are changed by their own calls only, and by those of
  /// another process.
  nonisolated func checked(
    _ changes: [ItemChange], _ permits: [ItemID: Permit], allowingDocuments: Bool = false
  ) throws(StoreError) -> [ItemChange] {
    try load()
    let classes = StorableClasses(engine)
    var guarding = try guarding(nil)
    var checked: [ItemChange] = []
    checked.reserveCapacity(changes.count)
    for change in changes {
      switch change {
      case .add(let item):
        if !allowingDocuments || !item.identity.isDocument { try classes.check(item) }
        checked.append(change)
      case .rewrite(let id, let body):
        if allowingDocuments, try isDocument(id) {
          checked.append(change)
          continue
        }
        try checkAccess(to: id, permits[id])
        guarding.permit = permits[id]
        checked.append(.checked(id, body, classes, guarding))
      case .update(let id, let body): checked.append(.checkedUpdate(id, body, classes, guarding))
      case .remove: checked.append(change)
      case .setOtpauth(let identity, _):
        for item in try read({ $0[identity] }) { try checkAccess(to: item, permits[item.id], .otpauth) }
        checked.append(change)
      }
    }
    return checked
  }
}

extension ItemChange {
  /// A rewrite that fails where the changed item could not be stored, or is less protected without a permit for that.
  fileprivate static func checked(
    _ id: ItemID, _ body: @escaping (inout Item) throws(StoreError) -> Void, _ classes: StorableClasses,
    _ guarding: KeptProtection
  ) -> ItemChange {
    .rewrite(id) { (item) throws(StoreError) in try check(&item, body, classes, guarding) }
  }

  /// The same of a change that concerns no secret.
  static func checkedUpdate(
    _ id: ItemID, _ body: @escaping (inout Item) throws(StoreError) -> Void, _ classes: StorableClasses,
    _ guarding: KeptProtection
  ) -> ItemChange {
    .update(id) { (item) throws(StoreError) in try check(&item, body, classes, guarding) }
  }

  private static func check(
    _ item: inout Item, _ body: (inout Item) throws(StoreError) -> Void, _ classes: StorableClasses,
    _ guarding: KeptProtection
  ) throws(StoreError) {
    let before = item
    try body(&item)
    try classes.check(item)
    try guarding.check(before, item)
  }
}
