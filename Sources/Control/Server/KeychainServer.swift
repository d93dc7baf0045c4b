import Model
import SecretMemory
import Store

/// Serves a mount's keychain to a process that can't open it by itself (`MountedKeychain`).
///
/// The process gets what it would get on the mount: the store decides by the process at the other end, and the mount's
/// process asks the person.
struct KeychainServer {
  let channel: MessageChannel
  let store: KeychainStore
  let service: any ControlService
  let peer: ControlPeer

  init(
    _ channel: MessageChannel, _ store: KeychainStore, _ service: any ControlService, _ peer: ControlPeer
  ) {
    (self.channel, self.store, self.service, self.peer) = (channel, store, service, peer)
  }

  /// A vault whose passphrase another process has changed is locked then: a request that needs its keys says so by itself, and the
  /// others lead to the question that unlocks it.
  private func refresh() throws(StoreError) {
    do throws(StoreError) { try store.refresh() } catch {
      guard error == .locked else { throw error }
    }
  }

  /// Answers one request. Returns when it is answered, or the other side is gone.
  func serve(_ request: Message) throws(StoreError) {
    // The program that asks may have changed it a moment ago.
    if store.isLoaded { try refresh() }
    switch request.content {
    case .watch: try KeychainWatcher(channel, store, service).run()
    case .fetchItems:
      try store.load()
      _ = KeychainWatcher.sendAll(of: store, to: channel)
    case .fetchSecret(let item): try sendSecret(of: item, .value)
    case .fetchOtpauth(let item): try sendSecret(of: item, .otpauth)
    case .fetchCode(let item): try sendCode(of: item)
    case .add(let item): try add(item, request.takeSecret())
    case .update(let items): try update(items)
    case .rewrite(let item, let readsSecret): try rewrite(item, readingSecret: readsSecret)
    case .rewriteOtpauth(let item, let readsSecret): try rewriteOtpauth(item, readingSecret: readsSecret)
    case .remove(let items): try remove(items)
    case .changePassword(let item): try changePassword(of: item)
    case .fetchVersions, .restore, .purge: try serveHistory(request.content)
    case .fetchProblems: channel.send(.problems(store.engine.problems()))
    case .fetchIsStale: channel.send(.isStale(store.engine.isStale))
    case .fetchRoom: channel.send(.room(try store.engine.room()))
    default: throw WireReader.unreadable
    }
  }
}

// MARK: - Deciding

extension KeychainServer {
  func path(_ item: Item) -> String { service.path(of: item.identity) }

  /// - Throws: `accessDenied`, also where the program is not the one any more that connected.
  func permit(_ permission: Permission) throws(StoreError) -> Permit {
    let permit = try permission.fetch(reportingTo: channel)
    try peer.check()
    return permit
  }

  func found(_ id: ItemID) throws(StoreError) -> Item {
    if id.version != nil { return try store.engine.requireHistory().version(id).item }
    guard let item = try store.read({ $0[id] ?? $0.hiddenItem(id) }) else { throw .notFound }
    return item
  }

  func requireWritable() throws(StoreError) {
    guard !service.isReadOnly else { throw .readOnly(reason: "the mount is read-only") }
  }
}

// MARK: - Secrets

extension KeychainServer {
  private func sendSecret(of id: ItemID, _ which: ItemSecrets) throws(StoreError) {
    let item = try found(id)
    let permit = try permit(
      store.permission(for: item, to: .read, which, path: path(item), by: peer.caller))
    let secret = try which == .otpauth ? store.otpauth(of: item, permit) : store.secret(of: item, permit)
    // To open it may have taken a while: half a second for an item with a password of its own.
    try peer.check()
    channel.send(.secret, secret: secret)
  }

  private func add(_ item: Item, _ secret: consuming SecretBytes?) throws(StoreError) {
    try requireWritable()
    guard let secret = secret.take() else { throw WireReader.unreadable }
    if item.isRules { return try changeRules(to: item) }
    try store.load()
    let permit = try permit(store.permission(forNew: item, path: path(item), by: peer.caller))
    sendDone([try store.add(item, secret: secret, permit).id])
  }

