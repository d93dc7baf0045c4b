import Formats
import SecretMemory

@testable import Backup

/// The records of a backup, sealed to a new key: a program that can seal one may write anything.
enum BackupTarget {
  static func run(_ bytes: [UInt8]) -> String {
    Parser.outcome {
      let sealed = Sealed()
      let key = try SealedFile.makePrivateKey()
      let writer = try SealedFileWriter(.backup, publicKey: SealedFile.publicKey(of: key)) {
        sealed.bytes += $0
      }
      try writer.write(bytes.span)
      try writer.finish()
      return try read(sealed.bytes, key)
    }
  }

  private static func read(_ sealed: [UInt8], _ key: borrowing SecretBytes) throws -> String {
    let header = try SealedFileHeader(reading: Array(sealed.prefix(SealedFileHeader.longest)))
    let file = try SealedFileReader(SealedFileOpener(header, privateKey: key), start: sealed) { _ in [] }
    var reader = try RecordReader(file)
    var count = 0
    while try reader.next() != nil { count += 1 }
    return "\(reader.summary.hasVault) \(count > 5)"
  }

  private final class Sealed {
    var bytes: [UInt8] = []
  }

  static let samples: [[UInt8]] = [
    version + suite + record(4, [1, 2, 3]) + record(3, []) + record(4, [4]) + end(vault: 0, suites: 1),
    version + record(5, UInt32(2).bigEndianBytes) + record(6, Array("item".utf8))
      + record(7, [1, 1] + UInt64(7).bigEndianBytes) + record(8, [UInt8](repeating: 9, count: 32))
      + end(vault: 1, suites: 0),
    version + end(vault: 0, suites: 0),
  ]

  private static let moment = UInt64(1_700_000_000).bigEndianBytes + UInt32(5).bigEndianBytes
  private static let version = record(1, [BackupRecord.version] + moment)
  private static let suite = record(2, moment + Array("com.example.app.plist".utf8))

  private static func end(vault: UInt8, suites: UInt64) -> [UInt8] {
    record(9, [vault] + [suites, 0, 0].flatMap(\.bigEndianBytes))
  }

  private static func record(_ kind: UInt8, _ content: [UInt8]) -> [UInt8] {
    [kind] + UInt32(content.count).bigEndianBytes + content
  }
}
