import Model
import Store
import Synchronization

/// What is known of a mount's keychain. Any thread uses it, and none waits.
final class MountedItems: Sendable {
  /// What the keychain says of itself.
  struct State {
    var lock = KeychainLock.sealed
    var needsPassphrase = true
    var hasPasscode = true
    var hasPasscodeForSealed = true
    var readOnlyReason: String?
    var sealsWithPasswords = false
  }

  fileprivate struct Content {
    var state = State()
    /// The mount's process; nil: nobody tells what happens.
    var process: Int32?
    var known: [ItemID: Item] = [:]
    /// When the mount's process last looked each item up, and when all of them.
    var looks: [ItemID: UInt64] = [:]
    var lookAtAll: UInt64 = 0
    /// Those of all items that are here already.
    var arriving: [(ItemID, Item?)] = []
    var news: [ItemID: ItemNews] = [:]
    var order: [ItemID] = []
    var listener: AsyncStream<Void>.Continuation?
  }

  private let content = Mutex(Content())

  var state: State { content.withLock { $0.state } }

  var process: Int32? { content.withLock { $0.process } }

  func listen() -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    content.withLock { $0.listener = continuation }
    return stream
  }

  subscript(id: ItemID) -> Item? { content.withLock { $0.known[id] } }

  var items: [Item] { content.withLock { Array($0.known.values) } }

  /// Every item, which makes all that was told so far no news. - Throws: `locked`.
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

  /// Takes over what the mount's process tells; returns what it was.
  @discardableResult
  func take(_ frame: borrowing Message) throws(StoreError) -> Message.Kind {
    switch frame.kind {
    case .state:
      let state = try State(frame.body)
      tell { $0.state = state }
    case .someItems, .allItems:
      let looked = try LookedUp(frame.body)
      let isComplete = frame.kind == .allItems
      tell { $0.take(part: looked, isComplete) }
    case .news:
      let looked = try LookedUp(frame.body)
      tell { $0.take(looked, .external) }
    case .failed:
      var reader = WireReader(frame.body)
      throw try reader.error()
    default: throw WireReader.unreadable
    }
    return frame.kind
  }

  /// Takes over what came of a call, unless it was another mount's.
  func take(_ looked: LookedUp, from process: Int32) {
    tell { content in
      if content.process == process { content.take(looked, .local) }
    }
  }

  /// Takes over every item, unless they are another mount's.
  func take(all looked: LookedUp, from process: Int32) {
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
  fileprivate mutating func take(part looked: LookedUp, _ isComplete: Bool) {
    arriving += looked.items
    guard isComplete else { return }
    take(all: LookedUp(number: looked.number, items: arriving))
    arriving = []
  }

  /// What is not among all items is gone.
  fileprivate mutating func take(all looked: LookedUp) {
    guard looked.number > lookAtAll else { return }
    let present = Set(looked.items.map(\.0))
    take(
      LookedUp(number: looked.number, items: known.keys.filter { !present.contains($0) }.map { ($0, nil) }),
      .external)
    take(looked, .external)
    looks = looks.filter { $0.value > looked.number }
    lookAtAll = looked.number
  }

  /// What was looked up earlier than what is known is no news.
  fileprivate mutating func take(_ looked: LookedUp, _ origin: Change.Origin) {
    for (id, item) in looked.items {
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

/// Items as the mount's process found them, all at one moment.
struct LookedUp {
  /// The later it looked, the higher.
  let number: UInt64
  /// nil: it is gone.
  let items: [(ItemID, Item?)]

  init(number: UInt64, items: [(ItemID, Item?)]) {
    (self.number, self.items) = (number, items)
  }

  init(_ body: [UInt8]) throws(StoreError) {
    var reader = WireReader(body)
    number = try reader.integer()
    items = try reader.list { (reader) throws(StoreError) in
      let id = try reader.itemID()
      return (id, try reader.optional { (reader) throws(StoreError) in try reader.item() })
    }
  }

  var body: [UInt8] {
    var writer = WireWriter()
    writer.put(number)
    writer.put(items) {
      $0.put($1.0)
      $0.put($1.1) { $0.put($1) }
    }
    return writer.bytes
  }
}

extension MountedItems.State {
  init(_ body: [UInt8]) throws(StoreError) {
    var reader = WireReader(body)
    switch try reader.integer(UInt8.self) {
    case 0: lock = .sealed
    case 1: lock = .locked
    default: lock = .open
    }
    needsPassphrase = try reader.flag()
    (hasPasscode, hasPasscodeForSealed) = (try reader.flag(), try reader.flag())
    sealsWithPasswords = try reader.flag()
    readOnlyReason = try reader.optional { (reader) throws(StoreError) in try reader.name().string }
  }

  init(of engine: any KeychainEngine) {
    (lock, needsPassphrase) = (engine.lockState, engine.needsPassphrase)
    (hasPasscode, hasPasscodeForSealed) = (
      engine.hasPasscode(sealed: false), engine.hasPasscode(sealed: true)
    )
    (sealsWithPasswords, readOnlyReason) = (engine.sealsWithPasswords, engine.readOnlyReason)
  }

  var body: [UInt8] {
    var writer = WireWriter()
    writer.put(lock == .sealed ? 0 as UInt8 : lock == .locked ? 1 : 2)
    for flag in [needsPassphrase, hasPasscode, hasPasscodeForSealed] { writer.put(flag) }
    writer.put(sealsWithPasswords)
    writer.put(readOnlyReason) { $0.put($1) }
    return writer.bytes
  }
}
