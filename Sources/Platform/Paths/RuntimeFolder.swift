/// The folder of sockets and of notes about mounts: only its owner may see into it.
///
/// A socket in a folder of another user's is that user's, and what is sent to it (a passphrase) too.
package enum RuntimeFolder {
  /// Makes a folder with those that lead to it, if it is missing. Returns why it must not be used; nil: it may.
  package static func make(_ path: String) -> String? {
    UserFolders.make(path)
    return Files.hasName(path) ? problem(path) : "it can't be made"
  }

  /// Why a folder must not be used; nil: it may, or is not there.
  package static func problem(_ path: String) -> String? {
    guard let status = try? Files.status(path, followingLinks: false) else { return nil }
    guard status.isFolder else { return "it is not a folder" }
    guard status.owner == User.effective else { return "it belongs to another user (\(status.owner))" }
    guard !status.isShared else { return "others can use it; `chmod 700 \(path)`" }
    return problem(aroundIt: path)
  }

  /// A user who may write to the folder around it could put another one in its place.
  private static func problem(aroundIt path: String) -> String? {
    let parent = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
    guard let status = try? Files.status(parent.isEmpty ? "/" : parent) else { return nil }
    guard status.owner == User.effective || status.owner == 0 else {
      return "the folder around it belongs to another user (\(status.owner))"
    }
    // With the sticky bit, as in /tmp, only its owner can rename it.
    guard status.permissions & 0o022 == 0 || status.permissions & 0o1000 != 0 else {
      return "others may write to the folder around it; `chmod go-w \(parent)`"
    }
    return nil
  }
}
