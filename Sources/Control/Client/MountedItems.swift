import Model
import Store
import Synchronization

/// The known items of a mount's keychain. Any thread uses it, and none waits.
final class MountedItems: Sendable {
  fileprivate struct Content {
    var state = KeychainState()
    /// The mount's process; nil: no changes are reported.
    var process: Int32?
    var known: [ItemID: Item] = [:]
    /// When the mount's process last looked each item up, and when all of them.
    var looks: [ItemID: UInt64] = [:]
    var lookAtAll: UInt64 = 0
    /// Those of all items that are here already.
    var arriving: [ItemSnapshot.Entry] = []
    var news: [ItemID: ItemNews] = [:]
    var order: [ItemID] = []
    var listener: AsyncStream<Void>.Continuation?
  }

  private let content: Mutex<Content>

  /// `takesBatches`: as `KeychainState.takesBatches`, until a mount has reported a state.
  init(takesBatches: Bool = false) {
    var first = Content()
    first.state.takesBatches = takesBatches
    content = Mutex(first)
  }

  var state: KeychainState { content.withLock { $0.state } }

  var process: Int32? { content.withLock { $0.process } }

  func listen() -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    content.withLock { $0.listener = continuation }
    return stream
  }

  subscript(id: ItemID) -> Item? { content.withLock { $0.known[id] } }

  var items: [Item] { content.withLock { Array($0.known.values) } }

  /// Every item; the news that has accumulated is dropped. - Throws: `locked`.
  func list() throws(StoreError) -> [Item] {
    try content.withLock { content throws(StoreError) in
      guard content.state.lock != .sealed else { throw .locked }
      (content.news, content.order) = ([:], [])
      return Array(content.known.values)
    }
  }

  func takeNews() -> [ItemNews] {
    content.withLock { content in
      defer { (content.news, content.order) = ([:], []) }
      return content.order.compactMap { content.news[$0] }
    }
  }
}

extension MountedItems {
  func begin(with process: Int32) {
    content.withLock { content in
      content.process = process
      // It counts by itself.
      (content.arriving, content.looks, content.lookAtAll) = ([], [:], 0)
    }
  }

  /// The mount is gone: what it unlocked is locked, and names still show.
  func end() {
    tell { content in
      content.process = nil
      if content.state.lock == .open { content.state.lock = .locked }
    }
  }

  /// Takes over an event; true: it is the state, which follows all items.
  @discardableResult
  func take(_ event: ControlMessage) throws(StoreError) -> Bool {
    switch event {
    case .state(let state): tell { $0.state = state }
    case .someItems(let part): tell { $0.arriving += part.entries }
    case .allItems(let part): tell { $0.takeLast(part) }
    case .itemsChanged(let items): tell { $0.take(items, .external) }
    case .failed(let error): throw error
    default: throw WireReader.unreadable
    }
    if case .state = event { return true }
    return false
  }

  /// Takes over the state that a call was answered with, unless it was another mount's.
  func take(_ state: ControlMessage, from process: Int32) throws(StoreError) {
    guard content.withLock({ $0.process == process }) else { return }
    try take(state)
  }

  /// Takes over the result of a call, unless it was another mount's.
  func take(_ looked: ItemSnapshot, from process: Int32) {
    tell { content in
      if content.process == process { content.take(looked, .local) }
    }
  }

  /// Takes over every item, unless they are another mount's.
  func take(all looked: ItemSnapshot, from process: Int32) {
    tell { content in
      if content.process == process { content.take(all: looked) }
    }
  }

  private func tell(_ body: (inout sending Content) -> Void) {
    let listener = content.withLock { content in
      body(&content)
      return content.listener
    }
    listener?.yield()
  }
}

extension MountedItems.Content {
  fileprivate mutating func takeLast(_ part: ItemSnapshot) {
    take(all: ItemSnapshot(number: part.number, arriving + part.entries))
    arriving = []
  }

  /// Items that are missing from the list are gone.
  fileprivate mutating func take(all looked: ItemSnapshot) {
    guard looked.number > lookAtAll else { return }
    let present = Set(looked.entries.map(\.id))
    let gone = known.keys.filter { !present.contains($0) }
    take(ItemSnapshot(number: looked.number, gone.map { ItemSnapshot.Entry($0, nil) }), .external)
    take(looked, .external)
    looks = looks.filter { $0.value > looked.number }
    lookAtAll = looked.number
  }

  /// Ignores results older than the ones that are known.
  fileprivate mutating func take(_ looked: ItemSnapshot, _ origin: Change.Origin) {
    for entry in looked.entries {
      let (id, item) = (entry.id, entry.item)
      if looked.number > max(lookAtAll, looks[id] ?? 0) {
        looks[id] = looked.number
        note(id, item, origin)
      }
      // The news of one's own change may have come before the answer.
      if origin == .local, let told = news[id], told.item == item { news[id]?.origin = .local }
    }
  }

  private mutating func note(_ id: ItemID, _ item: Item?, _ origin: Change.Origin) {
    guard known[id] != item else { return }
    known[id] = item
    if news.updateValue(ItemNews(id, item, origin: origin), forKey: id) == nil { order.append(id) }
  }
}
