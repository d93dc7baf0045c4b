import Crypto
import CryptoExtras
import FoundationEssentials
import GRDB

/// Reads a vault by `Documentation/VAULT.md` and `VAULT-1.md` alone: nothing of the module `Vault` is used here.
struct IndependentReader {
  struct Entry: Equatable {
    var fields: [UInt8: [[UInt8]]]
    var secret: [UInt8]
  }

  private let database: DatabaseQueue
  private let version: Int
  private let store: [UInt8]
  private let header: [(UInt8, [UInt8])]
  private let master: [UInt8]
  /// Of a passphrase's slot.
  private let passcode: [UInt8]
  private let deviceKey: [UInt8]
  /// Of the items that have one of their own.
  private let password: [UInt8]

  /// `passphrase`: of the vault; empty: it opens by its key file.
  init(
    database path: String, key: [UInt8], deviceKey: [UInt8], passphrase: String = "", password: String = ""
  ) throws {
    let queue = try DatabaseQueue(path: path)
    let version = try queue.read { try Int.fetchOne($0, sql: "PRAGMA user_version") ?? 0 }
    let vault = try queue.read { try Row.fetchAll($0, sql: "SELECT * FROM vault") }[0]
    let slot = try queue.read { try Row.fetchAll($0, sql: "SELECT * FROM slot") }[0]
    (database, self.version, self.deviceKey, self.password) = (
      queue, version, deviceKey, Array(password.utf8)
    )
    let store = Self.bytes(vault, "store")
    header = [(8, Self.big(vault["critical"])), (9, Self.big(vault["features"]))]
    let parameters = Self.bytes(slot, "parameters")
    func binding(_ purpose: UInt8) -> [UInt8] {
      var fields: [(UInt8, [UInt8])] = [(1, store), (2, [purpose]), (3, Self.big(slot["id"]))]
      fields += [(4, Self.big(slot["kind"])), (5, parameters)]
      if version > 1 { fields.append((14, Self.bytes(slot, "public"))) }
      return Self.binding(version, fields)
    }
    let salt = passphrase.isEmpty ? parameters : Array(parameters.prefix(32))
    let input = passphrase.isEmpty ? key : try Self.scrypt(Array(passphrase.utf8), parameters) + key
    let slotKey = Self.hkdf(input, salt, binding(1))
    let commitment =
      version == 1
      ? Array(HMAC<SHA256>.authenticationCode(for: Array("keyhole/v1/commit".utf8), using: slotKey))
      : Self.bytes(Self.hkdf(input, salt, binding(9)))
    guard commitment == Self.bytes(slot, "commitment") else { throw CryptoKitError.authenticationFailure }
    self.store = store
    let keys = try Self.open(Self.bytes(slot, "sealed"), slotKey, binding(1))
    (master, passcode) = (Array(keys.prefix(32)), Array(keys.dropFirst(32)))
  }

  /// The fields of the manifest; of format 2.
  func manifest() throws -> [UInt8: [[UInt8]]] {
    let row = try rows("SELECT sealed FROM manifest")[0]
    let binding = Self.binding(version, [(1, store), (2, [3])] + header)
    return Self.fields(
      Self.unpadded(try Self.open(Self.bytes(row, "sealed"), derived("manifest"), binding)))
  }

  /// The digests that the manifest has to have: of the slots and the class keys.
  func digests() throws -> [[UInt8]] {
    let slots = try rows("SELECT * FROM slot ORDER BY id").flatMap { row -> [UInt8] in
      var fields: [(UInt8, [UInt8])] = [(1, Self.big(row["id"])), (2, Self.big(row["kind"]))]
      let columns = ["parameters", "commitment", "sealed", "public", "checksum"]
      for (index, column) in columns.enumerated() {
        fields.append((UInt8(3 + index), Self.bytes(row, column)))
      }
      return Self.encode(fields)
    }
    let keys = try rows("SELECT * FROM class_key ORDER BY id").flatMap { row -> [UInt8] in
      var fields: [(UInt8, [UInt8])] = [(1, Self.big(row["id"])), (2, Self.big(row["class"]))]
      fields += [(3, Self.big(row["kind"])), (4, Self.bytes(row, "device")), (5, Self.bytes(row, "sealed"))]
      return Self.encode(fields)
    }
    return [Array("slot".utf8) + slots, Array("class".utf8) + keys].map {
      Array(HMAC<SHA256>.authenticationCode(for: $0, using: derived("digest")))
    }
  }

  /// The hash tree that the manifest has to have in its field 4, for so many leaves as it says.
  func tree() throws -> [UInt8] {
    let number = try Array(manifest()[4]?[0].prefix(8) ?? [])
    let count = number.reduce(0) { $0 << 8 | Int($1) }
    let bits = (0...).first { 1 << $0 >= count } ?? 0
    var leaves = [[UInt8]](repeating: [], count: count)
    for row in try rows("SELECT tag, uuid, revision FROM item NOT INDEXED ORDER BY tag") {
      let tag = Self.bytes(row, "tag")
      func leaf(_ bits: Int) -> Int {
        (0..<bits).reduce(0) { $0 | Int(tag[$1 / 8] >> (7 - $1 % 8) & 1) << $1 }
      }
      let place = leaf(bits) < count ? leaf(bits) : leaf(bits - 1)
      leaves[place] += tag + Self.bytes(row, "uuid") + Self.big(row["revision"])
    }
    let digests = leaves.enumerated().map { digest(Array("leaf".utf8) + Self.big(Int64($0)) + $1) }
    let pages = stride(from: 0, to: count, by: 256).map { digests[$0..<min($0 + 256, count)].flatMap { $0 } }
    return number + pages.enumerated().flatMap { digest(Array("page".utf8) + Self.big(Int64($0)) + $1) }
  }

