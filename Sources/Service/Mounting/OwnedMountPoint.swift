import Model
import Platform

/// The folder that root mounts on for another user, by its descriptor: what was checked is what is mounted on.
///
/// The user may rename and replace what leads to it at any time. So it is opened as the user, and no symbolic link is
/// followed; afterwards only the descriptor is used.
package final class OwnedMountPoint {
  package let path: String
  private let descriptor: Descriptor

  /// - Throws: `Failure` with what to do.
  package init(_ path: String, for owner: MountOwner, _ options: MountOptions) throws {
    try MountPoint.clearDead(path, owner)
    let status: FileStatus
    do throws(Errno) {
      descriptor = try Descriptor(path: path, asUser: owner.user, group: owner.group)
      status = try descriptor.status
    } catch {
      throw Self.failure(path, error)
    }
    self.path = MountPoint.absolute(Self.link(to: descriptor.number))
    guard !options.takesUsersFolderOnly || status.owner == owner.user || status.owner != 0 else {
      throw Failure(
        path,
        "it belongs to root, and is not the path that was typed, so that a symbolic link may lead there; name the folder itself"
      )
    }
    try MountPoint.checkFree(self.path)
    try MountPoint.check(status, path, contents: Self.link(to: descriptor.number), users: [0, owner.user])
  }

  /// A path that leads to the folder, whatever its name is now.
  var link: String { Self.link(to: descriptor.number) }

  private static func link(to descriptor: Int32) -> String { "/proc/self/fd/\(descriptor)" }

  private static func failure(_ path: String, _ error: Errno) -> Failure {
    switch error {
    case .ENOENT: Failure(path, "there is no such folder; make it with `mkdir -p`", .notFound)
    case .ELOOP:
      Failure(path, "a part of it is a symbolic link; name the folder itself (`realpath` prints it)")
    case .EACCES: Failure(path, "the user can't reach it")
    default: Failure(path, "it can't be used: \(error)")
    }
  }
}
