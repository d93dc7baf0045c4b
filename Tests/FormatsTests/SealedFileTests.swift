import Formats
import SecretMemory
import Testing

/// A sealed file: any size, passphrase or key, and every damage found.
@Suite struct SealedFileTests {
  private static let passphrase = Array("correct horse".utf8)
  private static let size = SealedFile.pieceSize

  private func secret(_ bytes: [UInt8]) throws -> SecretBytes {
    var secret = try SecretBytes()
    try unsafe bytes.withUnsafeBytes { try unsafe secret.append($0) }
    return secret
  }

  private func content(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) } }

  private func sealed(_ content: [UInt8], to publicKey: [UInt8]) throws -> [UInt8] {
    var file: [UInt8] = []
    let writer = try SealedFileWriter(.backup, publicKey: publicKey) { file += $0 }
    try writer.write(content.span)
    try writer.finish()
    return file
  }

  private func opened(_ file: [UInt8], _ privateKey: borrowing SecretBytes) throws -> [UInt8] {
    let header = try SealedFileHeader(reading: Array(file.prefix(SealedFileHeader.longest)))
    return try read(file, SealedFileOpener(header, privateKey: privateKey))
  }

  private func read(_ file: [UInt8], _ opener: SealedFileOpener) throws -> [UInt8] {
    var position = min(SealedFileHeader.longest, file.count)
    var reader = try SealedFileReader(opener, start: Array(file[..<position])) { count in
      defer { position = min(position + count, file.count) }
      return Array(file[position..<min(position + count, file.count)])
    }
    var content: [UInt8] = []
    while let piece = try reader.piece() {
      unsafe piece.withUnsafeBytes { unsafe content.append(contentsOf: $0) }
    }
    return content
  }

  @Test(arguments: [0, 1, size - 1, size, size + 1, 2 * size, 3 * size + 7])
  func anySizeOpensWithItsKey(count: Int) throws {
    let key = try SealedFile.makePrivateKey()
    let file = try sealed(content(count), to: SealedFile.publicKey(of: key))
    #expect(SealedFile.kind(of: file) == .backup)
    #expect(try opened(file, key) == content(count))
  }

  @Test func anotherKeyOpensNothing() throws {
    let file = try sealed(content(10), to: SealedFile.publicKey(of: SealedFile.makePrivateKey()))
    #expect(throws: FormatError.self) { try opened(file, SealedFile.makePrivateKey()) }
  }

  @Test func aPassphraseOpensIt() throws {
    var file: [UInt8] = []
    let writer = try SealedFileWriter(.export, passphrase: secret(Self.passphrase), cost: 14) { file += $0 }
    let content = content(Self.size + 5)
    try writer.write(content.span)
    try writer.finish()
    let header = try SealedFileHeader(reading: Array(file.prefix(SealedFileHeader.longest)))
    #expect(file[10...12] == [14, 8, 1])
    #expect(throws: FormatError.self) { try SealedFileOpener(header, passphrase: secret([1])) }
    #expect(throws: FormatError.self) { try SealedFileOpener(header, passphrase: secret([])) }
    let opener = try SealedFileOpener(header, passphrase: secret(Self.passphrase))
    #expect(try read(file, opener) == content)
    // A change of the header changes the key; the commitment shows it before a piece is opened.
    for index in [9, 11, 12, 28, header.count - 1] {
      var bad = file
      bad[index] ^= 1
      #expect(throws: FormatError.self, "byte \(index)") {
        let header = try SealedFileHeader(reading: Array(bad.prefix(SealedFileHeader.longest)))
        _ = try SealedFileOpener(header, passphrase: secret(Self.passphrase))
      }
    }
  }

  /// Any part of it is cut off, changed, moved or repeated.
  @Test func everyDamageIsFound() throws {
    let key = try SealedFile.makePrivateKey()
    let file = try sealed(content(2 * Self.size + 40), to: SealedFile.publicKey(of: key))
    let head = try SealedFileHeader(reading: file).count
    let piece = Self.size + 16
    for end in [0, 5, 9, 20, head - 1, head, head + 1, head + piece, head + 2 * piece, file.count - 1] {
      #expect(throws: FormatError.self, "cut at \(end)") { try opened(Array(file[..<end]), key) }
    }
    for index in Array(0..<head) + [head, head + piece - 1, head + piece, file.count - 1] {
      var bad = file
      bad[index] ^= 0x40
      #expect(throws: FormatError.self, "byte \(index)") { try opened(bad, key) }
    }
    let (first, second) = (file[head..<head + piece], file[(head + piece)..<(head + 2 * piece)])
    let last = file[(head + 2 * piece)...]
    for pieces in [
      [second, first, last], [first, last], [first, first, second, last], [first, second, last, last],
    ] {
      #expect(throws: FormatError.self) { try opened(Array(file[..<head] + pieces.joined()), key) }
    }
  }

  @Test func anExportOfTheFirstVersionOpens() throws {
    let file = try #require(Base64.decode(Self.firstVersion))
    let header = try SealedFileHeader(reading: file)
    #expect(header.version == 1 && header.kind == .export)
    let opener = try SealedFileOpener(header, passphrase: secret(Array("a passphrase".utf8)))
    #expect(try read(file, opener) == Array("s_a='hunter2'\n".utf8))
  }

  /// The export of Keyhole 0.1.0 of one secret, with --format env, under “a passphrase”.
  private static let firstVersion =
    "S0hFWFBPUlQBEQgBUQQiZVWfxtrbu7R766MUABuUbD/rPlt/o93TtOkCQ3Dckfme7ofT5e+5dxAX/A=="
}

/// RFC 4648, for fixtures.
enum Base64 {
  static func decode(_ text: String) -> [UInt8]? {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    var bytes: [UInt8] = []
    var (bits, count): (UInt32, Int) = (0, 0)
    for letter in text.utf8 where letter != UInt8(ascii: "=") {
      guard let value = alphabet.firstIndex(of: letter) else { return nil }
      bits = bits << 6 | UInt32(value)
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return bytes
  }
}
