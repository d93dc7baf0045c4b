import Glibc
import Model
import Platform

/// A file that gets its name when it is complete, and takes the place of another one then.
///
/// Until then it has none (O_TMPFILE), so that a process that is killed leaves nothing. On file systems without such
/// files it has a name of its own, which a process that is killed leaves behind: `FILE.PID.part`.
struct OutputFile: ~Copyable {
  private let path: String
  private let temporary: String
  private var hasName: Bool
  let descriptor: Int32

  // O_TMPFILE, a macro that Glibc's module does not show: __O_TMPFILE | O_DIRECTORY.
  private static let withoutName: Int32 = 0o20_000_000 | O_DIRECTORY

  /// - Throws: `Failure`.
  init(_ path: String) throws {
    self.path = path
    temporary = "\(path).\(CurrentProcess.number).part"
    let folder = path.lastIndex(of: "/").map { path[...$0] } ?? "."
    // SAFETY: a variadic call with its one argument.
    var file = unsafe open(String(folder), O_WRONLY | O_CLOEXEC | Self.withoutName, 0o600)
    hasName = file < 0
    if hasName {
      // SAFETY: a variadic call with its one argument.
      file = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    }
    descriptor = file
    guard file >= 0 else { throw Self.failure(path) }
  }

  deinit {
    if hasName { unsafe unlink(temporary) }
    if descriptor >= 0 { close(descriptor) }
  }

  /// Returns when the file is on the disk and has its name. - Throws: `Failure`.
  mutating func finish() throws {
    guard fsync(descriptor) == 0 || errno == EINVAL else { throw Self.failure(path) }
    if !hasName { try giveTemporaryName() }
    guard unsafe rename(temporary, path) == 0 else { throw Self.failure(path) }
    hasName = false
  }

  /// Only rename(2) takes another file's place, and it takes a name.
  private mutating func giveTemporaryName() throws {
    unsafe unlink(temporary)
    let link = "/proc/self/fd/\(descriptor)"
    guard unsafe linkat(AT_FDCWD, link, AT_FDCWD, temporary, AT_SYMLINK_FOLLOW) == 0 else {
      throw Self.failure(path)
    }
    hasName = true
  }

  private static func failure(_ path: String) -> Failure {
    Failure(path, "it can't be written: \(systemMessage(errno))")
  }
}