  private func digest(_ bytes: [UInt8]) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: bytes, using: derived("digest")).prefix(16))
  }

  func entries() throws -> [Entry] {
    let newest =
      version == 1
      ? "JOIN secret USING (uuid)" : "JOIN secret ON secret.uuid = item.uuid AND secret.part = 0"
    return try rows(
      """
      SELECT item.uuid AS uuid, tag, item.revision AS revision, item.sealed AS meta, class_key.id AS ckid,
      secret.kind AS kind, parameters, wrapped, secret.sealed AS value, class_key.class AS class, device,
      class_key.sealed AS ck FROM item \(newest) JOIN class_key ON class_key.id = secret.class_key
      """
    ).map(entry)
  }

  private func entry(_ row: Row) throws -> Entry {
    let (uuid, id) = (Self.bytes(row, "uuid"), Self.big(row["ckid"]))
    let place: [(UInt8, [UInt8])] = [(1, store), (2, [4]), (10, uuid)]
    let metadata = Self.binding(
      version, place + [(11, Self.big(row["revision"])), (12, Self.bytes(row, "tag"))])
    let fields = Self.fields(
      Self.unpadded(try Self.open(Self.bytes(row, "meta"), derived("meta"), metadata)))
    let accessibility = fields[3]?[0] ?? []
    let access = Array(
      SHA256.hash(data: Self.encode([(1, fields[33]?[0] ?? [])] + (fields[34] ?? []).map { (2, $0) })))
    let classKey = SymmetricKey(data: try classKey(row, accessibility))
    // Of kind 3, what is inside is of format 1.
    let kind: Int64 = row["kind"]
    let inside = kind == 3 ? 1 : version
    func binding(_ purpose: UInt8, _ version: Int) -> [UInt8] {
      let number = Self.big(kind == 3 && version == 1 ? 2 : kind)
      var bound: [(UInt8, [UInt8])] = [(1, store), (2, [purpose]), (3, id), (4, number)]
      bound += [(5, Self.bytes(row, "parameters")), (6, accessibility), (10, uuid)]
      bound += [(11, fields[2]?[0] ?? []), (13, access)]
      if version > 1 { bound.append((15, [0])) }
      return Self.binding(version, bound)
    }
    var wrapped = try Self.open(Self.bytes(row, "wrapped"), classKey, binding(5, version))
    if kind != 1 {
      let parameters = Self.bytes(row, "parameters")
      let key = Self.hkdf(
        try Self.scrypt(password, parameters), Array(parameters.prefix(32)), binding(7, inside))
      wrapped = try Self.open(wrapped, key, binding(7, inside))
    }
    let secret = try Self.open(
      Self.bytes(row, "value"), SymmetricKey(data: wrapped), binding(6, inside))
    return Entry(fields: fields, secret: Self.unpadded(secret))
  }

  private func classKey(_ row: Row, _ accessibility: [UInt8]) throws -> [UInt8] {
    let place: [(UInt8, [UInt8])] = [(1, store), (2, [2]), (3, Self.big(row["ckid"]))]
    let binding = Self.binding(version, place + [(6, accessibility), (7, Self.bytes(row, "device"))])
    var (input, info) = (master, Array("keyhole/v\(version)/class".utf8) + accessibility)
    if accessibility[0] >= 3 {
      input += deviceKey
      info += Self.bytes(row, "device")
    }
    if version > 1, accessibility[0] == 5 { input += passcode }
    return try Self.open(Self.bytes(row, "ck"), Self.hkdf(input, store, info), binding)
  }

  private func rows(_ query: String) throws -> [Row] {
    try database.read { try Row.fetchAll($0, sql: query) }
  }

  private func derived(_ name: String) -> SymmetricKey {
    Self.hkdf(master, store, Array("keyhole/v\(version)/\(name)".utf8))
  }

  private static func hkdf(_ input: [UInt8], _ salt: [UInt8], _ info: [UInt8]) -> SymmetricKey {
    HKDF<SHA256>.deriveKey(
      inputKeyMaterial: SymmetricKey(data: input), salt: salt, info: info, outputByteCount: 32)
  }

  private static func scrypt(_ passphrase: [UInt8], _ parameters: [UInt8]) throws -> [UInt8] {
    let key = try KDF.Scrypt.deriveKey(
      from: Data(passphrase), salt: Array(parameters.prefix(32)), outputByteCount: 32,
      rounds: 1 << Int(parameters[32]), blockSize: number(parameters[33..<37]),
      parallelism: number(parameters[37..<41]))
    return bytes(key)
  }

  private static func open(_ sealed: [UInt8], _ key: SymmetricKey, _ binding: [UInt8]) throws -> [UInt8] {
    Array(try AES.GCM.open(AES.GCM.SealedBox(combined: sealed), using: key, authenticating: binding))
  }

  private static func binding(_ version: Int, _ fields: [(UInt8, [UInt8])]) -> [UInt8] {
    Array("keyhole/v\(version)".utf8) + encode(fields)
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

  private static func bytes(_ key: SymmetricKey) -> [UInt8] {
    unsafe key.withUnsafeBytes { unsafe Array($0) }
  }
}
