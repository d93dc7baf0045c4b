public import Model
public import SecretMemory
import Synchronization

/// The keychain: the only place in the process where its items change.
///
/// Names, sizes and attributes come from an index in memory; every change goes through the actor. The index
/// is filled at the first call that needs it. An engine in another process may hang, so its calls are made
/// outside, each on its caller's thread, and what came of them is fetched from it inside.
public actor KeychainStore {
  /// The keychain behind the store. A change made through it directly reaches neither index nor feed at once.
  public nonisolated let engine: any KeychainEngine
  /// Publishes each change of an item, and of the lock, after the index has it.
  public nonisolated let feed: ChangeFeed
  /// nil: this process can't ask a person, and items that demand it are refused.
  public nonisolated let controller: AccessController?
  private nonisolated let remote: (any RemoteKeychainEngine)?
  private nonisolated let executor = QueueExecutor(label: "keyhole.keychain")
  /// How many changes are under way.
  private nonisolated let changes = Atomic(0)
  private nonisolated let index = Mutex<KeychainIndex?>(nil)
  /// When a secret was used last, or the keychain unlocked.
  private nonisolated let lastUse = Atomic<UInt64>(AccessController.bootTime())
  /// The last reported lock of a remote keychain; nil while that is changed from here.
  private nonisolated let knownLock = Mutex<KeychainLock?>(nil)

  /// - Parameters:
  ///   - engine: the keychain; its items are read with the first call that needs them.
  ///   - feed: where changes are published.
  ///   - controller: asks the user where flags or rules demand it; nil: such accesses are refused.
  public init(
    engine: any KeychainEngine, feed: ChangeFeed = ChangeFeed(), controller: AccessController? = nil
  ) {
    self.controller = controller
    self.engine = engine
    self.feed = feed
    remote = engine as? any RemoteKeychainEngine
  }

  /// A serial queue of the store's own, because engines block while they read and write.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Lends the index of all items; `body` must be short, and must not call the store.
  ///
  /// - Throws: what reading the keychain for the first time throws.
  public nonisolated func read<Value>(
    _ body: (KeychainIndex) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    try load()
    return try index.withLock { index throws(StoreError) in
      guard let index else { throw .unreachable(reason: "the keychain is not loaded") }
      return try body(index)
    }
  }

  /// Reads every item now, so that the first use need not wait.
  public nonisolated func load() throws(StoreError) {
    guard !isLoaded else { return }
    if remote != nil {
      knownLock.withLock { $0 = $0 ?? engine.lockState }
      let items = try engine.items()
      executor.run { index.withLock { if $0 == nil { $0 = KeychainIndex(items) } } }
      knownLock.withLock { $0 = engine.lockState }
    } else {
      try executor.run { () throws(StoreError) in
        guard !isLoaded else { return }
        let items = try engine.items()
        index.withLock { $0 = KeychainIndex(items) }
      }
    }
  }

  /// For how long no secret was read or changed, in seconds on a clock that can't be set and that counts suspend.
  public nonisolated var idleSeconds: UInt64 {
    let last = lastUse.load(ordering: .relaxed)
    // Another thread may use a secret between the two.
    return max(AccessController.bootTime(), last) - last
  }

  nonisolated func noteUse() {
    lastUse.store(AccessController.bootTime(), ordering: .relaxed)
  }

  /// Whether names, sizes and attributes are in memory.
  public nonisolated var isLoaded: Bool { index.withLock { $0 != nil } }

  /// Whether secrets and changes come from another process, which may hang: then only threads that may wait
  /// some seconds should ask for them.
  public nonisolated var mayBlock: Bool { remote != nil }

  /// Whether an item is being changed. It may wait for another process's transaction, and readers of a secret wait with it.
  public nonisolated var isChanging: Bool { changes.load(ordering: .relaxed) > 0 }

  /// Looks for what other processes changed, and publishes it.
  public nonisolated func refresh() throws(StoreError) {
    if let remote { return takeNews(of: remote) }
    try executor.run { () throws(StoreError) in
      guard index.withLock({ $0 != nil }), let items = try engine.refresh() else { return }
      assumeIsolated { $0.replaceAll(with: items) }
    }
  }

  /// An item's secret, given only under the conditions that the item states.
  ///
  /// - Throws: `notFound`, `accessDenied` without the permit that it takes, `locked`, `damaged`, `unreachable`,
  ///   `outOfMemory`.
  public nonisolated func secret(of item: ItemID, _ permit: Permit? = nil) throws(StoreError) -> SecretBytes {
    try secret(of: found(item), permit)
  }

  /// The secret of an item as `read` gave it just now.
  public nonisolated func secret(of item: Item, _ permit: Permit? = nil) throws(StoreError) -> SecretBytes {
    try checkAccess(to: item, permit)
    noteUse()
    defer { wipeStack() }
    return try engine(for: permit).secret(of: item.id)
  }

  /// Whether the item's secret would be given now, without giving it.
  ///
  /// - Throws: `notFound`, `accessDenied`, `locked`.
  public nonisolated func checkAccess(to item: ItemID, _ permit: Permit? = nil) throws(StoreError) {
    try checkAccess(to: found(item), permit)
  }

  /// Whether the secret of an item as `read` gave it just now would be given.
  public nonisolated func checkAccess(
    to item: Item, _ permit: Permit? = nil, _ secrets: ItemSecrets = .value
  ) throws(StoreError) {
    guard engine.isAccessible(item) else { throw .locked }
    guard try isGuarded(item) else { return }
    guard let permit, permit.item == item.id, permit.secrets.isSuperset(of: secrets) else {
      throw .accessDenied(reason: "a person or a rule has to permit it first")
    }
    try permit.requireUnchangedCaller()
  }

  nonisolated func found(_ id: ItemID) throws(StoreError) -> Item {
    guard let item = try read({ $0[id] }) else { throw .notFound }
    return item
  }

  /// Whether the keychain could be changed at this moment. - Throws: `readOnly`, `unreachable`, `system`.
  public nonisolated func requireWritable() throws(StoreError) {
    do throws(StoreError) {
      try engine.requireWritable()
    } catch {
      lookAgain(after: error)
      throw error
    }
  }

  /// A keychain whose file was replaced is opened again, for the next call.
  private nonisolated func lookAgain(after error: StoreError) {
    guard case .unreachable = error, remote == nil else { return }
    try? refresh()
  }

  nonisolated func engine(for permit: Permit?) throws(StoreError) -> any KeychainEngine {
    guard let password = permit?.password else { return engine }
    if let engine = password.engine { return engine }
    return try engine.using(password)
  }

  /// Puts a new item into the keychain; the id is the engine's to give.
  ///
  /// - Throws: `exists`, `locked`, `readOnly`, `noSpace`, `tooLarge`.
  @discardableResult
  public nonisolated func add(
    _ item: Item, secret: borrowing SecretBytes, _ permit: Permit? = nil
  ) throws(StoreError) -> Item {
    var item = item
    item.otpauth = nil
    let none: SecretBytes
    do { none = try SecretBytes() } catch { throw .outOfMemory }
    return try add(item, secret: secret, otpauth: none, permit)
  }

  /// The same for an item that has an `otpauth:` URI, as `item.otpauth` says. - Throws: `invalidValue` for what is none.
  @discardableResult
  public nonisolated func add(
    _ item: Item, secret: borrowing SecretBytes, otpauth: borrowing SecretBytes, _ permit: Permit? = nil
  ) throws(StoreError) -> Item {
    if item.otpauth != nil { try KeyURI.check(otpauth) }
    try load()
    try checkRoom(for: item)
    let engine = try engine(for: permit)
    noteUse()
    defer { wipeStack() }
    return try change { () throws(StoreError) in
      try engine.add(item, secret: secret, otpauth: otpauth)
    } note: { store, added in
      store.note(added, kind: .created)
    }
  }

  /// Changes an item's secret, and whatever else `body` changes of it, in one step. What protects it changes only with a
  /// permit for that.
  ///
  /// - Throws: what `body` throws; `notFound`, `accessDenied`, `readOnly`, `noSpace`, `damaged`.
  @discardableResult
  public nonisolated func rewrite(
    _ item: ItemID, readingSecret: Bool, _ permit: Permit? = nil,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try checkAccess(to: item, permit)
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
      store.note(written, kind: .modified)
    }
  }

  /// Changes attributes or identities of items, all or nothing. What protects an item changes only with its permit.
  ///
  /// - Throws: what `body` throws; `notFound`, `locked`, `exists`, `readOnly`, `noSpace`.
  public nonisolated func update(
    _ items: [ItemID], _ permit: Permit? = nil, _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) {
    let present = try read { index in items.compactMap { index[$0] } }
    guard present.allSatisfy(engine.isAccessible) else { throw .locked }
    try permit?.requireUnchangedCaller()
    let (classes, guarding, engine) = (StorableClasses(engine), try guarding(permit), try engine(for: permit))
    _ = try change { () throws(StoreError) in
      try engine.update(items) { (item) throws(StoreError) in
        let before = item
        try body(&item)
        try classes.check(item)
        try guarding.check(before, item)
      }
    } note: { store, updated in
      for item in updated { store.note(item, kind: .attributes) }
    }
  }

  /// In a change the index can't be asked: it may be the change that it waits for.
  nonisolated func guarding(_ permit: Permit?) throws(StoreError) -> KeptProtection {
    let rules = try read { $0.rulesItem }.map { KeychainIndex([$0]) } ?? KeychainIndex()
    return KeptProtection(rules: rules, permit: permit, isDecidedElsewhere: engine.decidesAccess)
  }

  /// Changes the item that keeps the rules of folders, and makes it where it is missing.
  nonisolated func keepRules(_ body: @Sendable (inout Item) -> Void) throws(StoreError) {
    let present = try read { $0.rulesItem }
    _ = try change { () throws(StoreError) -> Item in
      if let present {
        return try engine.update([present.id]) { body(&$0) }[0]
      }
      let now = Timestamp(seconds: 0)
      var item = Item(id: ItemID(rawValue: ""), identity: .rules, created: now, modified: now)
      body(&item)
      return try engine.add(item, secret: Self.nothing())
    } note: { store, item in
      store.index.withLock { _ = $0?.insert(item) }
    }
  }

  /// One byte, for keychains that take no empty secret.
  private static func nothing() throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(count: 1) } catch { throw .outOfMemory }
  }

  /// Gives an item another password of its own. `permit` has the present one, `new` was given for one to be chosen.
  ///
  /// - Throws: `accessDenied`, `locked`, `notFound`, `readOnly`, `noSpace`.
  public nonisolated func changePassword(
    of item: ItemID, _ permit: Permit, to new: Permit
  ) throws(StoreError) {
    try checkAccess(to: item, permit)
    guard permit.password != nil, let password = new.password else {
      throw .accessDenied(reason: "the item's present password and a new one are needed")
    }
    noteUse()
    defer { wipeStack() }
    // Nothing of it shows.
    try change { () throws(StoreError) in
      try engine(for: permit).changePassword(of: item, to: password)
    } note: { _, _ in
    }
  }

  /// Deletes items with their secrets, all or none.
  public nonisolated func remove(_ items: [ItemID]) throws(StoreError) {
    try load()
    try change { () throws(StoreError) in
      try engine.remove(items)
    } note: { store, _ in
      for item in items { store.noteRemoval(of: item) }
    }
  }

  /// Whether an item could be stored like this now.
  ///
  /// - Throws: `locked`; `invalidValue` for a class that needs a passphrase where there is none.
  public nonisolated func checkRoom(for item: Item) throws(StoreError) {
    guard engine.isAccessible(item) else { throw .locked }
    try StorableClasses(engine).check(item)
  }

  /// Returns when every commit is on the disk.
  public nonisolated func synchronize() throws(StoreError) {
    try engine.synchronize()
  }
}

