import Crypto
import FoundationEssentials

/// The keys of a vault that opens with its key file, made by `Documentation/VAULT.md` alone.
struct ClassKeys {
  let master: [UInt8]
  /// Of the class `whenUnlocked`.
  let whenUnlocked: [UInt8]

  init(_ world: World) throws {
    let store = try Self.column("store FROM vault", world)
    let parameters = try Self.column("parameters FROM slot", world)
    let slot = Self.binding([
      (1, store), (2, [1]), (3, Self.big(1)), (4, Self.big(2)), (5, parameters), (14, []),
    ])
    let file = try System.read(world.data + "/keyhole/vault.key")
    master = try Self.open(
      Self.column("sealed FROM slot", world), Self.derive(file, salt: parameters, info: slot), slot)
    let id = try Self.column("printf('%016x', id) FROM class_key WHERE class = 1", world, isNumber: true)
    let binding = Self.binding([
      (1, store), (2, [2]), (3, id), (6, [1]), (7, [UInt8](repeating: 0, count: 16)),
    ])
    let wrap = Self.derive(master, salt: store, info: Array("keyhole/v2/class".utf8) + [1])
    whenUnlocked = try Self.open(
      Self.column("sealed FROM class_key WHERE class = 1", world), wrap, binding)
  }

  private static func column(_ query: String, _ world: World, isNumber: Bool = false) throws -> [UInt8] {
    let words = query.split(separator: " FROM ", maxSplits: 1)
    let column = isNumber ? String(words[0]) : "hex(\(words[0]))"
    let output = try world.sh(
      "sqlite3 -readonly \"$DATA/keyhole/vault.db\" \"SELECT \(column) FROM \(words[1])\"")
    let digits = Array(output.lines.first ?? "")
    return stride(from: 0, to: digits.count, by: 2).compactMap {
      UInt8(String(digits[$0...($0 + 1)]), radix: 16)
    }
  }

  private static func derive(_ input: [UInt8], salt: [UInt8], info: [UInt8]) -> SymmetricKey {
    HKDF<SHA256>.deriveKey(
      inputKeyMaterial: SymmetricKey(data: input), salt: salt, info: info, outputByteCount: 32)
  }

  private static func open(_ sealed: [UInt8], _ key: SymmetricKey, _ binding: [UInt8]) throws -> [UInt8] {
    Array(try AES.GCM.open(AES.GCM.SealedBox(combined: sealed), using: key, authenticating: binding))
  }

  private static func binding(_ fields: [(UInt8, [UInt8])]) -> [UInt8] {
    Array("keyhole/v2".utf8) + fields.flatMap { [$0.0] + big(UInt64($0.1.count)).suffix(4) + $0.1 }
  }

  private static func big(_ value: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
  }
}
