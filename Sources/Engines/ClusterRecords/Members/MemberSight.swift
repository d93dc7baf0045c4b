package import Model
import Platform
package import VaultRecords

/// The state of a store that a member has seen, signed by it: by these, a cluster that shows different things to different members is
/// found out.
package struct MemberSight: Hashable, Sendable {
  /// A state of a collection.
  package struct Head: Hashable, Sendable {
    /// The key of the head.
    package var key: [UInt8]
    package var version: UInt64
    /// The commit that made this version; nil: the first state, which no commit made.
    package var operation: Operation?

    package init(key: [UInt8], version: UInt64, operation: Operation?) {
      (self.key, self.version, self.operation) = (key, version, operation)
    }
  }

  package var member: ItemKey
  package var time: Timestamp
  package var revision: Int64
  /// The number of entries of the list of members, and the digest of the last one.
  package var members: UInt64
  package var digest: [UInt8]
  package var heads: [Head]

  package init(
    member: ItemKey, time: Timestamp, revision: Int64, members: UInt64, digest: [UInt8], heads: [Head]
  ) {
    (self.member, self.time, self.revision) = (member, time, revision)
    (self.members, self.digest, self.heads) = (members, digest, heads)
  }

  private enum Tag {
    static let member: UInt8 = 1
    static let time: UInt8 = 2
    static let revision: UInt8 = 3
    static let members: UInt8 = 4
    static let digest: UInt8 = 5
    static let head: UInt8 = 6
  }

  /// In bytes.
  private static let signatureLength = 64

  private var fields: [UInt8] {
    var writer = FieldWriter(capacity: 1024)
    writer.put(Tag.member, member)
    writer.put(Tag.time, ItemRecord.encode(time))
    writer.put(Tag.revision, UInt64(clamping: revision))
    writer.put(Tag.members, members)
    writer.put(Tag.digest, digest)
    for head in heads {
      var part = FieldWriter(capacity: 128)
      part.put(raw: head.version)
      part.put(raw: head.operation?.number.high ?? 0)
      part.put(raw: head.operation?.number.low ?? 0)
      part.put(raw: head.key)
      writer.put(Tag.head, part.bytes)
    }
    return writer.bytes
  }

  private static func signed(_ fields: [UInt8], _ store: ItemKey) -> [UInt8] {
    Array("\(ClusterFormat.prefix)/seen".utf8) + store.bytes + fields
  }

  /// The fields, and the member's signature. - Throws: `damaged`.
  package func signed(by secret: MemberSecret, of store: ItemKey) throws(StoreError) -> [UInt8] {
    let fields = fields
    return fields + (try secret.sign(Self.signed(fields, store)))
  }

  /// - Throws: `damaged` where no member has signed it.
  package init(_ bytes: [UInt8], _ members: [ItemKey: MemberKeys], of store: ItemKey) throws(StoreError) {
    let fields = Array(bytes.dropLast(Self.signatureLength))
    var (member, time): (ItemKey?, Timestamp?) = (nil, nil)
    var (revision, count): (UInt64?, UInt64?) = (nil, nil)
    var digest: [UInt8] = []
    var heads: [Head] = []
    let span = fields.span
    var reader = FieldReader(span)
    while let field = try reader.next() {
      switch field.tag {
      case Tag.member: member = ItemKey(field.bytes)
      case Tag.time: time = try ItemRecord.time(field)
      case Tag.revision: revision = try field.integer(UInt64.self)
      case Tag.members: count = try field.integer(UInt64.self)
      case Tag.digest: digest = field.bytes.array
      case Tag.head: heads.append(try Self.head(field.bytes))
      default: throw .damaged(what: "what a member has seen")
      }
    }
    self.init(
      member: try member.orDamaged(), time: try time.orDamaged(),
      revision: Int64(clamping: try revision.orDamaged()), members: try count.orDamaged(), digest: digest,
      heads: heads)
    let signature = Array(bytes.suffix(Self.signatureLength))
    guard members[self.member]?.verify(signature, of: Self.signed(fields, store)) == true else {
      throw .damaged(what: "what a member has seen")
    }
  }

  private static func head(_ bytes: Span<UInt8>) throws(StoreError) -> Head {
    var reader = FieldReader(bytes)
    let version = try reader.integer(UInt64.self)
    let number = ItemKey(high: try reader.integer(UInt64.self), low: try reader.integer(UInt64.self))
    let isNone = number == ItemKey(high: 0, low: 0)
    return Head(key: reader.remainder.array, version: version, operation: isNone ? nil : Operation(number))
  }
}

/// The result of comparing two sights of one collection.
package enum SightComparison: UInt8, Hashable, Sendable {
  /// One is the other's past.
  case fits = 0
  /// The other one has seen commits that are not shown here.
  case isWithheld = 1
  /// The two have seen different commits at the same place.
  case isForked = 2

  /// `own`: the version here, and the last commits, the newest first. nil: the other one is too old for them to tell.
  package init?(_ other: MemberSight.Head, own version: UInt64, _ operations: [Operation]) {
    guard version >= other.version else {
      self = .isWithheld
      return
    }
    let distance = version - other.version
    guard distance < UInt64(operations.count), let operation = other.operation else { return nil }
    self = operations[Int(distance)] == operation ? .fits : .isForked
  }
}
