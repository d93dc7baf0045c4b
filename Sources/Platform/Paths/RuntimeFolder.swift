import Glibc

/// The folder of sockets and of notes about mounts: only its owner may see into it.
///
/// A socket in a folder of another user's is that user's, and what is sent to it (a passphrase) too.
package enum RuntimeFolder {
  /// Makes a folder with those that lead to it, if it is missing. Returns why it must not be used; nil: it may.
  package static func make(_ path: String) -> String? {
    UserFolders.make(path)
    var status = stat()
    guard unsafe lstat(path, &status) == 0 else { return "it can't be made" }
    return problem(path)
  }

  /// Why a folder must not be used; nil: it may, or is not there.
  package static func problem(_ path: String) -> String? {
    var status = stat()
    guard unsafe lstat(path, &status) == 0 else { return nil }
    guard status.st_mode & S_IFMT == S_IFDIR else { return "it is not a folder" }
    guard status.st_uid == geteuid() else { return "it belongs to another user (\(status.st_uid))" }
    guard status.st_mode & 0o077 == 0 else { return "others can use it; `chmod 700 \(path)`" }
    return problem(aroundIt: path)
  }

  /// A user who may write to the folder around it could put another one in its place.
  private static func problem(aroundIt path: String) -> String? {
    let parent = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
    var status = stat()
    guard unsafe stat(parent.isEmpty ? "/" : parent, &status) == 0 else { return nil }
    guard status.st_uid == geteuid() || status.st_uid == 0 else {
      return "the folder around it belongs to another user (\(status.st_uid))"
    }
    // With the sticky bit, as in /tmp, only its owner can rename it.
    guard status.st_mode & (S_IWGRP | S_IWOTH) == 0 || status.st_mode & S_ISVTX != 0 else {
      return "others may write to the folder around it; `chmod go-w \(parent)`"
    }
    return nil
  }
}
