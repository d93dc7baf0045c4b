import Crypto
import CryptoExtras
import FoundationEssentials
import GRDB

/// Reads a vault by `Documentation/VAULT.md` alone: nothing of the module `Vault` is used here.
struct IndependentReader {
  struct Entry: Equatable {
    var fields: [UInt8: [[UInt8]]]
    var secret: [UInt8]
  }

  private let database: DatabaseQueue
  private let store: [UInt8]
  private let master: SymmetricKey
  private let deviceKey: [UInt8]
  /// Of the items that have one of their own.
  private let password: [UInt8]

  init(database path: String, key: [UInt8], deviceKey: [UInt8], password: String = "") throws {
    let queue = try DatabaseQueue(path: path)
    let rows = try queue.read { try Row.fetchAll($0, sql: "SELECT * FROM vault, slot") }
    (database, self.deviceKey, self.password) = (queue, deviceKey, Array(password.utf8))
    let store = Self.bytes(rows[0], "store")
    let parameters = Self.bytes(rows[0], "parameters")
    let binding = Self.binding([
      (1, store), (2, [1]), (3, Self.big(rows[0]["id:1"] ?? 1)), (4, Self.big(rows[0]["kind"])),
      (5, parameters),
    ])
    let slotKey = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: SymmetricKey(data: key), salt: parameters, info: binding, outputByteCount: 32)
    let code = HMAC<SHA256>.authenticationCode(for: Array("keyhole/v1/commit".utf8), using: slotKey)
    guard Array(code) == Self.bytes(rows[0], "commitment") else { throw CryptoKitError.authenticationFailure }
    self.store = store
    master = SymmetricKey(data: try Self.open(Self.bytes(rows[0], "sealed"), slotKey, binding))
  }

  func entries() throws -> [Entry] {
    let sql = """
      SELECT item.uuid AS uuid, tag, revision, item.sealed AS meta, class_key.id AS ckid, secret.kind AS kind,
      parameters, wrapped, secret.sealed AS value, class_key.class AS class, device, class_key.sealed AS ck
      FROM item JOIN secret USING (uuid) JOIN class_key ON class_key.id = secret.class_key
      """
    return try database.read { try Row.fetchAll($0, sql: sql) }.map(entry)
  }

  private func entry(_ row: Row) throws -> Entry {
    let (uuid, id) = (Self.bytes(row, "uuid"), Self.big(row["ckid"]))
    let metadata = Self.binding([
      (1, store), (2, [4]), (10, uuid), (11, Self.big(row["revision"])), (12, Self.bytes(row, "tag")),
    ])
    let fields = Self.fields(
      Self.unpadded(try Self.open(Self.bytes(row, "meta"), derived("keyhole/v1/meta"), metadata)))
    let accessibility = fields[3]?[0] ?? []
    let access = Array(
      SHA256.hash(data: Self.encode([(1, fields[33]?[0] ?? [])] + (fields[34] ?? []).map { (2, $0) })))
    let classBinding = Self.binding([
      (1, store), (2, [2]), (3, id), (6, accessibility), (7, Self.bytes(row, "device")),
    ])
    let classKey = SymmetricKey(
      data: try Self.open(Self.bytes(row, "ck"), classWrap(accessibility, row), classBinding))
    func binding(_ purpose: UInt8) -> [UInt8] {
      Self.binding([
        (1, store), (2, [purpose]), (3, id), (4, Self.big(row["kind"])), (5, Self.bytes(row, "parameters")),
        (6, accessibility), (10, uuid), (11, fields[2]?[0] ?? []), (13, access),
      ])
    }
    var wrapped = try Self.open(Self.bytes(row, "wrapped"), classKey, binding(5))
    if row["kind"] == 2 {
      let outer = try passwordKey(Self.bytes(row, "parameters"), info: binding(7))
      wrapped = try Self.open(wrapped, outer, binding(7))
    }
    let key = SymmetricKey(data: wrapped)
    let secret = Self.unpadded(try Self.open(Self.bytes(row, "value"), key, binding(6)))
    return Entry(fields: fields, secret: secret)
  }

  private func passwordKey(_ parameters: [UInt8], info: [UInt8]) throws -> SymmetricKey {
    let salt = Array(parameters.prefix(32))
    let key = try KDF.Scrypt.deriveKey(
      from: Data(password), salt: salt, outputByteCount: 32, rounds: 1 << Int(parameters[32]),
      blockSize: Self.number(parameters[33..<37]), parallelism: Self.number(parameters[37..<41]))
    return HKDF<SHA256>.deriveKey(inputKeyMaterial: key, salt: salt, info: info, outputByteCount: 32)
  }

  private func derived(_ info: String) -> SymmetricKey {
    HKDF<SHA256>.deriveKey(
      inputKeyMaterial: master, salt: store, info: Array(info.utf8), outputByteCount: 32)
  }

  private func classWrap(_ accessibility: [UInt8], _ row: Row) -> SymmetricKey {
    var (input, info) = (
      unsafe master.withUnsafeBytes { unsafe Array($0) }, Array("keyhole/v1/class".utf8) + accessibility
    )
    if accessibility[0] >= 3 {
      input += deviceKey
      info += Self.bytes(row, "device")
    }
    return HKDF<SHA256>.deriveKey(
      inputKeyMaterial: SymmetricKey(data: input), salt: store, info: info, outputByteCount: 32)
  }

  private static func open(_ sealed: [UInt8], _ key: SymmetricKey, _ binding: [UInt8]) throws -> [UInt8] {
    Array(try AES.GCM.open(AES.GCM.SealedBox(combined: sealed), using: key, authenticating: binding))
  }

  private static func binding(_ fields: [(UInt8, [UInt8])]) -> [UInt8] {
    Array("keyhole/v1".utf8) + encode(fields)
  }

  private static func encode(_ fields: [(UInt8, [UInt8])]) -> [UInt8] {
    fields.flatMap { [$0.0] + big(Int64($0.1.count)).suffix(4) + $0.1 }
  }

  private static func fields(_ bytes: [UInt8]) -> [UInt8: [[UInt8]]] {
    var (fields, rest) = ([UInt8: [[UInt8]]](), bytes[...])
    while let tag = rest.popFirst() {
      let count = number(rest.prefix(4))
      fields[tag, default: []].append(Array(rest.dropFirst(4).prefix(count)))
      rest = rest.dropFirst(4 + count)
    }
    return fields
  }

  private static func unpadded(_ bytes: [UInt8]) -> [UInt8] {
    Array(bytes.dropFirst(4).prefix(number(bytes.prefix(4))))
  }

  private static func number(_ bytes: some Sequence<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

  private static func big(_ value: Int64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
  }

  private static func bytes(_ row: Row, _ column: String) -> [UInt8] { Array(row[column] as Data) }
}
