import CSystem
import Formats
import Glibc
import Model
import Platform

/// An open file, which is closed with its last user.
final class OpenFile {
  let number: Int32

  /// `mode`: of a file that `flags` makes. - Throws: `BackupError`.
  init(_ path: String, _ flags: Int32, mode: mode_t = 0o600) throws(BackupError) {
    // SAFETY: a variadic call with its one argument.
    number = unsafe open(path, flags | O_CLOEXEC | O_NOCTTY, mode)
    guard number >= 0 else { throw BackupError(path, systemMessage(errno)) }
  }

  deinit { close(number) }

  func status() throws(FormatError) -> stat {
    var status = stat()
    guard unsafe fstat(number, &status) == 0 else { throw Self.failure("it can't be read") }
    return status
  }

  /// The next bytes, fewer than `count` only at the file's end.
  func read(_ count: Int) throws(FormatError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var filled = 0
    while filled < count {
      // SAFETY: the rest of the buffer is behind `filled`.
      let part = unsafe bytes.withUnsafeMutableBytes {
        unsafe Glibc.read(number, $0.baseAddress.map { unsafe $0 + filled }, count - filled)
      }
      if part < 0, errno == EINTR { continue }
      guard part >= 0 else { throw Self.failure("it can't be read") }
      if part == 0 { break }
      filled += part
    }
    return Array(bytes[..<filled])
  }

  func write(_ bytes: [UInt8]) throws(FormatError) {
    var position = 0
    while position < bytes.count {
      // SAFETY: the buffer says how long it is.
      let part = unsafe bytes[position...].withUnsafeBytes {
        unsafe Glibc.write(number, $0.baseAddress, $0.count)
      }
      if part < 0, errno == EINTR { continue }
      guard part > 0 else { throw Self.failure("it can't be written") }
      position += part
    }
  }

  /// fsync(2). A file system that has none keeps nothing back.
  func synchronize() throws(FormatError) {
    guard fsync(number) == 0 || errno == EINVAL || errno == ENOSYS else {
      throw Self.failure("it can't be written")
    }
  }

  /// Gives the file the time of its last change that another file had.
  func setModified(_ time: Timestamp) throws(FormatError) {
    let moment = timespec(tv_sec: Int(clamping: time.seconds), tv_nsec: Int(time.nanoseconds))
    let times = [moment, moment]
    guard unsafe futimens(number, times) == 0 else { throw Self.failure("its time can't be set") }
  }

  private static func failure(_ what: String) -> FormatError {
    FormatError("\(what): \(systemMessage(errno))")
  }
}

/// Folders and names.
enum Folder {
  /// fsync(2) of the folder that a path is in, so that its name lasts.
  static func synchronize(around path: String) {
    guard let folder = try? OpenFile(parent(of: path), O_RDONLY | O_DIRECTORY) else { return }
    try? folder.synchronize()
  }

  // By bytes: a slash and a combining mark behind it are one Character.
  static func parent(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.utf8.startIndex ? "/" : String(decoding: path.utf8[..<slash], as: UTF8.self)
  }

  static func name(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path }
    return String(decoding: path.utf8[path.utf8.index(after: slash)...], as: UTF8.self)
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
    let folder = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else {
      if errno == ENOENT { return [] }
      throw BackupError(path, "it can't be listed: \(systemMessage(errno)). Nothing was written")
    }
    close(folder)
    guard unsafe access(path, X_OK) == 0 else {
      throw BackupError(path, "what is in it can't be read: \(systemMessage(errno)). Nothing was written")
    }
    return (try? Files.rawNames(in: path)) ?? []
  }

  /// A name that is not UTF-8 for a person: what is not ASCII as `\xHH`.
  static func text(ofForeign name: [UInt8]) -> String {
    name.map { byte in
      byte < 0x80 ? String(Unicode.Scalar(byte)) : "\\x" + String(byte, radix: 16, uppercase: true)
    }.joined()
  }

  /// Where a symbolic link leads, as it says; nil: there is none.
  static func target(ofLink path: String) -> String? {
    var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
    // SAFETY: the array says how long it is.
    let count = unsafe readlink(path, &bytes, bytes.count)
    guard count >= 0, count < bytes.count else { return nil }
    return String(decoding: bytes[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Whether something has a name, also a link that leads nowhere.
  static func exists(_ path: String) -> Bool { FileIdentity(path) != nil }
}

/// Which file or folder of a file system has a name; one that is renamed stays the same.
///
/// Without the number of the device, which may be another one after the next start of the machine.
struct FileIdentity: Hashable {
  let number: UInt64
  /// When it was made, in seconds and nanoseconds; 0: the file system does not tell.
  let birth: [Int64]

  init(number: UInt64, birth: [Int64]) {
    self.number = number
    self.birth = birth
  }

  /// nil: nothing has the name.
  init?(_ path: String) {
    var (number, birth): (UInt64, [Int64]) = (0, [0, 0])
    // SAFETY: the two numbers of the array are there during the call.
    guard unsafe linux_inode(path, &number, &birth) == 0 else { return nil }
    self.init(number: number, birth: birth)
  }
}

func systemMessage(_ error: Int32) -> String {
  unsafe strerror(error).map { unsafe String(cString: $0) } ?? "error \(error)"
}