  /// The other side changes what it was given, until that is still what is stored.
  private func rewrite(_ id: ItemID, readingSecret: Bool) throws(StoreError) {
    try requireWritable()
    var stored = try found(id)
    var permit = try permit(
      store.permission(
        for: stored, to: readingSecret ? .readWrite : .write, path: path(stored), by: peer.caller))
    while true {
      let secret = try readingSecret ? store.secret(of: stored, permit) : Self.noSecret()
      try peer.check()
      channel.send(.stored(look([id])), secret: secret)
      let reply = try channel.receive()
      guard case .changed(let items) = reply.content, let changed = items.first,
        let new = reply.takeSecret()
      else { throw WireReader.unreadable }
      // The permit is for the secret. To change what protects it is a question of its own, as in `update`.
      let isKept = try store.keepsProtection(of: stored, in: changed)
      if !isKept || !changed.hasSameProtection(as: stored) {
        permit = try self.permit(
          store.permission(for: stored, changingTo: changed, path: path(stored), by: peer.caller))
      }
      if try rewrite(stored, secret, to: changed, new, readingSecret, permit) { return sendDone([id]) }
      try store.refresh()
      stored = try found(id)
    }
  }

  /// False: it was changed meanwhile.
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

  private func changePassword(of id: ItemID) throws(StoreError) {
    try requireWritable()
    let item = try found(id)
    try item.requirePassword()
    let present = try permit(
      store.permission(for: item, to: .readWrite, path: path(item), by: peer.caller))
    let new = try permit(store.permission(forNewPasswordAt: path(item), by: peer.caller))
    try store.changePassword(of: id, present, to: new)
    sendDone([id])
  }

  static func noSecret() throws(StoreError) -> SecretBytes {
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
      channel.send(.stored(look(ids)))
      guard case .changed(let changed) = try channel.receive().content, changed.map(\.id) == ids else {
        throw WireReader.unreadable
      }
      if let rules = changed.first(where: \.isRules) { return try changeRules(to: rules) }
      if try update(stored, to: changed) { return sendDone(ids) }
      try store.refresh()
    }
  }

  /// False: one of them was changed meanwhile.
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

  /// The protection of an item is changed with the right to open it, and of one item at a time.
  private func permitToUpdate(
    _ stored: [ItemID: Item], to changed: [Item]
  ) throws(StoreError) -> Permit? {
    guard changed.count == 1, let item = changed.first, let before = stored[item.id] else { return nil }
    let isKept = try store.keepsProtection(of: before, in: item)
    if isKept, before.hasSameProtection(as: item) { return nil }
    return try permit(store.permission(for: before, changingTo: item, path: path(before), by: peer.caller))
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

  /// The rules of folders are the attributes of an item that is not shown.
  private func changeRules(to item: Item) throws(StoreError) {
    try applyRules(of: item)
    sendDone([try store.read { $0.rulesItem() }?.id ?? item.id])
  }

  private func applyRules(of item: Item) throws(StoreError) {
    for (scope, rules) in try store.rulesToChange(to: item) {
      let permit = try permit(
        store.permission(toChangeRulesOf: scope, to: rules, path: service.path(of: scope), by: peer.caller))
      try store.setRules(rules, of: scope, permit)
    }
    for (key, value) in try store.configurationToChange(to: item) {
      let permit = try permit(store.permission(toChange: key, to: value, by: peer.caller))
      try store.configure(key, to: value, permit)
    }
  }

  func look(_ ids: [ItemID]) -> ItemSnapshot { KeychainWatcher.look(ids, store) }

  func sendDone(_ ids: [ItemID]) {
    channel.send(.settled(look(ids)))
  }
}

extension Item {
  fileprivate var isRules: Bool { identity.isRules }

  /// Properties of an item that the other side can't express stay as they are stored.
  func stored(as item: Item) -> Item {
    var changed = self
    changed.id = item.id
    changed.keepSecrets(of: item)
    return changed
  }
}
