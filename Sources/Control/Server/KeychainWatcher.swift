import Model
import Platform
import Store
import Synchronization

/// Reports every change of a keychain to another process, until that is gone.
final class KeychainWatcher: Sendable {
  private let channel: MessageChannel
  private let store: KeychainStore
  private let service: any ControlService
  private let pending = Mutex(Pending())
  private let isChanged: WakePipe

  private struct Pending {
    var ids: [ItemID] = []
    var noted: Set<ItemID> = []
    var isEverything = true
  }

  /// - Throws: `tooManyOpen`.
  init(
    _ channel: MessageChannel, _ store: KeychainStore, _ service: any ControlService
  ) throws(StoreError) {
    isChanged = try MessageChannel.makeWakePipe()
    (self.channel, self.store, self.service) = (channel, store, service)
  }

  /// Returns when the other side is gone, or the mount is.
  func run() {
    // Watched from here on: a change while everything is sent is sent once more.
    let changes = store.feed.watch()
    let task = Task(executorPreference: Background.tasks) { [self] in
      for await change in changes { note(change) }
    }
    defer { task.cancel() }
    while tell(), channel.wait(or: isChanged) == .wake { isChanged.clear() }
  }

  private func note(_ change: Change) {
    let isFirst = pending.withLock { pending in
      let isFirst = pending.ids.isEmpty && !pending.isEverything
      switch change.subject {
      case .item(let id, _), .otpauth(let id, _), .document(let id, _):
        if pending.noted.insert(id).inserted { pending.ids.append(id) }
      default: pending.isEverything = true
      }
      return isFirst
    }
    if isFirst { isChanged.wake() }
  }

  private func tell() -> Bool {
    let news = pending.withLock { pending in
      defer { pending = Pending(isEverything: false) }
      return pending
    }
    guard news.isEverything else {
      return channel.send(.itemsChanged(Self.look(news.ids, store)))
    }
    // A keychain that was never unlocked has nothing to tell but that.
    return !service.isEnding && Self.sendAll(of: store, to: channel)
      && channel.send(.state(KeychainState(of: store.engine)))
  }
}

extension KeychainWatcher {
  /// So many in a message.
  private static let piece = 1_000

  /// False: the other side is gone.
  static func sendAll(of store: KeychainStore, to channel: MessageChannel) -> Bool {
    let all = look(nil, store)
    guard store.isLoaded else { return true }
    var rest = all.entries[...]
    while rest.count > piece {
      guard channel.send(.someItems(ItemSnapshot(number: all.number, Array(rest.prefix(piece))))) else {
        return false
      }
      rest = rest.dropFirst(piece)
    }
    return channel.send(.allItems(ItemSnapshot(number: all.number, Array(rest))))
  }

  private static let looks = Mutex<UInt64>(0)

  /// Items as they are now; nil: all. Who looked later has a higher number.
  static func look(_ ids: [ItemID]?, _ store: KeychainStore) -> ItemSnapshot {
    try? store.load()
    return looks.withLock { number in
      number += 1
      let items = try? store.read { index in
        guard let ids else { return index.everyItem.map { ItemSnapshot.Entry($0.id, $0) } }
        return ids.map { ItemSnapshot.Entry($0, index[$0] ?? index.hiddenItem($0)) }
      }
      return ItemSnapshot(number: number, items ?? [])
    }
  }
}
