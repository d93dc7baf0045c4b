package import Model
import Platform
package import VaultRecords

/// The record that answers for all entries of a collection: it is replaced with every commit, in the same transaction.
package struct CollectionHead: Hashable, Sendable {
  /// How many of the last commits it names.
  package static let mostOperations = 16

  /// The number of entries.
  package var count: UInt64 = 0
  /// The sum of the terms of all entries.
  package var sum = SetDigest()
  /// The version of the head in which a value changed last; changes of times alone are not counted.
  package var valueVersion: UInt64 = 0
  /// When that was.
  package var valueTime = Timestamp(seconds: 0)
  /// The last commits, the newest first.
  package var operations: [Operation] = []
  /// A digest of all commits in their order; nil: none was made since there are such digests.
  package var chain: CommitChain?
  /// The entries that hold a change which was made, and was not brought into the entries that it changes yet: in this order.
  package var journal: [ItemKey] = []
  /// Whether the values that entries had are kept.
  package var keepsVersions = true

  package init() {}

  /// Notes a commit.
  package mutating func note(_ operation: Operation) {
    chain = (chain ?? CommitChain()).appending(operation)
    operations = [operation] + operations.prefix(Self.mostOperations - 1)
  }

  /// Whether one commit leads from another head to this one: it names the same commits before its last.
  package func follows(_ other: CollectionHead) -> Bool {
    guard operations.dropFirst().elementsEqual(other.operations.prefix(Self.mostOperations - 1)) else {
      return false
    }
    guard let last = operations.first, let before = other.chain else { return true }
    return chain == before.appending(last)
  }
}

extension CollectionHead {
  private enum Tag {
    static let count: UInt8 = 1
    static let sum: UInt8 = 2
    static let valueVersion: UInt8 = 3
    static let valueTime: UInt8 = 4
    static let operation: UInt8 = 5
    static let journal: UInt8 = 6
    static let keepsNoVersions: UInt8 = 7
    static let chain: UInt8 = 8
  }

  package var encoded: [UInt8] {
    var writer = FieldWriter(capacity: 480)
    writer.put(Tag.count, count)
    writer.put(Tag.sum, sum.bytes)
    writer.put(Tag.valueVersion, valueVersion)
    writer.put(Tag.valueTime, ItemRecord.encode(valueTime))
    for operation in operations { writer.put(Tag.operation, operation.number) }
    for chunk in journal { writer.put(Tag.journal, chunk) }
    if let chain { writer.put(Tag.chain, chain.digest) }
    if !keepsVersions { writer.put(Tag.keepsNoVersions, [UInt8]()) }
    return writer.bytes
  }

  /// - Throws: `damaged`.
  package init(_ bytes: Span<UInt8>) throws(StoreError) {
    var reader = FieldReader(bytes)
    while let field = try reader.next() {
      switch field.tag {
      case Tag.count: count = try field.integer(UInt64.self)
      case Tag.sum: sum = try SetDigest(field.bytes)
      case Tag.valueVersion: valueVersion = try field.integer(UInt64.self)
      case Tag.valueTime: valueTime = try ItemRecord.time(field)
      case Tag.operation: operations.append(Operation(try ItemKey(field.bytes).orDamaged()))
      case Tag.journal: journal.append(try ItemKey(field.bytes).orDamaged())
      case Tag.keepsNoVersions: keepsVersions = false
      case Tag.chain: chain = CommitChain(try ItemKey(field.bytes).orDamaged())
      default: throw .damaged(what: "the head of a collection")
      }
    }
  }
}

/// An entry of a collection as it is sealed.
package struct CollectionEntry: Hashable, Sendable {
  /// The commit that made it.
  package var operation: Operation
  package var content: [UInt8]

  package init(operation: Operation, content: [UInt8]) {
    (self.operation, self.content) = (operation, content)
  }

  package var encoded: [UInt8] {
    var writer = FieldWriter(capacity: 24 + content.count)
    writer.put(raw: operation.number.high)
    writer.put(raw: operation.number.low)
    writer.put(raw: content)
    return writer.bytes
  }

  /// - Throws: `damaged`.
  package init(_ bytes: Span<UInt8>) throws(StoreError) {
    var reader = FieldReader(bytes)
    let (high, low) = (try reader.integer(UInt64.self), try reader.integer(UInt64.self))
    operation = Operation(ItemKey(high: high, low: low))
    content = reader.remainder.array
  }
}
