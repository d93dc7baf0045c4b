import Control
import KeychainSelection
import Model

extension RunningMount {
  /// The content of `.keyhole/status`, which only the newest mount has; nil: the path is that of another file.
  ///
  /// - Throws: `Failure` where there is no mount; for `.keyhole/events`, which has no end.
  package static func content(at path: TreePath) throws -> String? {
    switch path.components {
    case [".keyhole", "events"]:
      throw Failure(path.string, "it has no end; `keyhole watch` shows the changes, or read it on the mount")
    case [".keyhole", "status"]:
      let mounts = MountRegistration.all(in: try StoragePaths.ofMount().runtime)
      guard let mount = mounts.last(where: { $0.isAlive && !$0.isService }) else {
        throw Failure(
          path.string, "it is a file of a mount, and there is no mount; `keyhole mount` makes one", .notFound)
      }
      return try RunningMount(mount).report
    default: return nil
    }
  }
}
