import Crypto
import FoundationEssentials
import GRDB
import Model

/// 256 bits that are added up over all rows, modulo 2²⁵⁶.
struct Witness: Equatable {
  private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

  init() {}

  /// 32 bytes, big-endian; missing ones count as zero.
  init(_ bytes: [UInt8]) {
    var words = [UInt64](repeating: 0, count: 4)
    for (index, byte) in bytes.prefix(32).enumerated() {
      words[index / 8] = words[index / 8] << 8 | UInt64(byte)
    }
    self.words = (words[0], words[1], words[2], words[3])
  }

  init(reading reader: inout FieldReader) throws(StoreError) {
    words.0 = try reader.integer(UInt64.self)
    words.1 = try reader.integer(UInt64.self)
    words.2 = try reader.integer(UInt64.self)
    words.3 = try reader.integer(UInt64.self)
  }

  var bytes: [UInt8] {
    var writer = FieldWriter(capacity: 32)
    for word in [words.0, words.1, words.2, words.3] { writer.put(raw: word) }
    return writer.bytes
  }

  static func += (left: inout Witness, right: Witness) {
    var carry = false
    (left.words.3, carry) = add(left.words.3, right.words.3, carry)
    (left.words.2, carry) = add(left.words.2, right.words.2, carry)
    (left.words.1, carry) = add(left.words.1, right.words.1, carry)
    (left.words.0, _) = add(left.words.0, right.words.0, carry)
  }

  static func -= (left: inout Witness, right: Witness) {
    var negated = right
    negated.words = (~right.words.0, ~right.words.1, ~right.words.2, ~right.words.3)
    var one = Witness()
    one.words.3 = 1
    negated += one
    left += negated
  }

  static func == (left: Witness, right: Witness) -> Bool { left.words == right.words }

  private static func add(_ a: UInt64, _ b: UInt64, _ carry: Bool) -> (UInt64, Bool) {
    let (sum, first) = a.addingReportingOverflow(b)
    let (total, second) = sum.addingReportingOverflow(carry ? 1 : 0)
    return (total, first || second)
  }
}

/// What the rows have to add up to. Sealed, and replaced in every transaction that changes a row.
struct Manifest: Equatable {
  /// Grows with every row that is written; no number is ever used twice.
  var generation: UInt64 = 0
  var count: UInt64 = 0
  var sum = Witness()

  /// So many blobs may be sealed under one key with random nonces (NIST SP 800-38D, 8.3).
  private static let lastGeneration: UInt64 = 1 << 32

  /// The number of the next row to be written.
  mutating func advance() throws(StoreError) -> UInt64 {
    guard generation < Self.lastGeneration else {
      throw .readOnly(reason: "the vault's keys are used up; move the items to a new vault")
    }
    generation += 1
    return generation
  }

  mutating func add(_ witness: Witness) {
    count &+= 1
    sum += witness
  }

  mutating func remove(_ witness: Witness) {
    count &-= 1
    sum -= witness
  }
}

extension Manifest {
  /// - Throws: `damaged` also where there is none.
  static func fetch(_ database: Database, _ keys: VaultKeys, _ header: VaultHeader) throws -> Manifest {
    let query = try Query(database, "SELECT sealed FROM manifest WHERE id = 1")
    guard try query.step() else { throw StoreError.damaged(what: "the manifest") }
    return try unsafe Sealing.open(query.blob(0), under: keys.manifest, boundTo: binding(keys, header)) {
      var reader = unsafe FieldReader($0)
      let generation = try reader.integer(UInt64.self)
      let count = try reader.integer(UInt64.self)
      return try Manifest(generation: generation, count: count, sum: Witness(reading: &reader))
    }
  }

  /// nil: it is damaged or gone.
  static func fetchIfWhole(
    _ database: Database, _ keys: VaultKeys, _ header: VaultHeader
  ) throws -> Manifest? {
    do {
      return try fetch(database, keys, header)
    } catch StoreError.damaged {
      return nil
    }
  }

  func store(_ database: Database, _ keys: VaultKeys, _ header: VaultHeader) throws {
    var writer = FieldWriter(capacity: 48)
    writer.put(raw: generation)
    writer.put(raw: count)
    writer.put(raw: sum.bytes)
    let sealed = try Sealing.seal(writer.bytes, under: keys.manifest, boundTo: Self.binding(keys, header))
    let query = try Query(database, "INSERT OR REPLACE INTO manifest (id, sealed) VALUES (1, ?)")
    query.bind(1, sealed)
    try query.run()
  }

  private static func binding(_ keys: VaultKeys, _ header: VaultHeader) -> [UInt8] {
    Binding.manifest(store: keys.store, critical: header.critical, features: header.features).bytes
  }
}
