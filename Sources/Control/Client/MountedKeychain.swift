import Dispatch
public import Model
import Notifier
import Platform
public import SecretMemory
public import Store
import Synchronization

/// The keychain of a running mount, for a process that can't open it by itself: a vault that only the mount has unlocked.
///
/// The mount's process decides who gets a secret, asks whom it has to ask, and keeps the record, as if this
/// process had opened the mount's files. Without a mount the keychain is locked; with the next one it is there
/// again.
public final class MountedKeychain: KeychainEngine, RemoteKeychain {
  /// The name of the mount's engine.
  public let name: String
  private let runtimeFolder: String
  private let patience: Int
  private let find: @Sendable () -> Int32?
  let memory = MountedItems()
  /// Connects, one at a time; no other queue waits for it.
  private let connecting = DispatchQueue(label: "keyhole.mounted")
  private let threads = WaitingThreads()
  private let listening = Mutex(Listening())

  private struct Listening {
    /// A mount that did not answer, and until when it is not asked again: each time takes long.
    var silent: (process: Int32, until: ContinuousClock.Instant)?
    var stream: MessageChannel?
    var folder: FolderWatch?
  }

  /// `find` gives the process of the mount; nil: there is none. A call that it does not answer within `patience`
  /// seconds fails, but for the time that a person is being asked.
  public init(
    name: String, runtimeFolder: String, patience: Int = 10, find: @escaping @Sendable () -> Int32?
  ) {
    (self.name, self.runtimeFolder, self.patience, self.find) = (name, runtimeFolder, patience, find)
    // So that it is known at once whether it is locked.
    _ = try? connect()
  }

  deinit {
    listening.withLock { $0.stream }?.shut()
  }
}

// MARK: - Connecting

extension MountedKeychain {
  /// Hears of every change from now on. - Throws: `locked` without a mount, `unreachable`.
  @discardableResult
  private func connect() throws(StoreError) -> (process: Int32, isNew: Bool) {
    let result: Result<(Int32, Bool), StoreError> = connecting.sync {
      if let process = memory.process { return .success((process, false)) }
      return Result { () throws(StoreError) in (try connectAnew(), true) }
    }
    return try result.get()
  }

  private func connectAnew() throws(StoreError) -> Int32 {
    guard let process = find() else { throw .locked }
    if let silent = listening.withLock({ $0.silent }), silent.process == process, silent.until > .now {
      throw MessageChannel.noAnswer
    }
    let stream = try open(process)
    guard stream.send(.watch) else { throw Self.gone }
    memory.begin(with: process)
    do throws(StoreError) {
      while try !memory.take(stream.receive().content) {}
    } catch {
      memory.end()
      let silent =
        error == MessageChannel.noAnswer ? (process, ContinuousClock.now + .seconds(patience)) : nil
      listening.withLock { $0.silent = silent }
      throw error
    }
    listening.withLock { listening in (listening.stream, listening.silent) = (stream, nil) }
    let isTaken = threads.run { [weak self, memory] in
      // SAFETY of lifetimes: the stream is shut when the engine goes.
      while stream.wait() == .input, let event = try? stream.receive() {
        guard (try? memory.take(event.content)) != nil else { break }
      }
      memory.end()
      self?.lose(stream)
    }
    guard isTaken else { throw .tooManyOpen }
    return process
  }

  /// There may be another mount.
  private func lose(_ stream: MessageChannel) {
    listening.withLock { if $0.stream === stream { $0.stream = nil } }
    _ = try? connect()
  }

  private func open(_ process: Int32) throws(StoreError) -> MessageChannel {
    try ControlClient.connect(to: process, in: runtimeFolder, identified: true, patience: patience)
  }

  static let gone = ControlClient.gone

  /// An element after each change that the mount reports; watches for a new mount while there is none.
  public var news: AsyncStream<Void> {
    let watch = FolderWatch(runtimeFolder) { [weak self] _ in
      guard let self, memory.process == nil else { return }
      _ = try? connect()
    }
    listening.withLock { $0.folder = watch }
    return memory.listen()
  }

  /// The changes since the last call. It does not wait.
  public func takeNews() -> [ItemNews] { memory.takeNews() }

  /// The items as the mount last reported them. It does not wait.
  public var known: [Item] { memory.items }

  /// One item as the mount last reported it; nil: it is not known. It does not wait.
  public func known(_ item: ItemID) -> Item? { memory[item] }
}

// MARK: - Calls

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
  private func finish(_ call: Call, _ reply: ControlMessage) throws(StoreError) -> [Item] {
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
  public func refresh() throws(StoreError) -> [Item]? {
    takeNews().contains { $0.origin == .external } ? try memory.list() : nil
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

// MARK: - State

extension MountedKeychain {
  /// The mount's process reports changes.
  public var remote: (any RemoteKeychain)? { self }

  /// The mount's process decides who gets a secret.
  public var decidesAccess: Bool { true }

  /// The reason that the mount last reported; nil: the keychain can be changed.
  public var readOnlyReason: String? { memory.state.readOnlyReason }

  /// Every commit of the mount is on the disk already.
  public func synchronize() throws(StoreError) {}

  /// The problems that the mount knows of; empty where it does not answer.
  public func problems() -> [Problem] {
    guard case .problems(let problems)? = try? request(.fetchProblems).channel.reply().content else {
      return []
    }
    return problems
  }

  /// The room of the disk of the mount's keychain. - Throws: `unreachable`.
  public func room() throws(StoreError) -> DiskRoom? {
    guard case .room(let room) = try request(.fetchRoom).channel.reply().content else {
      throw WireReader.unreadable
    }
    return room
  }
}
