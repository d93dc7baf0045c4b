import Model
import Store
import Synchronization

/// Tells another process of every change of a keychain, until it is gone.
final class KeychainWatcher: Sendable {
  private let channel: MessageChannel
  private let store: KeychainStore
  private let pending = Mutex(Pending())
  private let bell = WakePipe()

  private struct Pending {
    var ids: [ItemID] = []
    var noted: Set<ItemID> = []
    var isEverything = true
  }

  init(_ channel: MessageChannel, _ store: KeychainStore) {
    (self.channel, self.store) = (channel, store)
  }

  /// Returns when the other side is gone.
  func run() {
    // Heard from here on: what is changed while everything is told is told once more.
    let changes = store.feed.watch()
    let task = Task(executorPreference: Background.tasks) { [self] in
      for await change in changes { note(change) }
    }
    defer { task.cancel() }
    while tell(), channel.wait(or: bell) == .bell { bell.rest() }
  }

  private func note(_ change: Change) {
    let isFirst = pending.withLock { pending in
      let isFirst = pending.ids.isEmpty && !pending.isEverything
      if case .item(let id, _) = change.subject {
        if pending.noted.insert(id).inserted { pending.ids.append(id) }
      } else {
        pending.isEverything = true
      }
      return isFirst
    }
    if isFirst { bell.ring() }
  }

  private func tell() -> Bool {
    let news = pending.withLock { pending in
      defer { pending = Pending(isEverything: false) }
      return pending
    }
    guard news.isEverything else {
      return channel.send(.news, Self.look(news.ids, store).body)
    }
    // A keychain that was never unlocked has nothing to tell but that.
    return Self.sendAll(of: store, to: channel)
      && channel.send(.state, MountedItems.State(of: store.engine).body)
  }
}

extension KeychainWatcher {
  /// So many in a frame.
  private static let piece = 1_000

  /// False: the other side is gone.
  static func sendAll(of store: KeychainStore, to channel: MessageChannel) -> Bool {
    let looked = look(nil, store)
    guard store.isLoaded else { return true }
    var rest = looked.items[...]
    while rest.count > piece {
      let part = LookedUp(number: looked.number, items: Array(rest.prefix(piece)))
      guard channel.send(.someItems, part.body) else { return false }
      rest = rest.dropFirst(piece)
    }
    return channel.send(.allItems, LookedUp(number: looked.number, items: Array(rest)).body)
  }

  private static let looks = Mutex<UInt64>(0)

  /// Items as they are now; nil: all. Who looked later has a higher number.
  static func look(_ ids: [ItemID]?, _ store: KeychainStore) -> LookedUp {
    try? store.load()
    return looks.withLock { number in
      number += 1
      let items = try? store.read { index in
        guard let ids else { return index.everyItem.map { ($0.id, $0 as Item?) } }
        return ids.map { ($0, index[$0] ?? index.rulesItem($0)) }
      }
      return LookedUp(number: number, items: items ?? [])
    }
  }
}
