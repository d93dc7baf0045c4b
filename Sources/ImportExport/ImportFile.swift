public import Formats
import Glibc
import SecretMemory

/// A file that is imported. It is read in pieces of 16 KiB, of which one is in memory at a time, whatever its size.
public struct ImportFile: ~Copyable {
  private static let pieceSize = 16 * 1024

  private let descriptor: Int32
  /// The file's size; nil: it is a pipe or a device, which can be read once only.
  private let size: Int?

  /// Opens a file, or takes standard input. - Throws: `FormatError`.
  public init(_ path: String?) throws(FormatError) {
    guard let path else {
      descriptor = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
      guard descriptor >= 0 else { throw FormatError("it can't be read: \(systemMessage(errno))") }
      size = Self.size(descriptor)
      return
    }
    // SAFETY: a variadic call without its variable part.
    descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
    guard descriptor >= 0 else { throw FormatError("it can't be opened: \(systemMessage(errno))") }
    size = Self.size(descriptor)
  }

  deinit { close(descriptor) }

  private static func size(_ descriptor: Int32) -> Int? {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    // One that was read in part already, as a shell's `{ read line; keyhole import; } < file` leaves it.
    guard lseek(descriptor, 0, SEEK_CUR) == 0 else { return nil }
    return Int(status.st_size)
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
    let file = OpenFile(descriptor: fcntl(descriptor, F_DUPFD_CLOEXEC, 3))
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
    let file = OpenFile(descriptor: fcntl(descriptor, F_DUPFD_CLOEXEC, 3))
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
    try unsafe readAll { (chunk) throws(FormatError) in try unsafe writer.write(chunk) }
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
    let file = OpenFile(descriptor: fcntl(descriptor, F_DUPFD_CLOEXEC, 3))
    return try file.bytes(at: offset, count: min(count, max(0, size - offset)))
  }

  private func readAll(
    _ body: (UnsafeRawBufferPointer) throws(FormatError) -> Void
  ) throws(FormatError) {
    var chunk: SecretBytes
    do throws(SecretMemoryError) { chunk = try SecretBytes(pinnable: Self.pieceSize) } catch {
      throw FormatError(error)
    }
    while true {
      // SAFETY: the chunk says how long it is.
      let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw FormatError("it can't be read: \(systemMessage(errno))") }
      guard count > 0 else { return }
      try unsafe chunk.withUnsafeBytes { bytes throws(FormatError) in
        try unsafe body(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
      }
    }
  }
}

/// A descriptor that is closed with its last user.
private final class OpenFile {
  private let descriptor: Int32

  init(descriptor: Int32) {
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }

  /// pread(2) into memory that the kernel may pin, as files without a page cache need.
  func secret(at offset: Int, count: Int) throws(FormatError) -> SecretBytes {
    var secret: SecretBytes
    do throws(SecretMemoryError) { secret = try SecretBytes(pinnable: count) } catch {
      throw FormatError(error)
    }
    let isRead = unsafe secret.withUnsafeMutableBytes { unsafe read(into: $0, at: offset) }
    guard isRead else { throw FormatError("it can't be read: \(systemMessage(errno))") }
    return secret
  }

  /// Bytes that are no secret, as sealed pieces are none.
  func bytes(at offset: Int, count: Int) throws(FormatError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: max(0, count))
    let isRead = unsafe bytes.withUnsafeMutableBytes { unsafe read(into: $0, at: offset) }
    guard isRead else { throw FormatError("it can't be read: \(systemMessage(errno))") }
    return bytes
  }

  /// Whether all of it was read; a file that became shorter meanwhile is EIO.
  private func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Bool {
    var done = 0
    while done < buffer.count {
      // SAFETY: the rest of the buffer is behind `done`.
      let count = unsafe pread(
        descriptor, buffer.baseAddress.map { unsafe $0 + done }, buffer.count - done, off_t(offset + done))
      if count < 0, errno == EINTR { continue }
      guard count > 0 else {
        if count == 0 { errno = EIO }
        return false
      }
      done += count
    }
    return true
  }
}

func systemMessage(_ error: Int32) -> String {
  unsafe strerror(error).map { unsafe String(cString: $0) } ?? "error \(error)"
}
