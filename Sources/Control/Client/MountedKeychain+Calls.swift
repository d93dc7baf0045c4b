public import Model
public import SecretMemory
public import Store

// Requests to the mount's process, each on a connection of its own.
extension MountedKeychain {
  /// Sends a request; the reply comes on the channel.
  func request(_ message: ControlMessage) throws(StoreError) -> Call {
    let process = try connect().process
    let call = Call(channel: try open(process), process: process)
    guard call.channel.send(message) else { throw Self.gone }
    return call
  }

  struct Call {
    let channel: MessageChannel
    let process: Int32
  }

  /// The items as they are stored now, by what the call did.
  func finish(_ call: Call, _ reply: ControlMessage) throws(StoreError) -> [Item] {
    guard case .settled(let items) = reply else { throw WireReader.unreadable }
    memory.take(items, from: call.process)
    return items.items
  }

  /// Every item, fetched from the mount. - Throws: `locked` without a mount, `unreachable`.
  public func items() throws(StoreError) -> [Item] {
    if try !connect().isNew { try fetchItems() }
    return try memory.list()
  }

  func fetchItems() throws(StoreError) {
    let call = try request(.fetchItems)
    var entries: [ItemSnapshot.Entry] = []
    while true {
      switch try call.channel.reply().content {
      case .someItems(let part): entries += part.entries
      case .allItems(let part):
        let all = ItemSnapshot(number: part.number, entries + part.entries)
        return memory.take(all: all, from: call.process)
      default: throw WireReader.unreadable
      }
    }
  }

  /// Answers from memory, like `takeNews`: the mount's process tells of every change.
  public func changes() throws(StoreError) -> ExternalChanges {
    ExternalChanges(takeNews().filter { $0.origin == .external })
  }

  /// Has the mount's process ask for the passphrase, in a window of the user's session or on this process's terminal.
  public func askToUnlock(for path: String) throws(StoreError) {
    let call = try request(.askToUnlock(path: path))
    let reply = try call.channel.reply().content
    guard case .state = reply else { throw WireReader.unreadable }
    // The event that reports it may come later.
    try memory.take(reply, from: call.process)
  }

  /// The secret, after the mount has decided, which may ask the user. - Throws: `accessDenied`, `notFound`, `locked`,
  /// `unreachable`.
  public func secret(of item: ItemID) throws(StoreError) -> SecretBytes {
    let reply = try request(.fetchSecret(item)).channel.reply()
    guard let secret = reply.takeSecret() else { throw WireReader.unreadable }
    return secret
  }

  /// Has the mount's process ask for the present password of an item and for a new one, and change it.
  ///
  /// - Throws: `invalidValue` for an item without one, `accessDenied`, `rejected`, `locked`, `readOnly`, `noSpace`.
  package func changePassword(of item: ItemID) throws(StoreError) {
    let call = try request(.changePassword(item))
    _ = try finish(call, call.channel.reply().content)
  }

  /// Sends item and secret to the mount, which stores them. - Throws: as the protocol; `accessDenied`, `unreachable`.
  public func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    let process = try connect().process
    let call = Call(channel: try open(process), process: process)
    var item = item
    item.otpauth = nil
    guard call.channel.send(.add(item), secret: secret) else { throw Self.gone }
    guard let added = try finish(call, call.channel.reply().content).first else {
      throw WireReader.unreadable
    }
    return added
  }

  /// Fetches the items, changes them in this process, and sends them back; again where they have changed meanwhile.
  public func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    let call = try request(.update(items))
    while true {
      let reply = try call.channel.reply().content
      guard case .stored(let snapshot) = reply else { return try finish(call, reply) }
      var stored = snapshot.items
      guard stored.map(\.id) == items else { throw WireReader.unreadable }
      for index in stored.indices {
        try body(&stored[index])
        stored[index].id = items[index]
      }
      guard call.channel.send(.changed(stored)) else { throw Self.gone }
    }
  }

  /// Fetches item and secret, changes them in this process, and sends them back.
  public func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try rewrite(request(.rewrite(item, readingSecret: readingSecret)), body)
  }

  func rewrite(
    _ call: Call, _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    while true {
      let reply = try call.channel.reply()
      guard case .stored(let snapshot) = reply.content else {
        guard let item = try finish(call, reply.content).first else { throw WireReader.unreadable }
        return item
      }
      guard var item = snapshot.items.first, var secret = reply.takeSecret() else {
        throw WireReader.unreadable
      }
      let id = item.id
      try body(&item, &secret)
      item.id = id
      guard call.channel.send(.changed([item]), secret: secret) else { throw Self.gone }
    }
  }

  /// Has the mount delete items. - Throws: `accessDenied`, `readOnly`, `unreachable`.
  public func remove(_ items: [ItemID]) throws(StoreError) {
    let call = try request(.remove(items))
    _ = try finish(call, call.channel.reply().content)
  }
}
