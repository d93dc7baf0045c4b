import Model
import Store
import Synchronization

/// The known state of a keyring: read by any thread, written on the main loop's.
final class ItemCache: Sendable {
  struct Record {
    var item: Item
    var isLocked = false
    /// Tells an equal secret from another one without keeping it. The hash's key is this process's own.
    var digest = 0
    var contentType = ""
    /// Its attributes can be emptied, and not removed.
    var hasFields = false
    /// The time of the item's last change of any kind, as the service has it.
    var touched: UInt64 = 0
    /// Another number after each change by this engine's calls.
    var generation = 0
  }

  struct State {
    var records: [ItemID: Record] = [:]
    var news: [ItemID: ItemNews] = [:]
    var order: [ItemID] = []
    var lockState = KeychainLock.open
  }

  private let state = Mutex(State())

  subscript(id: ItemID) -> Record? { state.withLock { $0.records[id] } }

  var items: [Item] { state.withLock { $0.records.values.map(\.item) } }

  var ids: [ItemID] { state.withLock { Array($0.records.keys) } }

  func hasOther(than ids: Set<ItemID>, with identity: ItemIdentity) -> Bool {
    state.withLock { state in
      state.records.contains { $0.value.item.identity == identity && !ids.contains($0.key) }
    }
  }

  /// Returns whether that is news.
  func put(_ record: Record, origin: Change.Origin) -> Bool {
    state.withLock { state in
      let id = record.item.id
      var record = record
      let old = state.records[id]
      record.generation = (old?.generation ?? 0) + (origin == .local ? 1 : 0)
      state.records[id] = record
      guard old?.item != record.item else { return false }
      state.tell(ItemNews(id, record.item, origin: origin))
      return true
    }
  }

  /// Returns whether it was there.
  func remove(_ id: ItemID, origin: Change.Origin) -> Bool {
    state.withLock { state in
      guard state.records.removeValue(forKey: id) != nil else { return false }
      state.tell(ItemNews(id, nil, origin: origin))
      return true
    }
  }

  func setLocked(_ isLocked: Bool, _ id: ItemID) {
    state.withLock { $0.records[id]?.isLocked = isLocked }
  }

  var lockState: KeychainLock {
    get { state.withLock { $0.lockState } }
    set { state.withLock { $0.lockState = newValue } }
  }

  /// Every item; the news that has accumulated is dropped.
  func list() -> [Item] {
    state.withLock { state in
      (state.news, state.order) = ([:], [])
      return state.records.values.map(\.item)
    }
  }

  func takeNews() -> [ItemNews] {
    state.withLock { state in
      defer { (state.news, state.order) = ([:], []) }
      return state.order.compactMap { state.news[$0] }
    }
  }
}

extension ItemCache.State {
  mutating func tell(_ item: ItemNews) {
    if news.updateValue(item, forKey: item.id) == nil { order.append(item.id) }
  }
}
