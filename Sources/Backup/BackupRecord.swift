public import Model
import SecretMemory
import Vault

/// The records of a backup, in their order: `Documentation/FORMATS.md`, “Backups”.
enum BackupRecord: ~Copyable {
  /// The first one: when the backup was begun.
  case version(created: Timestamp)
  /// The file of a suite, by its name, and when it was last changed; its content follows as `bytes`.
  case suite(name: String, modified: Timestamp)
  /// The file with the times of the keys of the suite before it; its content follows as `bytes`.
  case times
  case bytes([UInt8])
  /// No versions are kept of the keys of the suite before it: `user.keyhole.history` is 0.
  case noVersions
  case vault(VaultArchive.Record)
  case keyFile(SecretBytes)
  /// The last one. Without it the backup is not whole.
  case end(BackupSummary)

  enum Kind: UInt8 {
    case version = 1
    case suite
    case times
    case bytes
    case vaultFormat
    case vaultTable
    case vaultRow
    case keyFile
    case end
    case noVersions
  }

  /// Of the records themselves.
  static let version: UInt8 = 1
  /// In bytes. A row's two blobs are 1 MiB each at most, and padded.
  static let largest = 4 << 20
}

/// The summary of a backup, for the user.
public struct BackupSummary: Hashable, Sendable {
  /// When it was begun.
  public var created = Timestamp(seconds: 0)
  /// The number of suites.
  public var suites: UInt64 = 0
  /// Whether a vault is in it.
  public var hasVault = false
  /// Of the vault, with their secrets.
  public var items: UInt64 = 0
  /// Items of the device that made the backup only.
  public var leftOut: UInt64 = 0
}

extension FixedWidthInteger {
  /// The most significant byte first.
  var bigEndianBytes: [UInt8] {
    stride(from: Self.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: self >> $0) }
  }
}

/// Reads numbers from a record's content.
struct RecordFields {
  private var rest: ArraySlice<UInt8>

  init(_ content: [UInt8]) {
    rest = content[...]
  }

  var isEmpty: Bool { rest.isEmpty }

  /// The bytes that were not read yet.
  var remainder: [UInt8] { Array(rest) }

  /// nil: the content is too short.
  mutating func integer<Number: FixedWidthInteger & UnsignedInteger>(_ type: Number.Type) -> Number? {
    let size = Number.bitWidth / 8
    guard rest.count >= size else { return nil }
    defer { rest = rest.dropFirst(size) }
    return rest.prefix(size).reduce(0) { Number(truncatingIfNeeded: UInt64($0) << 8) | Number($1) }
  }

  mutating func timestamp() -> Timestamp? {
    guard let seconds = integer(UInt64.self), let nanoseconds = integer(UInt32.self),
      nanoseconds < 1_000_000_000
    else { return nil }
    return Timestamp(seconds: Int64(bitPattern: seconds), nanoseconds: nanoseconds)
  }

  static func bytes(of time: Timestamp) -> [UInt8] {
    UInt64(bitPattern: time.seconds).bigEndianBytes + time.nanoseconds.bigEndianBytes
  }
}
