import Formats
import Model
import Platform
import SecretMemory
import Vault

/// Reads a backup's records from its beginning to its end.
///
/// Only the key file is a secret. Rows are sealed by the vault, and settings are files that are not.
struct RecordReader: ~Copyable {
  private static let damaged = FormatError("the backup is damaged")
  private static let newer = FormatError("a newer Keyhole made this backup: update Keyhole to restore it")

  private var file: SealedFileReader
  private var piece: SecretBytes
  private var position = 0
  /// The kind of the record before.
  private var last: BackupRecord.Kind?
  private var found = BackupSummary()

  /// The summary so far; complete after the last record.
  var summary: BackupSummary { found }

  init(_ file: consuming SealedFileReader) throws(FormatError) {
    self.file = file
    do throws(SecretMemoryError) { piece = try SecretBytes() } catch { throw FormatError(error) }
  }

  /// The next record; nil after the last one, which shows that nothing is missing.
  mutating func next() throws(FormatError) -> BackupRecord? {
    guard last != .end else {
      guard try !fetch() else { throw Self.damaged }
      return nil
    }
    var header = RecordFields(try read(5))
    guard let number = header.integer(UInt8.self), let count = header.integer(UInt32.self),
      count <= BackupRecord.largest
    else { throw Self.damaged }
    guard let kind = BackupRecord.Kind(rawValue: number) else {
      throw last == nil ? Self.damaged : Self.newer
    }
    guard isAllowed(kind) else { throw Self.damaged }
    last = kind
    return try record(kind, Int(count))
  }

  /// Which records may follow which.
  private func isAllowed(_ kind: BackupRecord.Kind) -> Bool {
    switch kind {
    case .version: last == nil
    case .suite: [.version, .suite, .times, .bytes, .noVersions].contains(last)
    case .noVersions: [.suite, .times, .bytes].contains(last)
    case .times: [.suite, .bytes].contains(last)
    case .bytes: [.suite, .times, .bytes].contains(last)
    case .vaultFormat: last != nil && !found.hasVault
    case .vaultTable, .vaultRow: [.vaultFormat, .vaultTable, .vaultRow].contains(last)
    case .keyFile: [.vaultTable, .vaultRow].contains(last)
    case .end: last != nil
    }
  }

  private mutating func record(_ kind: BackupRecord.Kind, _ count: Int) throws(FormatError) -> BackupRecord {
    if kind == .keyFile { return .keyFile(try readSecret(count)) }
    let content = try read(count)
    switch kind {
    case .version: return .version(created: try created(content))
    case .suite: return try suite(content)
    case .times: return .times
    case .bytes: return .bytes(content)
    case .noVersions: return .noVersions
    case .vaultFormat: return .vault(.format(try vaultFormat(content)))
    case .vaultTable: return .vault(.table(String(decoding: content, as: UTF8.self)))
    case .vaultRow: return .vault(.row(content))
    case .keyFile, .end: return .end(try end(content))
    }
  }

  private mutating func created(_ content: [UInt8]) throws(FormatError) -> Timestamp {
    var fields = RecordFields(content)
    guard let version = fields.integer(UInt8.self) else { throw Self.damaged }
    guard version == BackupRecord.version else { throw Self.newer }
    guard let created = fields.timestamp(), fields.isEmpty else { throw Self.damaged }
    found.created = created
    return created
  }

  /// A name in a folder, which leads nowhere else.
  private mutating func suite(_ content: [UInt8]) throws(FormatError) -> BackupRecord {
    var fields = RecordFields(content)
    guard let modified = fields.timestamp() else { throw Self.damaged }
    let bytes = fields.remainder
    let name = String(decoding: bytes, as: UTF8.self)
    guard name.utf8.elementsEqual(bytes), bytes.suffix(6).elementsEqual(".plist".utf8), bytes.count <= 255,
      !bytes.contains(0x2F), !bytes.contains(0)
    else { throw Self.damaged }
    found.suites += 1
    return .suite(name: name, modified: modified)
  }

  private mutating func vaultFormat(_ content: [UInt8]) throws(FormatError) -> UInt32 {
    var fields = RecordFields(content)
    guard let number = fields.integer(UInt32.self), fields.isEmpty else { throw Self.damaged }
    found.hasVault = true
    return number
  }

  private mutating func end(_ content: [UInt8]) throws(FormatError) -> BackupSummary {
    var fields = RecordFields(content)
    guard let hasVault = fields.integer(UInt8.self), let suites = fields.integer(UInt64.self),
      let items = fields.integer(UInt64.self), let leftOut = fields.integer(UInt64.self), fields.isEmpty,
      suites == found.suites, (hasVault == 1) == found.hasVault
    else { throw Self.damaged }
    found.items = items
    found.leftOut = leftOut
    return found
  }
}

extension RecordReader {
  private mutating func read(_ count: Int) throws(FormatError) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    while bytes.count < count {
      guard try fetch() else { throw FormatError("the backup is cut off") }
      let end = min(piece.count, position + count - bytes.count)
      bytes += piece.span.extracting(position..<end).array
      position = end
    }
    return bytes
  }

  private mutating func readSecret(_ count: Int) throws(FormatError) -> SecretBytes {
    // No key is longer; a backup that says so is not to be given the memory.
    guard count <= 1024 else { throw Self.damaged }
    do {
      var bytes = try SecretBytes()
      while bytes.count < count {
        guard try fetch() else { throw FormatError("the backup is cut off") }
        let end = min(piece.count, position + count - bytes.count)
        try bytes.append(piece.span.extracting(position..<end))
        position = end
      }
      return bytes
    } catch let error as FormatError {
      throw error
    } catch {
      throw FormatError("there is not enough locked memory; `ulimit -l` shows the limit")
    }
  }

  /// Whether there are bytes left.
  private mutating func fetch() throws(FormatError) -> Bool {
    while position == piece.count {
      guard let next = try file.piece() else { return false }
      piece = next
      position = 0
    }
    return true
  }
}