/// The classes of which items can be stored now. Asked for before a change, in which an engine can't be asked.
struct StorableClasses {
  private let lockState: KeychainLock
  private let hasPasscode: Bool
  /// The same for items that are sealed by the vault before the keychain gets them.
  private let hasPasscodeForSealed: Bool

  init(_ engine: any KeychainEngine) {
    lockState = engine.lockState
    (hasPasscode, hasPasscodeForSealed) = (
      engine.hasPasscode(sealed: false), engine.hasPasscode(sealed: true)
    )
  }

  func check(_ item: Item) throws(StoreError) {
    guard !item.identity.isReserved else { throw .notPermitted(reason: "Keyhole keeps its rules there") }
    guard lockState == .open || item.accessibility.survivesLock else { throw .locked }
    guard item.accessibility == .whenPasscodeSetThisDeviceOnly else { return }
    guard !(item.isToBeSealed ? hasPasscodeForSealed : hasPasscode) else { return }
    throw .invalidValue(reason: "the keychain has no passphrase; `keyhole passphrase` sets one")
  }
}

/// Refuses a change of an item's protection without a permit for that.
struct KeptProtection {
  let rules: KeychainIndex
  var permit: Permit?
  let isDecidedElsewhere: Bool

  func check(_ before: Item, _ item: Item) throws(StoreError) {
    if isDecidedElsewhere || permit?.password?.engine != nil { return }
    if permit?.operation == .change, permit?.item == before.id { return }
    guard rules.keepsProtection(of: before, in: item) else {
      throw .accessDenied(reason: "a person has to agree to a change of what protects the item")
    }
  }
}

