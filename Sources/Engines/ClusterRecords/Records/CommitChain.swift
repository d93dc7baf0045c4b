import Crypto
package import Model
import Platform
package import VaultRecords

/// A digest of the commits to a collection, in their order: two histories that differ in one commit never have the same again.
package struct CommitChain: Hashable, Sendable {
  /// The first 128 bits of SHA-256 over the digest before, and the commit.
  package let digest: ItemKey

  /// That of no commit.
  package init() { digest = ItemKey(high: 0, low: 0) }

  package init(_ digest: ItemKey) { self.digest = digest }

  /// The digest after one more commit.
  package func appending(_ operation: Operation) -> CommitChain {
    var writer = FieldWriter(capacity: 48)
    writer.put(raw: "\(ClusterFormat.prefix)/chain".utf8)
    writer.put(raw: digest.high)
    writer.put(raw: digest.low)
    writer.put(raw: operation.number.high)
    writer.put(raw: operation.number.low)
    var words: (high: UInt64, low: UInt64) = (0, 0)
    for byte in SHA256.hash(data: writer.bytes).prefix(16) {
      words.high = words.high << 8 | words.low >> 56
      words.low = words.low << 8 | UInt64(byte)
    }
    return CommitChain(ItemKey(high: words.high, low: words.low))
  }
}

/// Commits to a collection that its head does not name any more: a key for each sixteen versions of the head.
///
/// They are no secret and need no seal: the digest in the head says whether they are the right ones.
package enum CommitBlock {
  /// The versions of a block: block 0 has those of 0 to 15.
  package static let size = UInt64(CollectionHead.mostOperations)
  /// The place of a block's last version.
  package static let last: UInt64 = 15
  /// How many blocks are kept.
  package static let most: UInt64 = 256
  /// So many commits can be followed at least, whichever version the block begins with that has the first of them.
  package static let provable: UInt64 = 4_080

  /// The commits that made the versions up to the block's last one, the newest first.
  package static func encode(_ operations: [Operation]) -> [UInt8] {
    var writer = FieldWriter(capacity: 16 * operations.count)
    for operation in operations {
      writer.put(raw: operation.number.high)
      writer.put(raw: operation.number.low)
    }
    return writer.bytes
  }

  /// - Throws: `damaged`.
  package static func decode(_ bytes: [UInt8]) throws(StoreError) -> [Operation] {
    guard bytes.count.isMultiple(of: 16), bytes.count <= 16 * Int(size) else {
      throw .damaged(what: "a record of commits")
    }
    let span = bytes.span
    var reader = FieldReader(span)
    var operations: [Operation] = []
    for _ in 0..<bytes.count / 16 {
      let (high, low) = (try reader.integer(UInt64.self), try reader.integer(UInt64.self))
      operations.append(Operation(ItemKey(high: high, low: low)))
    }
    return operations
  }
}
