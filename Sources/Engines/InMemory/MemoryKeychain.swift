public import Model
public import SecretMemory
public import Store
import Synchronization

/// A keychain in memory that does what `KeychainEngine` says; the model of the real ones, and their
/// stand-in where a test is about something else.
public final class MemoryKeychain: KeychainEngine, LockingKeychain, PasswordKeychain, OtpauthKeychain {
  /// `memory`.
  public let name = "memory"

  private let shared: Shared
  private let seen = Atomic<Int>(0)
  /// The password for the items of its calls; nil: none.
  private let password: [UInt8]?

  /// `holdsOtpauth`: whether it is one that has room for two secrets of an item.
  public init(holdsOtpauth: Bool = true) {
    shared = Shared()
    password = nil
    self.holdsOtpauth = holdsOtpauth
  }

  /// A second engine on the same items, as another process would have it.
  public init(sharing other: MemoryKeychain) {
    shared = other.shared
    password = nil
    holdsOtpauth = other.holdsOtpauth
    seen.store(shared.use { $0.version }, ordering: .relaxed)
  }

  private init(_ other: MemoryKeychain, _ password: ItemPassword) {
    shared = other.shared
    // SAFETY: the bytes are copied before they are given back.
    holdsOtpauth = other.holdsOtpauth
    self.password = unsafe password.bytes.withUnsafeBytes { unsafe Array($0) }
    seen.store(other.seen.load(ordering: .relaxed), ordering: .relaxed)
  }

  /// Itself: the password is compared, nothing is encrypted.
  public var passwords: (any PasswordKeychain)? { self }

  /// The same items, of which only those of this password open.
  public func using(_ password: ItemPassword) throws(StoreError) -> any KeychainEngine {
    MemoryKeychain(self, password)
  }

  /// Replaces the password in one step. - Throws: `notFound`, `rejected`, `invalidValue` for an item without one.
  public func changePassword(
    of item: ItemID, from present: ItemPassword, to new: ItemPassword
  ) throws(StoreError) {
    try MemoryKeychain(self, present).changePassword(of: item, to: MemoryKeychain(self, new).password)
  }

  private func changePassword(of item: ItemID, to new: [UInt8]?) throws(StoreError) {
    try attempt { state throws(StoreError) in
      guard let entry = state.entries[item] else { throw .notFound }
      guard entry.password != nil else { throw .invalidValue(reason: "the item has no password of its own") }
      let changed = Entry(entry.item, try open(entry), new, otpauth: try openOtpauth(entry))
      try change(state) { draft throws(StoreError) in draft[item] = changed }
    }
  }

  /// Makes every call fail with `error` until it is nil again.
  public func fail(with error: StoreError?) {
    shared.use { $0.failure = error }
  }

  /// Every item, in no particular order.
  public func items() throws(StoreError) -> [Item] {
    try attempt { state throws(StoreError) in list(state) }
  }

  /// Every item where another engine on the same items changed something since it was last asked; else nil.
  public func refresh() throws(StoreError) -> [Item]? {
    try attempt { state throws(StoreError) in
      seen.load(ordering: .relaxed) == state.version ? nil : list(state)
    }
  }

  /// A copy of the secret. - Throws: `notFound`, `locked`, `rejected`; as all calls what `fail(with:)` has set.
  public func secret(of item: ItemID) throws(StoreError) -> SecretBytes {
    try attempt { state throws(StoreError) in
      guard let entry = state.entries[item] else { throw .notFound }
      guard state.lock == .open || entry.item.accessibility.survivesLock else { throw .locked }
      return try open(entry)
    }
  }

  /// Stores a copy of the secret under a new number. - Throws: `exists`, `tooLarge`, `locked` while it is sealed.
  public func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    try checkSize(secret)
    return try attempt { state throws(StoreError) in
      var item = item
      (item.id, item.size, item.collection, item.otpauth) = (state.nextID(), secret.count, nil, nil)
      try change(state) { draft throws(StoreError) in
        draft[item.id] = Entry(item, try copy(secret), try password(for: item))
      }
      return item
    }
  }

  /// Changes a draft of all items, and takes it over if no identity is there twice. - Throws: as the protocol.
  public func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    try attempt { state throws(StoreError) in
      var changedItems: [Item] = []
      try change(state) { draft throws(StoreError) in
        for id in items {
          guard let entry = draft[id] else { throw .notFound }
          var item = entry.item
          try body(&item)
          (item.id, item.collection) = (id, nil)
          item.keepSecrets(of: entry.item)
          draft[id] = try changed(entry, to: item)
          changedItems.append(item)
        }
      }
      return changedItems
    }
  }

  /// Changes a draft of the item and its secret, and takes it over. - Throws: as the protocol.
  public func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try attempt { state throws(StoreError) in
      guard let entry = state.entries[item] else { throw .notFound }
      var changed = entry.item
      var secret = try readingSecret ? open(entry) : Self.empty()
      try body(&changed, &secret)
      try checkSize(secret)
      changed.keepSecrets(of: entry.item)
      (changed.id, changed.size, changed.collection) = (item, secret.count, nil)
      if readingSecret, changed == entry.item, secret == entry.secret { return entry.item }
      let stored = Entry(changed, secret, try password(for: changed), otpauth: try openOtpauth(entry))
      try change(state) { draft throws(StoreError) in draft[item] = stored }
      return changed
    }
  }

  private let holdsOtpauth: Bool

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

  /// Removes items; unknown numbers are no error.
  public func remove(_ items: [ItemID]) throws(StoreError) {
    try attempt { state throws(StoreError) in
      try change(state) { draft throws(StoreError) in
        for id in items { draft[id] = nil }
      }
    }
  }

  /// Does nothing: there is no disk.
  public func synchronize() throws(StoreError) {}

  /// nil: there is no disk.
  public func room() throws(StoreError) -> DiskRoom? { nil }

  /// Empty: memory is never damaged.
  public func problems() -> [Problem] { [] }

  /// Itself.
  public var locking: any LockingKeychain { self }

  /// Open until `lock()` or `seal(_:)` is called.
  public var lockState: KeychainLock { shared.use { $0.lock } }

  /// Whether `seal(_:)` has given it a passphrase.
  public var needsPassphrase: Bool { shared.use { $0.passphrase != nil } }

  /// Locks the items, for every engine that shares them.
  public func lock() throws(StoreError) {
    shared.use { $0.lock = .locked }
  }

  /// Compares the passphrase. - Throws: `locked` for an empty one where one is set, `rejected` for a wrong one.
  public func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    // SAFETY: the bytes are copied before they are given back.
    let given = unsafe passphrase.withUnsafeBytes { unsafe Array($0) }
    try shared.use { state throws(StoreError) in
      guard state.passphrase ?? [] == given else { throw given.isEmpty ? .locked : .rejected }
      state.lock = .open
    }
  }

  /// Gives the keychain a passphrase, and seals it.
  public func seal(_ passphrase: String) {
    shared.use { state in
      state.passphrase = Array(passphrase.utf8)
      state.lock = .sealed
    }
  }
}

