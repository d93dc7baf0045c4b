import Formats
import Model
import Platform

/// An open file, which is closed with its last user.
final class OpenFile {
  private let path: String
  private let file: Descriptor
  /// Called with the number of bytes of each read and write.
  var onTransfer: (Int) -> Void = { _ in }

  /// Not a terminal that becomes this process's. - Throws: `BackupError`.
  init(_ path: String, _ flags: OpenFlags = .reading) throws(BackupError) {
    self.path = path
    do { file = try Descriptor(path, flags.union(.noControllingTerminal)) } catch {
      var failure = BackupError(path, "\(error)")
      if error == .ENOENT { failure.kind = .notFound }
      throw failure
    }
  }

  func status() throws(FormatError) -> FileStatus {
    do { return try file.status } catch { throw Self.failure("\(path) can't be read", error) }
  }

  /// The next bytes, fewer than `count` only at the file's end.
  func read(_ count: Int) throws(FormatError) -> [UInt8] {
    do {
      let bytes = try file.read(count)
      onTransfer(bytes.count)
      return bytes
    } catch { throw Self.failure("\(path) can't be read", error) }
  }

  func write(_ bytes: [UInt8]) throws(FormatError) {
    do { try file.write(bytes) } catch { throw Self.failure("it can't be written", error) }
    onTransfer(bytes.count)
  }

  /// fsync(2). A file system that has none keeps nothing back.
  func synchronize() throws(FormatError) {
    do throws(Errno) { try file.synchronize() } catch {
      if error != .EINVAL, error != .ENOSYS { throw Self.failure("it can't be written", error) }
    }
  }

  /// Gives the file the time of its last change that another file had.
  func setModified(_ time: Timestamp) throws(FormatError) {
    do { try file.setModified(SystemTime(time)) } catch { throw Self.failure("its time can't be set", error) }
  }

  /// flock(2) without waiting. - Returns: false: another process has the lock, or there is none.
  func tryLock() -> Bool { (try? file.tryLock()) == true }

  /// Has what is read next come from the disk.
  func dropCache() { file.dropCache() }

  private static func failure(_ what: String, _ error: Errno) -> FormatError {
    FormatError("\(what): \(error)")
  }
}

/// Folders and names.
enum Folder {
  /// fsync(2) of the folder that a path is in, so that its name lasts.
  static func synchronize(around path: String) {
    try? Files.synchronizeFolder(Files.folder(of: path))
  }

  /// The name of a suite whose file has this name; nil: it is no suite's.
  static func suite(ofFile name: String) -> ExactString? {
    guard name.utf8.suffix(6).elementsEqual(".plist".utf8) else { return nil }
    return ExactString(String(decoding: name.utf8.dropLast(6), as: UTF8.self))
  }

  /// The names in a folder; none where there is no folder.
  ///
  /// - Throws: `BackupError` where it can't be listed.
  static func list(_ path: String) throws(BackupError) -> [[UInt8]] {
    do throws(Errno) {
      let names = try Files.rawNames(in: path)
      // The right to list a folder is not the right to use what is in it.
      try Files.require(.execute, path)
      return names
    } catch {
      if error == .ENOENT { return [] }
      throw BackupError(path, "it can't be read: \(error). Nothing was written")
    }
  }

  /// A name that is not UTF-8 for a person: what is not ASCII as `\xHH`.
  static func text(ofForeign name: [UInt8]) -> String {
    name.map { byte in
      byte < 0x80 ? String(Unicode.Scalar(byte)) : "\\x" + String(byte, radix: 16, uppercase: true)
    }.joined()
  }
}