// MARK: - Locking

extension KeychainStore {
  /// Drops what opens the secrets; who holds some has to drop them too.
  public nonisolated func lock() throws(StoreError) {
    guard engine.lockState == .open else { return }
    controller?.lock()
    knownLock.withLock { $0 = nil }
    defer { knownLock.withLock { $0 = engine.lockState } }
    try engine.lock()
    feed.publish([Change(.locked, .keychain, origin: .local)])
  }

  /// Unlocks the keychain, and reads what changed meanwhile.
  ///
  /// - Throws: `rejected`, `locked` where a passphrase is missing, `accessDenied`, `damaged`, `outOfMemory`.
  public nonisolated func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    // Not inside the actor: it takes long, and who wants an item that is not locked shall not wait for it.
    noteUse()
    knownLock.withLock { $0 = nil }
    defer { knownLock.withLock { $0 = engine.lockState } }
    try engine.unlock(passphrase)
    try load()
    try refresh()
    feed.publish([Change(.unlocked, .keychain, origin: .local)])
  }
}

extension KeychainStore {
  /// Has the engine change something, and the index follow in the same order.
  nonisolated func change<Value: Sendable>(
    _ call: () throws(StoreError) -> Value, note: @Sendable (isolated KeychainStore, Value) -> Void
  ) throws(StoreError) -> Value {
    if let remote {
      // Two calls may end here in another order than there; so not what they returned is believed, but
      // what the engine knows now.
      let value = try call()
      takeNews(of: remote)
      return value
    }
    changes.add(1, ordering: .relaxed)
    defer { changes.subtract(1, ordering: .relaxed) }
    do throws(StoreError) {
      return try executor.run { () throws(StoreError) in
        let value = try call()
        assumeIsolated { note($0, value) }
        return value
      }
    } catch {
      lookAgain(after: error)
      throw error
    }
  }

