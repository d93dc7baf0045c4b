public import Formats
import Platform
public import SecretMemory

/// A backup that is read. One piece of it is in memory at a time, whatever its size; a pipe will do.
public struct BackupInput {
  private let path: String
  private let file: OpenFile
  private let start: [UInt8]
  private let header: SealedFileHeader

  /// Called while it is read, with the bytes so far and the size of the file; of a pipe it is never called.
  var onProgress: ((_ done: Int, _ size: Int) -> Void)? {
    didSet { count() }
  }

  /// Opens a file. - Throws: `BackupError` for what is no backup of Keyhole, or one of a newer version.
  public init(_ path: String) throws(BackupError) {
    self.path = path
    let file = try OpenFile(path)
    self.file = file
    // Content that was just written has to come from the disk.
    file.dropCache()
    (start, header) = try attempt(path) {
      let start = try file.read(SealedFileHeader.longest)
      guard let kind = SealedFile.kind(of: start) else {
        throw BackupError(path, "it is no backup of Keyhole")
      }
      guard kind == .backup else {
        throw BackupError(path, "it is an export, which `keyhole import` reads")
      }
      return (start, try SealedFileHeader(reading: start))
    }
  }

  private func count() {
    guard let onProgress, let status = try? file.status(), status.isRegular else {
      return file.onTransfer = { _ in }
    }
    var done = start.count
    file.onTransfer = { count in
      done += count
      onProgress(done, Int(clamping: status.size))
    }
  }

  /// The kind of key that opens it.
  public var lock: SealedFile.Lock { header.lock }

  /// - Throws: `BackupError` for a wrong passphrase.
  public func opened(passphrase: borrowing SecretBytes) throws(BackupError) -> OpenBackup {
    do throws(FormatError) {
      return OpenBackup(self, try SealedFileOpener(header, passphrase: passphrase))
    } catch {
      throw BackupError(path, error.reason)
    }
  }

  /// - Throws: `BackupError` for a key that is not the backup's.
  public func opened(privateKey: borrowing SecretBytes) throws(BackupError) -> OpenBackup {
    do throws(FormatError) {
      return OpenBackup(self, try SealedFileOpener(header, privateKey: privateKey))
    } catch {
      throw BackupError(path, error.reason)
    }
  }

  func reader(_ opener: SealedFileOpener) throws(FormatError) -> RecordReader {
    let file = file
    return try RecordReader(
      SealedFileReader(opener, start: start) { (count) throws(FormatError) in try file.read(count) })
  }

  /// Reads all of a backup that was just written.
  func check(openedBy writer: SealedFileWriter) throws(BackupError) -> BackupSummary {
    try attempt(path) { try OpenBackup(self, writer.opener(of: header)).check() }
  }
}

/// A backup of which the passphrase or the key is at hand. It can be read once.
public struct OpenBackup {
  private var input: BackupInput
  private let opener: SealedFileOpener

  init(_ input: BackupInput, _ opener: SealedFileOpener) {
    self.input = input
    self.opener = opener
  }

  /// Called while it is read, with the bytes so far and the size of the file; of a pipe it is never called.
  public var onProgress: ((_ done: Int, _ size: Int) -> Void)? {
    get { input.onProgress }
    set { input.onProgress = newValue }
  }

  /// Reads it to its end, and changes nothing. - Throws: `BackupError` where it is damaged or cut off.
  public func check() throws(BackupError) -> BackupSummary {
    try read { _ in }
  }

  /// - Throws: `BackupError` where it is damaged or cut off, and what `body` throws.
  func read(_ body: (consuming BackupRecord) throws -> Void) throws(BackupError) -> BackupSummary {
    do {
      var reader = try input.reader(opener)
      while let record = try reader.next() { try body(record) }
      return reader.summary
    } catch {
      throw BackupError(about: "the backup", error)
    }
  }
}
