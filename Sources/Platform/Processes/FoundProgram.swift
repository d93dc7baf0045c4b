import Glibc

/// The file that a command's name stands for, found as execvp(3) does, once: what is shown to a person is then what is started.
package struct FoundProgram: Sendable {
  /// The path as execve(2) gets it: of a name with a slash the name itself, else a folder of `PATH` and the name.
  package let path: [UInt8]
  /// The file that the path leads to, symbolic links followed.
  package let file: FileID

  /// Looks a name up. `search`: the value of `PATH`; nil: it is not set, and the system's folders count (confstr(3)).
  ///
  /// - Throws: `ENOENT` where there is no such file, `EACCES` where there are only such that can't be executed.
  package init(_ name: [UInt8], in search: String?) throws(Errno) {
    guard !name.isEmpty else { throw .ENOENT }
    guard !name.contains(UInt8(ascii: "/")) else {
      self = try Self.executable(name)
      return
    }
    var failure = Errno.ENOENT
    let folders = (search ?? "/bin:/usr/bin").utf8.split(separator: 0x3A, omittingEmptySubsequences: false)
    for folder in folders {
      // An empty folder is the current one.
      let path = folder.isEmpty ? Array("./".utf8) + name : Array(folder) + [UInt8(ascii: "/")] + name
      do throws(Errno) {
        self = try Self.executable(path)
        return
      } catch {
        if error == .EACCES { failure = error }
      }
    }
    throw failure
  }

  private init(path: [UInt8], file: FileID) { (self.path, self.file) = (path, file) }

  private static func executable(_ path: [UInt8]) throws(Errno) -> FoundProgram {
    let name = path.map { CChar(bitPattern: $0) } + [0]
    var raw = stat()
    try Errno.retrying { unsafe stat(name, &raw) }
    guard raw.st_mode & S_IFMT == S_IFREG else { throw .EACCES }
    try Errno.retrying { unsafe faccessat(AT_FDCWD, name, X_OK, AT_EACCESS) }
    return FoundProgram(
      path: path, file: FileID(device: UInt64(raw.st_dev), inode: UInt64(raw.st_ino)))
  }

  /// The path from the root on, for people; a byte that is not UTF-8 is shown as U+FFFD.
  package var absolutePath: String {
    Files.pathFromRoot(String(decoding: path, as: UTF8.self))
  }
}
