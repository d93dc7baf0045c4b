import InMemory
import Model
import SecretMemory
import Store
import Synchronization

/// A keychain in memory that is read by pages, one at a time as the test says, and that can be compared.
final class PagedMemory: KeychainEngine, ItemLookup, PagingKeychain, VerifiableKeychain {
  private struct State {
    /// Other calls than `beginReading` may not list the items before.
    var isRead = false
    var readings = 0
    var outcomes: [StoreError?] = []
    var verifications = 0
    var isVerificationDue = false
    /// The next comparison finds something: everything is reported then.
    var hasFindings = false
  }

  private let memory: MemoryKeychain
  private let state = Mutex(State())
  /// Passed by each page, and by the end.
  private let gate: Gate

  init(_ memory: MemoryKeychain, gate: Gate = Gate(isOpen: true)) {
    (self.memory, self.gate) = (memory, gate)
  }

  /// The next readings end so.
  func end(with outcomes: [StoreError?]) { state.withLock { $0.outcomes = outcomes } }
  var readings: Int { state.withLock { $0.readings } }
  var verifications: Int { state.withLock { $0.verifications } }

  func findOnVerification() { state.withLock { ($0.isVerificationDue, $0.hasFindings) = (true, true) } }

  var lookup: (any ItemLookup)? { state.withLock { $0.isRead } ? nil : self }
  var paging: (any PagingKeychain)? { state.withLock { $0.isRead } ? nil : self }
  var verification: (any VerifiableKeychain)? { state.withLock { $0.isVerificationDue } ? self : nil }

  func verify() {
    state.withLock { state in
      state.verifications += 1
      state.isVerificationDue = false
    }
  }

  func item(with identity: ItemIdentity) throws(StoreError) -> Item? {
    try memory.listed().first { $0.identity == identity }
  }

  func item(_ id: ItemID) throws(StoreError) -> Item? { try memory.listed().first { $0.id == id } }

  func beginReading() throws(StoreError) -> any ItemReading {
    state.withLock { $0.readings += 1 }
    return Pages(self, MemoryKeychain(sharing: memory), try memory.listed())
  }

  private func takeOutcome() throws(StoreError) {
    let outcome = state.withLock { $0.outcomes.isEmpty ? nil : $0.outcomes.removeFirst() }
    if let outcome { throw outcome }
    state.withLock { $0.isRead = true }
  }

  private final class Pages: ItemReading {
    let keychain: PagedMemory
    /// Notes what happens from the beginning of the reading on.
    let watcher: MemoryKeychain
    let rest: Mutex<[Item]>

    init(_ keychain: PagedMemory, _ watcher: MemoryKeychain, _ items: [Item]) {
      (self.keychain, self.watcher) = (keychain, watcher)
      rest = Mutex(items)
    }

    func next() -> [Item] {
      keychain.gate.pass()
      return rest.withLock { $0.isEmpty ? [] : [$0.removeFirst()] }
    }

    func finish() throws(StoreError) -> ExternalChanges {
      try keychain.takeOutcome()
      _ = try keychain.memory.changes()
      return try watcher.changes()
    }
  }

  var name: String { memory.name }
  func items() throws(StoreError) -> [Item] {
    state.withLock { $0.isRead = true }
    return try memory.items()
  }
  func changes() throws(StoreError) -> ExternalChanges {
    let isFound = state.withLock { state in
      defer { if !state.isVerificationDue { state.hasFindings = false } }
      return state.hasFindings && !state.isVerificationDue
    }
    return isFound ? .everything(try memory.items()) : try memory.changes()
  }
  func secret(of item: ItemID) throws(StoreError) -> SecretBytes { try memory.secret(of: item) }
  func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    try memory.add(item, secret: secret)
  }
  func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] { try memory.update(items, body) }
  func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item { try memory.rewrite(item, readingSecret: readingSecret, body) }
  func remove(_ items: [ItemID]) throws(StoreError) { try memory.remove(items) }
  func synchronize() {}
  func room() -> DiskRoom? { nil }
  func problems() -> [Problem] { [] }
}

extension MemoryKeychain {
  /// The items, without taking note of what others did.
  fileprivate func listed() throws(StoreError) -> [Item] { try MemoryKeychain(sharing: self).items() }
}
