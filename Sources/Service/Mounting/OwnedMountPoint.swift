import CSystem
import Glibc
import Model
import Platform

/// The folder that root mounts on for another user, by its descriptor: what was checked is what is mounted on.
///
/// The user may rename and replace what leads to it at any time. So it is opened as the user, and no symbolic link is
/// followed; afterwards only the descriptor is used.
package final class OwnedMountPoint {
  package let path: String
  private let descriptor: Int32

  /// - Throws: `Failure` with what to do.
  package init(_ path: String, for owner: MountOwner, _ options: MountOptions) throws {
    try MountPoint.clearDead(path, owner)
    let descriptor = unsafe linux_open_path_as(owner.user, owner.group, path)
    guard descriptor >= 0 else { throw Self.failure(path, errno) }
    self.descriptor = descriptor
    self.path = MountPoint.absolute(Self.link(to: descriptor))
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw Self.failure(path, errno) }
    guard !options.takesUsersFolderOnly || status.st_uid == owner.user || status.st_uid != 0 else {
      throw Failure(
        path,
        "it belongs to root, and is not the path that was typed, so that a symbolic link may lead there; name the folder itself"
      )
    }
    try MountPoint.checkFree(self.path)
    try MountPoint.check(status, path, contents: Self.link(to: descriptor), users: [0, owner.user])
  }

  deinit { close(descriptor) }

  /// A path that leads to the folder, whatever its name is now.
  var link: String { Self.link(to: descriptor) }

  private static func link(to descriptor: Int32) -> String { "/proc/self/fd/\(descriptor)" }

  private static func failure(_ path: String, _ error: Int32) -> Failure {
    switch error {
    case ENOENT: Failure(path, "there is no such folder; make it with `mkdir`")
    case ELOOP:
      Failure(path, "a part of it is a symbolic link; name the folder itself (`realpath` prints it)")
    case EACCES: Failure(path, "the user can't reach it")
    default: Failure(path, "it can't be used: \(systemMessage(error))")
    }
  }
}
