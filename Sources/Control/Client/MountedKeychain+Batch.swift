public import Model
public import SecretMemory
public import Store

extension MountedKeychain: BatchKeychain {
  /// nil: the mount's keychain takes none, as it said when the connection was made; before, as `init` was given.
  public var batches: (any BatchKeychain)? { memory.state.takesBatches ? self : nil }

  /// Sends the changes one after the other; the mount's process keeps them sealed until all are there, and makes them in
  /// one transaction.
  public func apply(
    _ changes: [ItemChange], secret: (Int) throws(StoreError) -> SecretBytes
  ) throws(StoreError) -> [Item] {
    let call = try request(.beginBatch(rewriting: changes.compactMap(\.rewritten)))
    guard case .stored(let snapshot) = try call.channel.reply().content else { throw WireReader.unreadable }
    let stored = Dictionary(snapshot.items.map { ($0.id, $0) }) { first, _ in first }
    var identities: [ItemIdentity] = []
    for (index, change) in changes.enumerated() {
      let (message, identity) = try change.message(from: stored)
      identities.append(identity)
      guard call.channel.send(message, secret: try secret(index)) else {
        throw Self.refusal(of: call.channel)
      }
    }
    guard call.channel.send(.commitBatch) else { throw Self.refusal(of: call.channel) }
    guard case .done = try call.channel.reply().content else { throw WireReader.unreadable }
    return try items(identities)
  }

  /// Why the mount's process has ended the connection before all was sent.
  private static func refusal(of channel: MessageChannel) -> StoreError {
    do throws(StoreError) { _ = try channel.reply() } catch { return error }
    return gone
  }

  private func items(_ identities: [ItemIdentity]) throws(StoreError) -> [Item] {
    try fetchItems()
    let known = Dictionary(memory.items.map { ($0.identity, $0) }) { first, _ in first }
    return identities.compactMap { known[$0] }
  }

  /// Returns when no batch of a process that has ended is under way any more, and what is stored is known.
  public func finishBatches() throws(StoreError) {
    guard case .done = try request(.finishBatches).channel.reply().content else {
      throw WireReader.unreadable
    }
    try fetchItems()
  }
}

extension ItemChange {
  fileprivate var rewritten: ItemID? {
    if case .rewrite(let id, _) = self { id } else { nil }
  }

  /// The message for the mount's process, and the item.
  fileprivate func message(
    from stored: [ItemID: Item]
  ) throws(StoreError) -> (ControlMessage, ItemIdentity) {
    switch self {
    case .add(var item):
      item.id = ItemID(rawValue: "")
      return (.batchItem(item), item.identity)
    case .rewrite(let id, let body):
      guard var item = stored[id] else { throw .notFound }
      try body(&item)
      item.id = id
      return (.batchItem(item), item.identity)
    case .update, .remove: throw .unsupported(reason: "the mount's process makes such changes by itself")
    case .setOtpauth(let identity, let modified):
      return (.batchOtpauth(identity, modified: modified), identity)
    }
  }
}