  private nonisolated func takeNews(of remote: any RemoteKeychainEngine) {
    // Only now can it be read for the first time.
    if !isLoaded, knownLock.withLock({ $0 == .sealed }), remote.lockState != .sealed {
      try? load()
      knownLock.withLock { $0 = .sealed }
    }
    executor.run {
      guard isLoaded else { return }
      assumeIsolated { $0.takeOver(remote.takeNews()) }
      noteLock(of: remote)
    }
  }

  /// Publishes that another process has locked or unlocked the keychain.
  private nonisolated func noteLock(of remote: any RemoteKeychainEngine) {
    let now = remote.lockState
    let isNews = knownLock.withLock { known in
      guard let last = known else { return false }
      known = now
      return (last == .open) != (now == .open)
    }
    guard isNews else { return }
    if now != .open { controller?.lock() }
    feed.publish([Change(now == .open ? .unlocked : .locked, .keychain, origin: .external)])
  }

  private func takeOver(_ news: [ItemNews]) {
    for news in news {
      let changes = index.withLock { $0?.take(news) ?? [] }
      if !changes.isEmpty { feed.publish(changes) }
    }
  }

  /// Takes over what the engine has just stored.
  func note(_ item: Item, kind: Change.Kind) {
    let previous = index.withLock { index in
      defer { index?.insert(item) }
      return index?[item.id]
    }
    guard previous != item else { return }
    defer { feed.publish(item.changesOfOtpauth(since: previous, origin: .local)) }
    // Nothing else of it has changed.
    if var same = previous {
      same.otpauth = item.otpauth
      if same == item { return }
    }
    let subject = Change.Subject.item(item.id, item.identity)
    guard let previous, previous.identity != item.identity else {
      return feed.publish([Change(kind, subject, origin: .local)])
    }
    let old = Change.Subject.item(item.id, previous.identity)
    feed.publish([Change(.moved, subject, previous: old, origin: .local)])
  }

  private func noteRemoval(of id: ItemID) {
    guard let item = index.withLock({ $0?.remove(id) }) else { return }
    feed.publish(item.deletion(origin: .local))
  }

  private func replaceAll(with items: [Item]) {
    let next = KeychainIndex(items)
    let previous = index.withLock { index in
      defer { index = next }
      return index
    }
    feed.publish(next.changes(since: previous ?? KeychainIndex()))
  }
}
