import Model
import Store

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