extension MemoryKeychain {
  private func attempt<Result: ~Copyable>(
    _ body: (State) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try shared.use { state throws(StoreError) in
      if let failure = state.failure { throw failure }
      guard state.lock != .sealed else { throw .locked }
      return try body(state)
    }
  }

  private func list(_ state: State) -> [Item] {
    seen.store(state.version, ordering: .relaxed)
    return state.entries.values.map(\.item)
  }

  /// Changes all or nothing.
  private func change(
    _ state: State, _ body: (inout [ItemID: Entry]) throws(StoreError) -> Void
  ) throws(StoreError) {
    var draft = state.entries
    try body(&draft)
    guard Set(draft.values.map(\.item.identity)).count == draft.count else { throw .exists }
    let isCurrent = seen.load(ordering: .relaxed) == state.version
    state.entries = draft
    state.version += 1
    if isCurrent { seen.store(state.version, ordering: .relaxed) }
  }

  /// The entry, if its password is the one at hand.
  private func open(_ entry: Entry) throws(StoreError) -> SecretBytes {
    try check(entry)
    return try copy(entry.secret)
  }

  private func openOtpauth(_ entry: Entry) throws(StoreError) -> Entry.Box? {
    if entry.otpauth != nil { try check(entry) }
    return entry.otpauth
  }

  private func check(_ entry: Entry) throws(StoreError) {
    guard let password = entry.password else { return }
    guard let given = self.password else { throw Self.needsPassword }
    guard given == password else { throw .rejected }
  }

  private func changed(_ entry: Entry, to item: Item) throws(StoreError) -> Entry {
    guard entry.item.access != item.access else { return Entry(item, sharing: entry) }
    return Entry(item, try open(entry), try password(for: item), otpauth: try openOtpauth(entry))
  }

  private func password(for item: Item) throws(StoreError) -> [UInt8]? {
    guard item.access.needsPassword else { return nil }
    guard let password else { throw Self.needsPassword }
    return password
  }

  private static let needsPassword = StoreError.accessDenied(
    reason: "the item is sealed with a password of its own")

  private func checkSize(_ secret: borrowing SecretBytes) throws(StoreError) {
    guard secret.count <= 1 << 20 else { throw .tooLarge(limit: 1 << 20) }
  }

  private func copy(_ secret: borrowing SecretBytes) throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(copying: secret) } catch { throw .outOfMemory }
  }

  private static func empty() throws(StoreError) -> SecretBytes {
    do { return try SecretBytes() } catch { throw .outOfMemory }
  }
}

/// An item with its secret. Entries never change, so that drafts can share them.
private final class Entry {
  final class Box {
    let secret: SecretBytes

    init(_ secret: consuming SecretBytes) {
      self.secret = secret
    }
  }

  let item: Item
  /// The item's own password; nil: it has none.
  let password: [UInt8]?
  /// nil: the item has no `otpauth:` URI.
  let otpauth: Box?
  private let box: Box

  var secret: SecretBytes {
    _read { yield box.secret }
  }

  init(_ item: Item, _ secret: consuming SecretBytes, _ password: [UInt8]?, otpauth: Box? = nil) {
    (self.item, self.password, self.otpauth) = (item, password, otpauth)
    box = Box(secret)
  }

  /// With another `otpauth:` URI.
  init(_ item: Item, _ other: Entry, otpauth: Box?) {
    (self.item, password, self.otpauth) = (item, other.password, otpauth)
    box = other.box
  }

  init(_ item: Item, sharing other: Entry) {
    (self.item, password, otpauth) = (item, other.password, other.otpauth)
    box = other.box
  }
}

private final class State {
  var entries: [ItemID: Entry] = [:]
  var version = 0
  var failure: StoreError?
  var lock = KeychainLock.open
  var passphrase: [UInt8]?
  private var last = 0

  func nextID() -> ItemID {
    last += 1
    return ItemID(rawValue: "memory-\(last)")
  }
}

/// The state behind a lock; bodies may be the caller's, which a `Mutex` would not take.
private final class Shared {
  private let state = State()
  private let mutex = Mutex(())

  func use<Result: ~Copyable, Failure: Error>(
    _ body: (State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    mutex._unsafeLock()
    defer { mutex._unsafeUnlock() }
    return try body(state)
  }
}

// `state` is only ever used while `mutex` is held.
extension Shared: @unchecked Sendable {}
