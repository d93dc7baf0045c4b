public import SecretMemory

/// Opens the pieces of a sealed file, in any order.
public struct SealedFileOpener: Sendable {
  /// The header that the opener was made for.
  public let header: SealedFileHeader
  private let seal: PieceSeal

  init(_ header: SealedFileHeader, _ seal: PieceSeal) {
    self.header = header
    self.seal = seal
  }

  /// - Throws: `FormatError` for a wrong passphrase, or a file that is sealed to a key.
  public init(
    _ header: SealedFileHeader, passphrase: borrowing SecretBytes
  ) throws(FormatError) {
    self.header = header
    seal = PieceSeal(key: try SealedFileKey.open(header, passphrase: passphrase), header: header.bytes)
  }

  /// - Throws: `FormatError` for another key, or a file that is sealed to a passphrase.
  public init(
    _ header: SealedFileHeader, privateKey: borrowing SecretBytes
  ) throws(FormatError) {
    self.header = header
    seal = PieceSeal(key: try SealedFileKey.open(header, privateKey: privateKey), header: header.bytes)
  }

  /// The content of a piece, by its number from 0.
  ///
  /// - Throws: `FormatError` where `sealed` is not that piece of this file, as it is where the file is cut off.
  public func open(_ sealed: [UInt8], number: Int, isLast: Bool) throws(FormatError) -> SecretBytes {
    guard let number = UInt64(exactly: number) else { throw FormatError("the sealed file is damaged") }
    return try seal.open(sealed, number: number, isLast: isLast)
  }
}

/// Reads the content of a sealed file from its beginning to its end.
public struct SealedFileReader: ~Copyable {
  /// Gives up to so many bytes of the file; fewer only at its end.
  public typealias Input = (Int) throws(FormatError) -> [UInt8]

  private let opener: SealedFileOpener
  private let input: Input
  /// The piece that was read from `input` last, and is not opened yet.
  private var next: [UInt8]
  private var number = 0
  private var isAtEnd = false

  /// `start`: what was read of the file to parse its header, and the bytes after it.
  public init(_ opener: SealedFileOpener, start: [UInt8], input: @escaping Input) throws(FormatError) {
    self.opener = opener
    self.input = input
    next = Array(start.dropFirst(opener.header.count))
    let missing = opener.header.sealedPieceSize - next.count
    if missing > 0 { next += try input(missing) }
  }

  /// The next piece of the content; nil after the last one, which shows that nothing is missing.
  ///
  /// - Throws: `FormatError` where the file is damaged or cut off, and what the input throws.
  public mutating func piece() throws(FormatError) -> SecretBytes? {
    guard !isAtEnd else { return nil }
    let size = opener.header.sealedPieceSize
    // A file that ends with a whole piece has no empty one after it.
    let following = next.count < size ? [] : try input(size)
    isAtEnd = following.isEmpty
    defer {
      next = following
      number += 1
    }
    return try opener.open(next, number: number, isLast: isAtEnd)
  }
}
