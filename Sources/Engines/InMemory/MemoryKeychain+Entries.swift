import Model
import SecretMemory
import Store
import Synchronization

extension MemoryKeychain {
  func attempt<Result: ~Copyable>(
    _ body: (State) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try shared.use { state throws(StoreError) in
      if let failure = state.failure { throw failure }
      guard state.lock != .sealed else { throw .locked }
      return try body(state)
    }
  }

  func list(_ state: State) -> [Item] {
    seen.store(state.version, ordering: .relaxed)
    return state.entries.values.map(\.item)
  }

  /// Changes all or nothing.
  func change(
    _ state: State, _ body: (inout [ItemID: Entry]) throws(StoreError) -> Void
  ) throws(StoreError) {
    var draft = state.entries
    try body(&draft)
    guard Set(draft.values.map(\.item.identity)).count == draft.count else { throw .exists }
    state.replace(draft, by: number)
  }

  /// The entry, if its password is the one at hand.
  func open(_ entry: Entry) throws(StoreError) -> SecretBytes {
    try check(entry)
    return try copy(entry.secret)
  }

  func openOtpauth(_ entry: Entry) throws(StoreError) -> Entry.Box? {
    if entry.otpauth != nil { try check(entry) }
    return entry.otpauth
  }

  func check(_ entry: Entry) throws(StoreError) {
    guard let password = entry.password else { return }
    guard let given = self.password else { throw Self.needsPassword }
    guard given == password else { throw .rejected }
  }

  func changed(_ entry: Entry, to item: Item) throws(StoreError) -> Entry {
    guard entry.item.access != item.access else { return Entry(item, sharing: entry) }
    return Entry(item, try open(entry), try password(for: item), otpauth: try openOtpauth(entry))
  }

  func password(for item: Item) throws(StoreError) -> [UInt8]? {
    guard item.access.needsPassword else { return nil }
    guard let password else { throw Self.needsPassword }
    return password
  }

  static let needsPassword = StoreError.accessDenied(
    reason: "the item is sealed with a password of its own")

  func checkSize(_ secret: borrowing SecretBytes) throws(StoreError) {
    guard secret.count <= 1 << 20 else { throw .tooLarge(limit: 1 << 20) }
  }

  func copy(_ secret: borrowing SecretBytes) throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(copying: secret) } catch { throw .outOfMemory }
  }

  static func empty() throws(StoreError) -> SecretBytes {
    do { return try SecretBytes() } catch { throw .outOfMemory }
  }
}
