import Crypto
package import Model
import Platform
package import VaultRecords

/// The members of a store: a list of changes, each signed by a member of before, and naming the change before it.
///
/// It is not sealed, as one who joins has to check it: it has public keys only.
package struct MemberLog: Sendable {
  /// One change, as it is signed.
  package struct Entry: Hashable, Sendable {
    package var store: ItemKey
    package var position: UInt64
    /// SHA-256 of the stored form of the entry before; zeros for the first.
    package var previous: [UInt8]
    /// The epoch that the entry belongs to, or begins.
    package var epoch: UInt32
    /// The name of the epoch's master key: `StoreIdentity`.
    package var identity: [UInt8]
    package var change: Change
    package var signer: ItemKey

    package enum Change: Hashable, Sendable {
      case add(MemberKeys)
      /// A new epoch, without these members; there may be none of them.
      case rotate(removing: [ItemKey])
    }
  }

  package private(set) var store: ItemKey
  /// The number of entries.
  package private(set) var count: UInt64 = 0
  /// SHA-256 of the last entry.
  package private(set) var digest: [UInt8]
  /// SHA-256 of the first entry.
  package private(set) var first: [UInt8] = []
  package private(set) var epoch: UInt32 = 0
  package private(set) var identity: [UInt8] = []
  package private(set) var members: [ItemKey: MemberKeys] = [:]

  /// An empty one.
  package init(store: ItemKey) {
    self.store = store
    digest = [UInt8](repeating: 0, count: 32)
  }

  private static var invalid: StoreError { .damaged(what: "the list of members") }

  /// The next entry, signed. - Throws: `damaged`.
  package func next(
    _ change: Entry.Change, epoch: UInt32, identity: [UInt8], by signer: MemberSecret
  ) throws(StoreError) -> [UInt8] {
    let entry = Entry(
      store: store, position: count, previous: digest, epoch: epoch, identity: identity, change: change,
      signer: signer.id)
    let signature = try signer.sign(entry.signed)
    return entry.stored(signature)
  }

  /// Takes an entry over, if it follows the last one and a member of then has signed it. - Throws: `damaged`.
  package mutating func append(_ stored: [UInt8]) throws(StoreError) {
    let (entry, signature) = try Entry.parse(stored.span)
    guard entry.store == store, entry.position == count, entry.previous == digest, entry.identity.count == 32
    else { throw Self.invalid }
    var next = members
    switch entry.change {
    case .add(let keys):
      // The first one begins the store, and signs itself.
      let isFirst = count == 0
      guard entry.epoch == (isFirst ? 1 : epoch), isFirst || entry.identity == identity, next[keys.id] == nil,
        !isFirst || entry.signer == keys.id
      else { throw Self.invalid }
      next[keys.id] = keys
      guard (isFirst ? next : members)[entry.signer]?.verify(signature, of: entry.signed) == true else {
        throw Self.invalid
      }
    case .rotate(let removed):
      guard count > 0, entry.epoch == epoch + 1, entry.identity != identity, !removed.contains(entry.signer),
        members[entry.signer]?.verify(signature, of: entry.signed) == true
      else { throw Self.invalid }
      for id in removed { next[id] = nil }
    }
    (members, epoch, identity) = (next, entry.epoch, entry.identity)
    count += 1
    digest = Array(SHA256.hash(data: stored))
    if first.isEmpty { first = digest }
  }
}

extension MemberLog.Entry {
  private enum Tag {
    static let store: UInt8 = 1
    static let position: UInt8 = 2
    static let previous: UInt8 = 3
    static let epoch: UInt8 = 4
    static let identity: UInt8 = 5
    static let added: UInt8 = 6
    static let removed: UInt8 = 7
    static let signer: UInt8 = 8
    static let signature: UInt8 = 15
  }

  /// The bytes that are signed.
  var signed: [UInt8] {
    var writer = FieldWriter(capacity: 1500)
    writer.put(raw: "\(ClusterFormat.prefix)/log".utf8)
    put(into: &writer)
    return writer.bytes
  }

  fileprivate func stored(_ signature: [UInt8]) -> [UInt8] {
    var writer = FieldWriter(capacity: 1500)
    put(into: &writer)
    writer.put(Tag.signature, signature)
    return writer.bytes
  }

  private func put(into writer: inout FieldWriter) {
    writer.put(Tag.store, store)
    writer.put(Tag.position, position)
    writer.put(Tag.previous, previous)
    writer.put(Tag.epoch, epoch)
    writer.put(Tag.identity, identity)
    switch change {
    case .add(let keys): writer.put(Tag.added, keys.encoded)
    case .rotate(let removed):
      for id in removed { writer.put(Tag.removed, id) }
    }
    writer.put(Tag.signer, signer)
  }

  fileprivate static func parse(_ bytes: Span<UInt8>) throws(StoreError) -> (MemberLog.Entry, [UInt8]) {
    var (store, signer): (ItemKey?, ItemKey?) = (nil, nil)
    var (position, epoch): (UInt64?, UInt32?) = (nil, nil)
    var (previous, identity, signature): ([UInt8], [UInt8], [UInt8]) = ([], [], [])
    var added: MemberKeys?
    var removed: [ItemKey] = []
    var reader = FieldReader(bytes)
    while let field = try reader.next() {
      switch field.tag {
      case Tag.store: store = ItemKey(field.bytes)
      case Tag.position: position = try field.integer(UInt64.self)
      case Tag.previous: previous = field.bytes.array
      case Tag.epoch: epoch = try field.integer(UInt32.self)
      case Tag.identity: identity = field.bytes.array
      case Tag.added: added = try MemberKeys(field.bytes)
      case Tag.removed: removed.append(try ItemKey(field.bytes).orDamaged())
      case Tag.signer: signer = ItemKey(field.bytes)
      case Tag.signature: signature = field.bytes.array
      default: throw .damaged(what: "the list of members")
      }
    }
    let entry = MemberLog.Entry(
      store: try store.orDamaged(), position: try position.orDamaged(), previous: previous,
      epoch: try epoch.orDamaged(), identity: identity,
      change: added.map { .add($0) } ?? .rotate(removing: removed), signer: try signer.orDamaged())
    return (entry, signature)
  }

  /// The store that a first entry begins. - Throws: `damaged`.
  package static func store(ofFirst stored: [UInt8]) throws(StoreError) -> ItemKey {
    try parse(stored.span).0.store
  }
}
