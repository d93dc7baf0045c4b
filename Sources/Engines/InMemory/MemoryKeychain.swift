public import Model
public import SecretMemory
public import Store
import Synchronization

/// A keychain in memory that does what `KeychainEngine` says; the model of the real ones, and their
/// stand-in where a test is about something else.
public final class MemoryKeychain: KeychainEngine, PasswordKeychain {
  /// `memory`.
  public let name = "memory"

  let shared: Shared
  /// By which this engine's changes are known.
  let number: Int
  let seen = Atomic<Int>(0)
  let holdsOtpauth: Bool
  /// The password for the items of its calls; nil: none.
  let password: [UInt8]?

  /// `holdsOtpauth`: whether it is one that has room for two secrets of an item.
  public init(holdsOtpauth: Bool = true) {
    shared = Shared()
    number = shared.use { $0.nextEngine() }
    password = nil
    self.holdsOtpauth = holdsOtpauth
  }

  /// A second engine on the same items, as another process would have it.
  public init(sharing other: MemoryKeychain) {
    shared = other.shared
    number = shared.use { $0.nextEngine() }
    password = nil
    holdsOtpauth = other.holdsOtpauth
    seen.store(shared.use { $0.version }, ordering: .relaxed)
  }

  private init(_ other: MemoryKeychain, _ password: ItemPassword) {
    shared = other.shared
    number = other.number
    holdsOtpauth = other.holdsOtpauth
    self.password = password.bytes.unprotected
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

  /// The changes by other engines on the same items since it was last asked.
  public func changes() throws(StoreError) -> ExternalChanges {
    try attempt { state throws(StoreError) in
      let unseen = state.changes[seen.exchange(state.version, ordering: .relaxed)...]
      let ids = Set(unseen.filter { $0.engine != number }.flatMap(\.items))
      return ExternalChanges(ids.map { ItemNews($0, state.entries[$0]?.item, origin: .external) })
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
}
