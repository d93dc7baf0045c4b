import Formats
import Model
import Platform
import SecretMemory
import Vault

/// Writes a backup's records into its sealed file, and counts them.
final class RecordWriter {
  /// So much of a file is in memory at a time.
  private static let part = 16 * 1024

  private let sealed: SealedFileWriter
  private(set) var summary = BackupSummary()

  init(_ sealed: SealedFileWriter, created: Timestamp) throws(FormatError) {
    self.sealed = sealed
    summary.created = created
    try write(.version, [BackupRecord.version] + RecordFields.bytes(of: created))
  }

  /// A suite's file, that with the times of its keys, and whether versions of them are kept. False: it is gone by now, or is no file.
  func write(suite name: String, at path: String, times: String, keepsVersions: Bool) throws -> Bool {
    guard let file = try Self.file(path) else { return false }
    let time = Timestamp(try file.status().modified)
    try write(.suite, RecordFields.bytes(of: time) + Array(name.utf8))
    try write(contentOf: file)
    summary.suites += 1
    // Times are kept as far as they can be.
    if let file = try? Self.file(times) {
      try write(.times, [])
      try write(contentOf: file)
    }
    if !keepsVersions { try write(.noVersions, []) }
    return true
  }

  func write(_ record: VaultArchive.Record) throws(FormatError) {
    switch record {
    case .format(let number):
      summary.hasVault = true
      try write(.vaultFormat, number.bigEndianBytes)
    case .table(let statement): try write(.vaultTable, Array(statement.utf8))
    case .row(let bytes): try write(.vaultRow, bytes)
    }
  }

  func write(keyFile: borrowing SecretBytes) throws(FormatError) {
    try writeHeader(.keyFile, keyFile.count)
    try sealed.write(keyFile.span)
  }

  func count(_ vault: VaultArchive.Summary) {
    summary.items = vault.items
    summary.leftOut = vault.leftOut
  }

  func finish() throws(FormatError) {
    let counts = [summary.suites, summary.items, summary.leftOut]
    try write(.end, [summary.hasVault ? 1 : 0] + counts.flatMap(\.bigEndianBytes))
    try sealed.finish()
  }

  private func write(_ kind: BackupRecord.Kind, _ content: [UInt8]) throws(FormatError) {
    guard content.count <= BackupRecord.largest else { throw FormatError("a row of the vault is too large") }
    try writeHeader(kind, content.count)
    try writePlain(content)
  }

  private func writeHeader(_ kind: BackupRecord.Kind, _ count: Int) throws(FormatError) {
    try writePlain([kind.rawValue] + UInt32(clamping: count).bigEndianBytes)
  }

  private func writePlain(_ bytes: [UInt8]) throws(FormatError) {
    try sealed.write(bytes.span)
  }

  private func write(contentOf file: OpenFile) throws(FormatError) {
    while true {
      let part = try file.read(Self.part)
      guard !part.isEmpty else { return }
      try write(.bytes, part)
    }
  }

  /// nil: nothing is there, or something else than a file.
  private static func file(_ path: String) throws -> OpenFile? {
    // A FIFO in the file's place must not hold the backup up.
    guard Files.exists(path) else { return nil }
    let file = try OpenFile(path, [.reading, .nonBlocking])
    return try file.status().isRegular ? file : nil
  }
}
