import Glibc
import Platform

/// A folder that is gone with its test.
final class TemporaryFolder {
  let path: String

  init() throws {
    var template = Array("/tmp/kh-service.XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw Failed() }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  struct Failed: Error {}

  deinit { Self.remove(path) }

  /// A file, a link, or a folder with everything in it.
  private static func remove(_ path: String) {
    if unsafe unlink(path) == 0 { return }
    for name in Platform.names(in: path) { remove("\(path)/\(name)") }
    unsafe rmdir(path)
  }

  func write(_ name: String) {
    close(unsafe open("\(path)/\(name)", O_WRONLY | O_CREAT, 0o600))
  }

  /// The names in it, sorted.
  var names: [String] { Platform.names(in: path).sorted() }

  /// `major:minor` of the file system that it is on.
  var device: String {
    var status = stat()
    unsafe lstat(path, &status)
    // The layout of makedev(3) in the GNU C library, whose macros Swift does not show.
    let (device, mask) = (UInt64(status.st_dev), UInt64(0xFFF))
    return "\((device >> 8) & mask | (device >> 32) & ~mask):\(device & 0xFF | (device >> 12) & ~0xFF)"
  }
}
