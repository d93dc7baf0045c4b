import Crypto
import CryptoExtras
import FoundationEssentials
import Model
import Platform
import SecretMemory

/// The cost of one derivation by scrypt (RFC 7914).
public struct PassphraseCost: Sendable {
  /// The binary logarithm of scrypt's N.
  let logarithm: UInt8
  let blockSize: UInt32
  let parallelism: UInt32

  /// 2¹⁷: 128 MiB, and about half a second.
  public static let standard = PassphraseCost(logarithm: 17, blockSize: 8, parallelism: 1)
  /// The least that is accepted: 16 MiB.
  public static let least = PassphraseCost(logarithm: 14, blockSize: 8, parallelism: 1)

  /// scrypt with N = 2^`logarithm`, r = 8 and p = 1; nil: less than 2¹⁴, or it takes more than 1 GiB.
  public init?(logarithm: UInt8) {
    self.init(logarithm: logarithm, blockSize: 8, parallelism: 1)
    do { try check() } catch { return nil }
  }

  init(logarithm: UInt8, blockSize: UInt32, parallelism: UInt32) {
    (self.logarithm, self.blockSize, self.parallelism) = (logarithm, blockSize, parallelism)
  }

  /// In bytes.
  private static let mostMemory: UInt64 = 1 << 30

  /// Parameters in a file are hostile input: swift-crypto traps on absurd numbers and ignores its limit.
  ///
  /// - Throws: `damaged` outside of the bounds.
  func check() throws(StoreError) {
    guard (14...22).contains(logarithm), blockSize == 8, (1...4).contains(parallelism),
      memory <= Self.mostMemory
    else { throw .damaged(what: "the cost of a key slot") }
  }

  /// How much memory a derivation takes, in bytes.
  var memory: UInt64 {
    128 * UInt64(blockSize) * UInt64(parallelism) << UInt64(min(logarithm, 32))
  }
}

/// The parameters of a derivation: salt (32) | logarithm of N (1) | r (4) | p (4).
struct PassphraseParameters {
  private static let saltLength = 32
  private static let length = saltLength + 9

  let salt: [UInt8]
  let cost: PassphraseCost

  /// New ones.
  init(_ cost: PassphraseCost) {
    salt = (0..<Self.saltLength).map { _ in UInt8.random(in: .min ... .max) }
    self.cost = cost
  }

  /// - Throws: `damaged`, before anything is derived.
  init(_ bytes: [UInt8]) throws(StoreError) {
    guard bytes.count == Self.length else { throw .damaged(what: "a key slot") }
    salt = Array(bytes.prefix(Self.saltLength))
    let numbers = bytes.dropFirst(Self.saltLength + 1).map(UInt32.init)
    cost = PassphraseCost(
      logarithm: bytes[Self.saltLength], blockSize: numbers[..<4].reduce(0) { $0 << 8 | $1 },
      parallelism: numbers[4...].reduce(0) { $0 << 8 | $1 })
    try cost.check()
  }

  var bytes: [UInt8] {
    var writer = FieldWriter(capacity: Self.length)
    writer.put(raw: salt)
    writer.put(raw: cost.logarithm)
    writer.put(raw: cost.blockSize)
    writer.put(raw: cost.parallelism)
    return writer.bytes
  }

  /// scrypt of a passphrase; half a second of work.
  ///
  /// - Throws: `invalidValue` for an empty passphrase, `outOfMemory`.
  func derive(_ passphrase: borrowing SecretBytes) throws -> SymmetricKey {
    guard !passphrase.isEmpty else { throw StoreError.invalidValue(reason: "the passphrase is empty") }
    try checkMemory()
    // swift-crypto drops a Data with the derived key, unwiped; it goes back to this thread's free list.
    defer { wipeFreed(32) }
    do {
      return try passphrase.span.withBorrowedData {
        try KDF.Scrypt.deriveKey(
          from: $0, salt: salt, outputByteCount: 32, rounds: 1 << Int(cost.logarithm),
          blockSize: Int(cost.blockSize), parallelism: Int(cost.parallelism))
      }
    } catch {
      throw StoreError.outOfMemory
    }
  }

  /// The system would rather end a process than refuse it memory that is not there.
  private func checkMemory() throws(StoreError) {
    guard let available = Self.availableMemory, available < cost.memory else { return }
    throw .outOfMemory
  }

  /// `MemAvailable` of /proc/meminfo in bytes; nil: it does not say.
  private static var availableMemory: UInt64? {
    guard let bytes = try? Files.read("/proc/meminfo") else { return nil }
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    guard let line = lines.first(where: { $0.hasPrefix("MemAvailable:") }) else { return nil }
    return UInt64(line.filter(\.isNumber)).map { $0 * 1024 }
  }
}
