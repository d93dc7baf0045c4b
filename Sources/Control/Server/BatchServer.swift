import Model
import Store
import Synchronization

/// Takes many changes from a process that can't open the keychain by itself, and makes them in one transaction.
///
/// The secrets are kept sealed until all have come and every question is answered: no transaction is open while another
/// process or a person is waited for.
struct BatchServer {
  private let channel: MessageChannel
  private let store: KeychainStore
  private let service: any ControlService
  private let peer: ControlPeer
  private let place: BatchPlace

  /// How long all changes together may take to come.
  private static let patience = Duration.seconds(900)
  /// How long another batch is waited for.
  private static let patienceForOthers = Duration.seconds(4)
  /// How often the client gets a sign that it goes on.
  private static let pulse = Duration.seconds(3)

  init(
    _ channel: MessageChannel, _ store: KeychainStore, _ service: any ControlService, _ peer: ControlPeer,
    _ place: BatchPlace
  ) {
    (self.channel, self.store, self.service, self.peer) = (channel, store, service, peer)
    self.place = place
  }

  /// Returns when the batch is answered. Until the transaction, the end of the other side leaves all as it was.
  func serve(rewriting ids: [ItemID]) throws(StoreError) {
    try receive(rewriting: ids)
    // Only now the other side may begin another one.
    channel.send(.done)
  }

  private func receive(rewriting ids: [ItemID]) throws(StoreError) {
    guard !service.isReadOnly else { throw .readOnly(reason: "the mount is read-only") }
    try takePlace()
    defer { place.leave() }
    try store.load()
    try store.refresh()
    let snapshot = try snapshot(ids)
    let batch = ReceivedBatch(try store.makeSpool(), rewriting: snapshot.items)
    guard channel.send(.stored(snapshot)) else { throw .interrupted }
    let deadline = ContinuousClock.now + Self.patience
    while try batch.take(channel.receive()) {
      guard ContinuousClock.now < deadline else { throw .timedOut }
    }
    let permits = try fetchPermits(for: batch)
    try peer.check()
    try apply(batch, permits)
  }

  /// A process that was killed a moment ago may have it still.
  private func takePlace() throws(StoreError) {
    let deadline = ContinuousClock.now + Self.patienceForOthers
    while !place.take() {
      let isFree = WakePipe()
      place.whenFree { isFree.wake() }
      let left = max(0, (deadline - .now) / .milliseconds(1))
      switch channel.wait(or: isFree, milliseconds: Int32(clamping: Int(left))) {
      case .wake: continue
      case .late: throw .unreachable(reason: "the mount takes another import at this moment")
      case .input: throw .interrupted
      }
    }
  }

  private func snapshot(_ ids: [ItemID]) throws(StoreError) -> ItemSnapshot {
    let snapshot = KeychainWatcher.look(ids, store)
    guard snapshot.entries.count == ids.count, snapshot.items.count == ids.count else { throw .notFound }
    return snapshot
  }

  private func apply(_ batch: ReceivedBatch, _ permits: [ItemID: Permit]) throws(StoreError) {
    var last = ContinuousClock.now
    try store.apply(batch.changes, permits, from: batch.spool) { () throws(StoreError) in
      // It sends nothing any more: what can be read is its end.
      guard channel.wait(milliseconds: 0) == .late else { throw .interrupted }
      guard ContinuousClock.now - last > Self.pulse else { return }
      last = .now
      channel.send(.pending)
    }
  }
}

// MARK: - Permits

extension BatchServer {
  /// The permissions to change items that ask first: all questions of a kind are one dialog.
  private func fetchPermits(for batch: ReceivedBatch) throws(StoreError) -> [ItemID: Permit] {
    try requireNoPassword(batch.items)
    let questions = try store.read { batch.questions($0) }
    try requireNoPassword(questions.map(\.stored))
    var permissions: [Permission] = []
    for question in questions { permissions.append(try permission(question)) }
    let permits = try PermissionGroup(permissions).fetch(reportingTo: channel)
    return Dictionary(zip(questions.map(\.stored.id), permits)) { first, _ in first }
  }

  private func permission(_ question: ReceivedBatch.Question) throws(StoreError) -> Permission {
    let (stored, path) = (question.stored, service.path(of: question.stored.identity))
    if let changed = question.changed {
      let isKept = try store.keepsProtection(of: stored, in: changed) && changed.hasSameProtection(as: stored)
      guard isKept else {
        return try store.permission(for: stored, changingTo: changed, path: path, by: peer.caller)
      }
    }
    return try store.permission(for: stored, to: .write, question.secrets, path: path, by: peer.caller)
  }

