public import Formats
import Model
import Platform
import SecretMemory

/// A file that is imported. It is read in pieces of 16 KiB, of which one is in memory at a time, whatever its size.
public struct ImportFile: ~Copyable {
  private static let pieceSize = 16 * 1024

  private let file: Descriptor
  /// The file's size; nil: it is a pipe or a device, which can be read once only.
  private let size: Int?

  /// Opens a file, or takes standard input. - Throws: `FormatError`.
  public init(_ path: String?) throws(FormatError) {
    file = try Self.open(path)
    size = Self.size(file)
  }

  private static func open(_ path: String?) throws(FormatError) -> Descriptor {
    do throws(Errno) {
      guard let path else { return try Descriptor(duplicating: 0) }
      return try Descriptor(path, [.reading, .noControllingTerminal])
    } catch {
      var failure = FormatError("it can't be opened: \(error)")
      if error == .ENOENT { failure.kind = .notFound }
      throw failure
    }
  }

  private static func size(_ file: borrowing Descriptor) -> Int? {
    guard let status = try? file.status, status.isRegular else { return nil }
    // One that was read in part already, as a shell's `{ read line; keyhole import; } < file` leaves it.
    guard (try? file.position) == 0 else { return nil }
    return Int(clamping: status.size)
  }

  private func openFile() throws(FormatError) -> OpenFile {
    do { return OpenFile(try Descriptor(copying: file)) } catch {
      throw FormatError("it can't be read: \(error)")
    }
  }

  /// The header of a sealed file; nil: it is none.
  ///
  /// - Throws: `FormatError` for a sealed file of a newer version or a damaged one.
  public func header() throws(FormatError) -> SealedFileHeader? {
    guard size != nil else { return nil }
    let start = try bytes(at: 0, count: SealedFileHeader.longest)
    guard SealedFile.kind(of: start) != nil else { return nil }
    let header = try SealedFileHeader(reading: start)
    guard header.kind == .export else {
      throw FormatError("it is a backup; `keyhole restore` reads it")
    }
    return header
  }

  /// The content of a file that is not sealed. - Throws: `FormatError`.
  public consuming func source() throws(FormatError) -> ByteSource {
    guard let size else { return try spooled() }
    guard size <= ImportReader.largestFile else { throw FormatError("it is too large to be an export") }
    let file = try openFile()
    return try ByteSource(count: size, pieceSize: Self.pieceSize) { (number) throws(FormatError) in
      let start = number * Self.pieceSize
      return try file.secret(at: start, count: min(Self.pieceSize, size - start))
    }
  }

  /// The content of a sealed file. Every piece of it is checked before the first is given.
  ///
  /// - Throws: `FormatError` where it is damaged or cut off.
  public consuming func source(opening opener: SealedFileOpener) throws(FormatError) -> ByteSource {
    guard let size else { throw FormatError("a sealed export has to be a file: its passphrase is read here") }
    let file = try openFile()
    let start = opener.header.count
    return try Self.source(opener, count: size - start, isChecked: false) { (range) throws(FormatError) in
      try file.bytes(at: start + range.lowerBound, count: range.count)
    }
  }

  /// The input of a pipe, sealed under a key that ends with this process: memory that is not locked holds it.
  private func spooled() throws(FormatError) -> ByteSource {
    let key = try SealedFile.makePrivateKey()
    var sealed: [UInt8] = []
    let writer = try SealedFileWriter(.export, publicKey: SealedFile.publicKey(of: key)) { sealed += $0 }
    try readAll { (chunk) throws(FormatError) in try writer.write(chunk) }
    try writer.finish()
    let header = try SealedFileHeader(reading: Array(sealed.prefix(SealedFileHeader.longest)))
    let content = sealed
    return try Self.source(
      SealedFileOpener(header, privateKey: key), count: content.count - header.count, isChecked: true
    ) { (range) throws(FormatError) in
      Array(content[(header.count + range.lowerBound)..<(header.count + range.upperBound)])
    }
  }

  /// `count`: all sealed pieces together, in bytes.
  private static func source(
    _ opener: SealedFileOpener, count: Int, isChecked: Bool,
    _ read: @escaping (Range<Int>) throws(FormatError) -> [UInt8]
  ) throws(FormatError) -> ByteSource {
    guard count <= ImportReader.largestFile else { throw FormatError("it is too large to be an export") }
    let whole = opener.header.sealedPieceSize
    let overhead = whole - opener.header.pieceSize
    let pieces = max(1, (count + whole - 1) / whole)
    guard count - (pieces - 1) * whole >= overhead else { throw FormatError("the sealed file is cut off") }
    let load = { (number: Int) throws(FormatError) -> SecretBytes in
      let piece = try read((number * whole)..<min(count, (number + 1) * whole))
      return try opener.open(piece, number: number, isLast: number == pieces - 1)
    }
    for number in 0..<(isChecked ? 0 : pieces) { _ = try load(number) }
    return try ByteSource(count: count - pieces * overhead, pieceSize: opener.header.pieceSize, load: load)
  }

  private func bytes(at offset: Int, count: Int) throws(FormatError) -> [UInt8] {
    guard let size else { return [] }
    let file = try openFile()
    return try file.bytes(at: offset, count: min(count, max(0, size - offset)))
  }

  private func readAll(
    _ body: (Span<UInt8>) throws(FormatError) -> Void
  ) throws(FormatError) {
    var chunk: SecretBytes
    do throws(SecretMemoryError) { chunk = try SecretBytes(pinnable: Self.pieceSize) } catch {
      throw FormatError(error)
    }
    while true {
      let count: Int
      do throws(Errno) {
        var bytes = chunk.mutableSpan
        count = try file.read(into: &bytes)
      } catch {
        throw FormatError("it can't be read: \(error)")
      }
      guard count > 0 else { return }
      try body(chunk.span.extracting(..<count))
    }
  }
}

/// An open file that several pieces of an import read.
private final class OpenFile {
  private let file: Descriptor

  init(_ file: consuming Descriptor) {
    self.file = file
  }

  /// pread(2) into memory that the kernel may pin, as files without a page cache need.
  func secret(at offset: Int, count: Int) throws(FormatError) -> SecretBytes {
    var secret: SecretBytes
    do throws(SecretMemoryError) { secret = try SecretBytes(pinnable: count) } catch {
      throw FormatError(error)
    }
    do throws(Errno) {
      var bytes = secret.mutableSpan
      // A file that became shorter meanwhile.
      guard try file.fill(&bytes, at: Int64(offset)) == count else { throw .EIO }
    } catch {
      throw FormatError("it can't be read: \(error)")
    }
    return secret
  }

  /// Bytes that are no secret, as sealed pieces are none.
  func bytes(at offset: Int, count: Int) throws(FormatError) -> [UInt8] {
    do throws(Errno) {
      let bytes = try file.read(count, at: Int64(offset))
      guard bytes.count == count else { throw .EIO }
      return bytes
    } catch {
      throw FormatError("it can't be read: \(error)")
    }
  }
}
