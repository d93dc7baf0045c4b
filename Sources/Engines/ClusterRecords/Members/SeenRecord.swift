package import Crypto
package import Model
import Platform
package import VaultRecords

/// The state of a store that a device has seen, as it keeps it on its disk.
package struct SeenRecord: Hashable, Sendable {
  package var cluster: UInt64?
  package var revision: Int64 = 0
  /// The version of the head of each collection.
  package var heads: [[UInt8]: UInt64] = [:]
  /// The digest of the commits up to that version, where it is known.
  package var chains: [[UInt8]: CommitChain] = [:]
  /// The number of entries of the list of members, and the digest of the last one.
  package var members: UInt64 = 0
  package var digest: [UInt8] = []
  /// The digest of the first entry: it stays when a person accepts that the cluster was set back.
  package var first: [UInt8] = []
  /// How often a person has accepted that. A process that began before leaves the file as it is.
  package var accepted: UInt64 = 0
  /// When each other member has last said what it had seen.
  package var sights: [ItemKey: Timestamp] = [:]
  /// The members that have seen something else than was shown here, until a later sight of what did not fit fits.
  package var doubts: [SightPlace: SightDoubt] = [:]

  package init() {}

  /// Keeps what another record of the same state has seen later, or alone: not of the collections that are `gone`.
  package mutating func keep(_ other: SeenRecord, without gone: Set<[UInt8]> = []) {
    guard other.cluster == cluster, other.accepted == accepted, other.first == first else { return }
    revision = max(revision, other.revision)
    for (key, later) in other.heads where !gone.contains(key) {
      guard later > heads[key] ?? 0 else { continue }
      heads[key] = later
      chains[key] = other.chains[key]
    }
    if other.members > members { (members, digest) = (other.members, other.digest) }
    sights.merge(other.sights) { max($0, $1) }
    doubts.merge(other.doubts) { max($0, $1) }
  }

  /// The key that authenticates the file of a device.
  package static func key(_ member: MemberSecret, _ store: ItemKey) throws(StoreError) -> SymmetricKey {
    try member.localKey("seen", store)
  }

  private enum Tag {
    static let cluster: UInt8 = 1
    static let revision: UInt8 = 2
    static let members: UInt8 = 3
    static let digest: UInt8 = 4
    static let head: UInt8 = 5
    static let first: UInt8 = 6
    static let accepted: UInt8 = 7
    /// Before there were digests: the last commit alone. It is left out.
    static let operation: UInt8 = 8
    static let chain: UInt8 = 9
    static let sight: UInt8 = 10
    /// Without the key and the revision. It is left out.
    static let earlierDoubt: UInt8 = 11
    static let doubt: UInt8 = 12
  }

  /// The fields, and HMAC-SHA256 over them.
  package func encoded(_ key: SymmetricKey) -> [UInt8] {
    var writer = FieldWriter(capacity: 64 + 96 * heads.count)
    if let cluster { writer.put(Tag.cluster, cluster) }
    writer.put(Tag.revision, UInt64(clamping: revision))
    writer.put(Tag.members, members)
    writer.put(Tag.digest, digest)
    for (key, version) in heads {
      var head = FieldWriter(capacity: key.count + 8)
      head.put(raw: version)
      head.put(raw: key)
      writer.put(Tag.head, head.bytes)
    }
    for (key, chain) in chains {
      var field = FieldWriter(capacity: key.count + 16)
      field.put(raw: chain.digest.high)
      field.put(raw: chain.digest.low)
      field.put(raw: key)
      writer.put(Tag.chain, field.bytes)
    }
    for (member, time) in sights {
      var field = FieldWriter(capacity: 32)
      field.put(raw: member.high)
      field.put(raw: member.low)
      field.put(raw: ItemRecord.encode(time))
      writer.put(Tag.sight, field.bytes)
    }
    for (place, doubt) in doubts {
      var field = FieldWriter(capacity: 40 + place.key.count)
      field.put(raw: place.member.high)
      field.put(raw: place.member.low)
      field.put(raw: ItemRecord.encode(doubt.time))
      field.put(raw: doubt.comparison.rawValue)
      field.put(raw: UInt64(clamping: doubt.revision))
      field.put(raw: place.key)
      writer.put(Tag.doubt, field.bytes)
    }
    writer.put(Tag.first, first)
    if accepted > 0 { writer.put(Tag.accepted, accepted) }
    let code = HMAC<SHA256>.authenticationCode(for: writer.bytes, using: key)
    return writer.bytes + Array(code)
  }

  /// - Throws: `damaged`.
  package init(_ bytes: [UInt8], _ key: SymmetricKey) throws(StoreError) {
    let content = Array(bytes.dropLast(32))
    let isAuthentic = HMAC<SHA256>.isValidAuthenticationCode(
      bytes.suffix(32), authenticating: content, using: key)
    guard isAuthentic else { throw .damaged(what: "the record of what this device has seen of the cluster") }
    try self.init(content)
  }

  /// The fields of a record whose key is not there: only for what may be refused because of them.
  ///
  /// - Throws: `damaged`.
  package init(unauthenticated bytes: [UInt8]) throws(StoreError) { try self.init(Array(bytes.dropLast(32))) }

  private init(_ content: [UInt8]) throws(StoreError) {
    let span = content.span
    var reader = FieldReader(span)
    while let field = try reader.next() {
      switch field.tag {
      case Tag.cluster: cluster = try field.integer(UInt64.self)
      case Tag.revision: revision = Int64(clamping: try field.integer(UInt64.self))
      case Tag.members: members = try field.integer(UInt64.self)
      case Tag.digest: digest = field.bytes.array
      case Tag.first: first = field.bytes.array
      case Tag.accepted: accepted = try field.integer(UInt64.self)
      case Tag.head:
        var head = FieldReader(field.bytes)
        let version = try head.integer(UInt64.self)
        heads[head.remainder.array] = version
      case Tag.operation: break
      case Tag.chain:
        var chain = FieldReader(field.bytes)
        let digest = ItemKey(high: try chain.integer(UInt64.self), low: try chain.integer(UInt64.self))
        chains[chain.remainder.array] = CommitChain(digest)
      case Tag.sight:
        var part = FieldReader(field.bytes)
        let member = ItemKey(high: try part.integer(UInt64.self), low: try part.integer(UInt64.self))
        sights[member] = try ItemRecord.time(&part)
      case Tag.doubt:
        var part = FieldReader(field.bytes)
        let member = ItemKey(high: try part.integer(UInt64.self), low: try part.integer(UInt64.self))
        let time = try ItemRecord.time(&part)
        let comparison = try SightComparison(rawValue: try part.integer(UInt8.self)).orDamaged()
        let revision = Int64(clamping: try part.integer(UInt64.self))
        let place = SightPlace(member: member, key: part.remainder.array)
        doubts[place] = SightDoubt(time: time, revision: revision, comparison: comparison)
      case Tag.earlierDoubt: break
      default: throw .damaged(what: "the record of what this device has seen of the cluster")
      }
    }
  }
}
