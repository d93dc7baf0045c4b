import Glibc

/// A file that only takes room: given up when the disk is full, so that deleting still works.
package struct ReserveFile: Sendable {
  /// The least that is worth keeping, in bytes.
  package static let leastSize = 128 * 1024

  /// Where the file is or is to be.
  package let path: String

  /// Names the file; nothing is created.
  package init(_ path: String) {
    self.path = path
  }

  /// In bytes; nil: there is none.
  package var size: Int? {
    var status = stat()
    guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return Int(status.st_size)
  }

  /// Makes the file of `wanted` bytes, or lets it grow to that: half as much, and so on, where the disk has not room
  /// for it four times over.
  ///
  /// - Returns: its size in bytes; 0: there is no room for any.
  @discardableResult package func restore(_ wanted: Int) -> Int {
    let present = size ?? 0
    guard present < wanted, let room = availableRoom else { return present }
    var size = wanted
    while size > room / 4, size >= Self.leastSize { size /= 2 }
    guard size >= Self.leastSize, size > present else { return present }
    return allocate(size) ? size : present
  }

  /// True: there is room now that was not there before.
  @discardableResult package func giveUp() -> Bool {
    unsafe unlink(path) == 0
  }

  private func allocate(_ size: Int) -> Bool {
    // SAFETY: a variadic call with its one argument.
    let file = unsafe open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
    guard file >= 0 else { return false }
    defer { close(file) }
    var status = stat()
    guard unsafe fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid(),
      posix_fallocate(file, 0, size) == 0
    else {
      // An empty one would be taken for none; one of another kind is not ours.
      if self.size == 0 { giveUp() }
      return false
    }
    return true
  }

  /// In bytes; nil: it is not known.
  private var availableRoom: Int? {
    guard let slash = path.lastIndex(of: "/") else { return nil }
    var room = statvfs()
    guard unsafe statvfs(String(path[..<slash]), &room) == 0 else { return nil }
    let (bytes, overflow) = UInt64(room.f_bavail).multipliedReportingOverflow(by: UInt64(room.f_frsize))
    return overflow ? .max : Int(clamping: bytes)
  }
}
