import Glibc
public import Model
import SecretMemory
public import Store
import Synchronization

/// Serves a mount's keychain to one process that can't open it by itself (`MountedKeychain`).
///
/// That process gets what it would get on the mount: the store decides by the process that is at the other end, and
/// whoever has to be asked is asked here.
public final class KeychainServer: Sendable {
  /// The line that begins such a connection; frames follow.
  public static let word = "keychain"

  private let channel: MessageChannel
  private let store: KeychainStore
  private let isReadOnly: Bool
  private let names: Names

  /// What a person calls the things of a keychain: their paths in the tree.
  public struct Names: Sendable {
    let item: @Sendable (ItemIdentity) -> String
    let folder: @Sendable (RuleScope) -> String

    public init(
      item: @escaping @Sendable (ItemIdentity) -> String, folder: @escaping @Sendable (RuleScope) -> String
    ) {
      (self.item, self.folder) = (item, folder)
    }
  }

  /// Takes over a connection.
  public init(_ connection: Int32, _ store: KeychainStore, isReadOnly: Bool, _ names: Names) {
    channel = MessageChannel(connection)
    (self.store, self.isReadOnly, self.names) = (store, isReadOnly, names)
  }

  /// Answers one request. Returns when it is answered, or the other side is gone.
  public func serve() {
    do throws(StoreError) {
      var frame = try channel.receive()
      try serve(&frame)
    } catch {
      var writer = WireWriter()
      writer.put(error)
      channel.send(.failed, writer.bytes)
    }
    wipeStack()
  }

  private func serve(_ frame: inout Message) throws(StoreError) {
    var reader = WireReader(frame.body)
    // It may have been changed a moment ago, by who asks.
    if store.isLoaded { try store.refresh() }
    switch frame.kind {
    case .watch: KeychainWatcher(channel, store).run()
    case .fetchItems:
      try store.load()
      _ = KeychainWatcher.sendAll(of: store, to: channel)
    case .fetchSecret: try sendSecret(of: reader.itemID())
    case .add: try add(reader.item(), frame.secret.take())
    case .update: try update(reader.list { (reader) throws(StoreError) in try reader.itemID() })
    case .rewrite: try rewrite(reader.itemID(), readingSecret: reader.flag())
    case .remove: try remove(reader.list { (reader) throws(StoreError) in try reader.itemID() })
    case .fetchProblems: sendProblems()
    case .fetchRoom: try sendRoom()
    default: throw WireReader.unreadable
    }
  }
}

// MARK: - Deciding

extension KeychainServer {
  /// In milliseconds. Who waits is told in time that it goes on.
  private static let pulse: Int32 = 3_000

  private func path(_ item: Item) -> String { names.item(item.identity) }

  private func asker() -> Asker? { Asker(thread: channel.peer) }

  private func permit(_ permission: Permission) throws(StoreError) -> Permit {
    switch permission {
    case .given(let permit): return permit
    case .asked(let request):
      let answer = Answer()
      request.start { outcome in
        answer.outcome.withLock { $0 = outcome }
        answer.bell.ring()
      }
      while channel.wait(or: answer.bell, milliseconds: Self.pulse) == .late, !answer.isThere {
        channel.send(.asking)
      }
      if let outcome = answer.outcome.withLock({ $0 }) { return try outcome.get() }
      request.withdraw()
      throw .interrupted
    }
  }

  private final class Answer: Sendable {
    let outcome = Mutex<PermissionRequest.Outcome?>(nil)
    let bell = WakePipe()

    var isThere: Bool { outcome.withLock { $0 != nil } }
  }

  private func found(_ id: ItemID) throws(StoreError) -> Item {
    guard let item = try store.read({ $0[id] ?? $0.rulesItem(id) }) else { throw .notFound }
    return item
  }

  private func requireWritable() throws(StoreError) {
    guard !isReadOnly else { throw .readOnly(reason: "the mount is read-only") }
  }
}

// MARK: - Secrets

extension KeychainServer {
  private func sendSecret(of id: ItemID) throws(StoreError) {
    let item = try found(id)
    let permit = try permit(store.permission(for: item, path: path(item), by: asker))
    channel.send(.secret, secret: try store.secret(of: item, permit))
  }

  private func add(_ item: Item, _ secret: consuming SecretBytes?) throws(StoreError) {
    try requireWritable()
    guard let secret = secret.take() else { throw WireReader.unreadable }
    if item.isRules { return try changeRules(to: item) }
    try store.load()
    let permit = try permit(store.permission(forNew: item, path: path(item), by: asker))
    sendDone([try store.add(item, secret: secret, permit).id])
  }

  /// The other side may change what it was given, until that is still so when it is stored.
  private func rewrite(_ id: ItemID, readingSecret: Bool) throws(StoreError) {
    try requireWritable()
    var stored = try found(id)
    var permit = try permit(store.permission(for: stored, path: path(stored), by: asker))
    while true {
      let secret = try readingSecret ? store.secret(of: stored, permit) : Self.noSecret()
      channel.send(.stored, look([id]).body, secret: secret)
      var frame = try channel.receive()
      guard let new = frame.secret.take() else { throw WireReader.unreadable }
      guard let changed = try Self.items(frame.body).first else { throw WireReader.unreadable }
      if changed.access.needsPassword, !stored.access.needsPassword {
        permit = try self.permit(
          store.permission(for: stored, path: path(stored), changingTo: changed, by: asker))
      }
      if try rewrite(stored, secret, to: changed, new, readingSecret, permit) { return sendDone([id]) }
      try store.refresh()
      stored = try found(id)
    }
  }