  /// A password is asked for one item at a time.
  private func requireNoPassword(_ items: [Item]) throws(StoreError) {
    guard items.contains(where: \.access.needsPassword) else { return }
    throw .unsupported(reason: "an item with a password of its own is stored by itself")
  }
}

/// The received part of a batch. Used by one thread.
final class ReceivedBatch {
  /// So many changes, and so many bytes of names and attributes, fit into memory beside all else.
  private static let limits = (items: 200_000, bytes: 128 << 20)

  private enum Change {
    case item(Item)
    case otpauth(ItemIdentity, modified: Timestamp)
  }

  /// A permission that is needed: to write an item's secrets, and to change the item.
  struct Question {
    var stored: Item
    /// nil: only its `otpauth:` URI is written.
    var changed: Item?
    var secrets: ItemSecrets
  }

  let spool: any SecretSpool
  /// The items that get other secrets, as they were when it began.
  private let stored: [ItemID: Item]
  private var received: [Change] = []
  private var bytes = 0
  private var rewritten: Set<ItemID> = []

  init(_ spool: any SecretSpool, rewriting stored: [Item]) {
    self.spool = spool
    self.stored = Dictionary(stored.map { ($0.id, $0) }) { first, _ in first }
  }

  /// False: it is complete. - Throws: `tooLarge`; `damaged` for what belongs to no batch.
  func take(_ message: Message) throws(StoreError) -> Bool {
    switch message.content {
    case .batchItem(var item):
      if stored[item.id] == nil {
        guard item.id.rawValue.isEmpty else { throw WireReader.unreadable }
        item.otpauth = nil
      } else {
        guard rewritten.insert(item.id).inserted else { throw WireReader.unreadable }
      }
      try take(.item(item), message)
    case .batchOtpauth(let identity, let modified):
      try take(.otpauth(identity, modified: modified), message)
    case .commitBatch: return false
    default: throw WireReader.unreadable
    }
    return true
  }

  private func take(_ change: Change, _ message: Message) throws(StoreError) {
    guard let secret = message.takeSecret() else { throw WireReader.unreadable }
    if case .otpauth = change { try KeyURI.check(secret) }
    bytes += message.length
    guard received.count < Self.limits.items, bytes <= Self.limits.bytes else {
      throw .tooLarge(limit: Self.limits.bytes)
    }
    try spool.append(secret)
    received.append(change)
  }

  /// Those that are new, and those that are replaced, as they are to be.
  var items: [Item] {
    received.compactMap { if case .item(let item) = $0 { item } else { nil } }
  }

  /// The changes. An item that another program has changed since is refused.
  var changes: [ItemChange] {
    received.map { change in
      switch change {
      case .otpauth(let identity, let modified): return .setOtpauth(identity, modified: modified)
      case .item(let item):
        guard let before = stored[item.id] else { return .add(item) }
        return .rewrite(item.id) { (present) throws(StoreError) in
          guard present == before else {
            throw .unreachable(reason: "another program has changed an item meanwhile; try again")
          }
          present = item.stored(as: present)
        }
      }
    }
  }

  /// Every item that is there already, with what is written of it.
  func questions(_ index: KeychainIndex) -> [Question] {
    var questions: [ItemID: Question] = [:]
    var order: [ItemID] = []
    var names: [ItemIdentity: ItemID] = [:]
    for item in items {
      names[item.identity] = item.id
      guard let before = stored[item.id] else { continue }
      questions[item.id] = Question(stored: before, changed: item, secrets: .value)
      order.append(item.id)
    }
    for case .otpauth(let identity, _) in received {
      // The item that will have this name, which may have another one now.
      let items = names[identity].map { stored[$0].map { [$0] } ?? [] } ?? index[identity]
      for item in items {
        if questions[item.id] == nil {
          questions[item.id] = Question(stored: item, changed: nil, secrets: [])
          order.append(item.id)
        }
        questions[item.id]?.secrets.insert(.otpauth)
      }
    }
    return order.compactMap { questions[$0] }
  }
}

/// The batch that a mount's process has under way: one at a time.
final class BatchPlace: Sendable {
  private let state = Mutex((isTaken: false, waiting: [@Sendable () -> Void]()))

  /// False: there is another one.
  func take() -> Bool {
    state.withLock { state in
      defer { state.isTaken = true }
      return !state.isTaken
    }
  }

  func leave() {
    let waiting = state.withLock { state in
      defer { state = (false, []) }
      return state.waiting
    }
    for done in waiting { done() }
  }

  /// Calls `done` when there is none; now, if that is so.
  func whenFree(_ done: @escaping @Sendable () -> Void) {
    let isFree = state.withLock { state in
      if state.isTaken { state.waiting.append(done) }
      return !state.isTaken
    }
    if isFree { done() }
  }
}
