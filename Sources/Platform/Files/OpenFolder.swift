import CSystem
import Glibc

/// A folder held by a descriptor that names its place only (O_PATH). Names in it are found there, whatever gets its path.
package struct OpenFolder: ~Copyable {
  private let descriptor: Descriptor

  /// Opens a folder that is on a device, which the kernel tells without asking the file system. No symbolic link is
  /// followed in the last part of the path.
  ///
  /// - Throws: EXDEV: it is on another device; ENOENT, ENOTDIR, EACCES.
  package init(_ path: String, onDevice device: (major: UInt32, minor: UInt32)) throws(Errno) {
    // SAFETY: the string is alive during the call.
    let number = unsafe linux_open_folder(path, device.major, device.minor)
    guard number >= 0 else { throw .current }
    descriptor = Descriptor(owning: number)
  }
}

// Once each: the file system may mean EINTR.
extension OpenFolder {
  /// mknodat(2): an empty file. - Throws: EEXIST.
  package func makeFile(_ name: String, permissions: UInt32) throws(Errno) {
    guard unsafe mknodat(descriptor.number, name, S_IFREG | permissions, 0) == 0 else { throw .current }
  }

  /// mkdirat(2). - Throws: EEXIST.
  package func makeFolder(_ name: String, permissions: UInt32) throws(Errno) {
    guard unsafe mkdirat(descriptor.number, name, permissions) == 0 else { throw .current }
  }

  /// unlinkat(2).
  package func remove(_ name: String) throws(Errno) {
    guard unsafe unlinkat(descriptor.number, name, 0) == 0 else { throw .current }
  }

  /// unlinkat(2) with AT_REMOVEDIR. - Throws: ENOTEMPTY.
  package func removeFolder(_ name: String) throws(Errno) {
    guard unsafe unlinkat(descriptor.number, name, AT_REMOVEDIR) == 0 else { throw .current }
  }

  /// fchmodat(2), symbolic links followed.
  package func setPermissions(_ permissions: UInt32, of name: String) throws(Errno) {
    guard unsafe fchmodat(descriptor.number, name, permissions, 0) == 0 else { throw .current }
  }

  /// fallocate(2) of a file's first byte with FALLOC_FL_KEEP_SIZE, so that neither its content nor its length changes. It is
  /// opened for writing and closed, and inotify(7) reports a write. - Throws: ELOOP for a symbolic link.
  package func allocate(_ name: String) throws(Errno) {
    // SAFETY: a variadic call without its variable part.
    let number = unsafe openat(descriptor.number, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard number >= 0 else { throw .current }
    let file = Descriptor(owning: number)
    guard linux_allocate(file.number, 0, 1) == 0 else { throw .current }
  }
}