  /// False: somebody else has changed it.
  private func rewrite(
    _ stored: Item, _ secret: borrowing SecretBytes, to changed: Item, _ new: borrowing SecretBytes,
    _ readsSecret: Bool, _ permit: Permit
  ) throws(StoreError) -> Bool {
    var isSame = true
    do throws(StoreError) {
      try store.rewrite(stored.id, readingSecret: readsSecret, permit) {
        (item, present) throws(StoreError) in
        isSame = item == stored && (!readsSecret || present == secret)
        guard isSame else { throw .interrupted }
        item = changed.stored(as: item)
        do { present = try SecretBytes(copying: new) } catch { throw .outOfMemory }
      }
    } catch {
      if isSame { throw error }
    }
    return isSame
  }

  private static func noSecret() throws(StoreError) -> SecretBytes {
    do { return try SecretBytes() } catch { throw .outOfMemory }
  }
}

// MARK: - Items

extension KeychainServer {
  private func update(_ ids: [ItemID]) throws(StoreError) {
    try requireWritable()
    while true {
      var stored: [ItemID: Item] = [:]
      for id in ids { stored[id] = try found(id) }
      channel.send(.stored, look(ids).body)
      let changed = try Self.items(channel.receive().body)
      guard changed.map(\.id) == ids else { throw WireReader.unreadable }
      if let rules = changed.first(where: \.isRules) { return try changeRules(to: rules) }
      if try update(stored, to: changed) { return sendDone(ids) }
      try store.refresh()
    }
  }

  /// False: somebody else has changed one of them.
  private func update(_ stored: [ItemID: Item], to changed: [Item]) throws(StoreError) -> Bool {
    let new = Dictionary(changed.map { ($0.id, $0) }) { _, last in last }
    let permit = try permitToUpdate(stored, to: changed)
    var isSame = true
    do throws(StoreError) {
      try store.update(changed.map(\.id), permit) { (item) throws(StoreError) in
        isSame = isSame && item == stored[item.id]
        guard isSame, let changed = new[item.id] else { throw .interrupted }
        item = changed.stored(as: item)
      }
    } catch {
      if isSame { throw error }
    }
    return isSame
  }

  /// What protects an item is changed by who may open it. Of several at once nobody changes that.
  private func permitToUpdate(
    _ stored: [ItemID: Item], to changed: [Item]
  ) throws(StoreError) -> Permit? {
    guard changed.count == 1, let item = changed.first, let before = stored[item.id],
      !before.hasSameProtection(as: item)
    else { return nil }
    return try permit(store.permission(for: before, path: path(before), changingTo: item, by: asker))
  }

  private func remove(_ ids: [ItemID]) throws(StoreError) {
    try requireWritable()
    for id in ids {
      guard let item = try? found(id), item.isRules else { continue }
      var none = item
      none.attributes = [:]
      try applyRules(of: none)
    }
    try store.remove(ids)
    sendDone(ids)
  }

  /// The rules of folders are the attributes of an item that nobody is shown.
  private func changeRules(to item: Item) throws(StoreError) {
    try applyRules(of: item)
    sendDone([try store.read { $0.rulesItem() }?.id ?? item.id])
  }

  private func applyRules(of item: Item) throws(StoreError) {
    for (scope, rules) in try store.rulesToChange(to: item) {
      let permit = try permit(
        store.permission(toChangeRulesOf: scope, path: names.folder(scope), by: asker))
      try store.setRules(rules, of: scope, permit)
    }
  }

  private static func items(_ body: [UInt8]) throws(StoreError) -> [Item] {
    var reader = WireReader(body)
    return try reader.list { (reader) throws(StoreError) in try reader.item() }
  }

  private func look(_ ids: [ItemID]) -> LookedUp { KeychainWatcher.look(ids, store) }

  private func sendDone(_ ids: [ItemID]) {
    channel.send(.done, look(ids).body)
  }

  private func sendProblems() {
    var writer = WireWriter()
    writer.put(store.engine.problems()) {
      $0.put($1.subject)
      $0.put($1.reason)
      $0.put($1.remedy)
    }
    channel.send(.problems, writer.bytes)
  }

  private func sendRoom() throws(StoreError) {
    var writer = WireWriter()
    writer.put(try store.engine.room()) {
      for number in [$1.blockSize, $1.blocks, $1.freeBlocks, $1.availableBlocks] { $0.put(number) }
    }
    channel.send(.room, writer.bytes)
  }
}

extension Item {
  fileprivate var isRules: Bool { !isShown }

  /// What the other side can't say of an item is as it is stored.
  fileprivate func stored(as item: Item) -> Item {
    var changed = self
    (changed.id, changed.size) = (item.id, item.size)
    return changed
  }
}
