import Model
import Platform
import Store

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
      let isFree = try MessageChannel.makeWakePipe()
      place.whenFree { isFree.wake() }
      switch channel.wait(or: isFree, until: deadline) {
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
      guard channel.wait(until: .now) == .late else { throw .interrupted }
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
