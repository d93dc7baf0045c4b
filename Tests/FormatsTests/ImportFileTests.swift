import Formats
import ImportExport
import Platform
import SecretMemory
import Testing

/// Files of `keyhole export` that are sealed, as an import opens them.
@Suite struct ImportFileTests {
  private let folder = SuiteFolder.make()
  private static let content = [UInt8](repeating: UInt8(ascii: "x"), count: 70_000)
  private static let piece = SealedFile.pieceSize + 16

  /// Seals the content with a key, lets `change` damage it, and reads it.
  private func imported(_ change: (inout [UInt8], _ header: Int) -> Void) throws -> [UInt8] {
    defer { SuiteFolder.remove(folder) }
    let key = try SealedFile.makePrivateKey()
    var bytes: [UInt8] = []
    let writer = try SealedFileWriter(.export, publicKey: SealedFile.publicKey(of: key)) { bytes += $0 }
    try writer.write(Self.content.span)
    try writer.finish()
    change(&bytes, try SealedFileHeader(reading: bytes).count)
    let path = folder + "/export"
    Corpus.write(bytes, to: path)
    let file = try ImportFile(path)
    let header = try #require(try file.header())
    let source = try file.source(opening: SealedFileOpener(header, privateKey: key))
    return Array(try text(SecretSlice(source, source.whole)).utf8)
  }

  @Test func wholeFileIsRead() throws {
    let isSame = try imported { _, _ in } == Self.content
    #expect(isSame)
  }

  /// In the header and in each piece, at the borders of both, and behind the end.
  @Test(arguments: [8, 9, 10, 12, 30, -1, 0, 1, piece - 1, piece, 2 * piece + 30])
  func changedByteIsFound(place: Int) throws {
    #expect(throws: (any Error).self) {
      try imported { bytes, header in bytes[(place < 8 || place > 30 ? header : 0) + place] ^= 0xFF }
    }
  }

  @Test(arguments: [20, piece, piece + 29, 4 * piece, 4 * piece + 1])
  func fileThatIsCutOffIsRefused(count: Int) throws {
    #expect(throws: (any Error).self) {
      try imported { bytes, header in bytes = Array(bytes.prefix(count > 20 ? header + count : count)) }
    }
  }

  @Test func pieceThatIsMissingOrTwiceIsFound() throws {
    for copies in [0, 2] {
      #expect(throws: (any Error).self) {
        try imported { bytes, header in
          let piece = Array(bytes[header..<header + Self.piece])
          bytes.replaceSubrange(header..<header + Self.piece, with: (0..<copies).flatMap { _ in piece })
        }
      }
    }
  }
}
