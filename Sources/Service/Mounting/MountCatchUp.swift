import Control
import KeychainSelection
import Model
import Platform
import Store

/// Has the mounts show what a command has changed before the command ends: the next command of a script sees it there.
package enum MountCatchUp {
  /// So long a command waits for mounts that are busy, in seconds.
  private static let patience = 2

  /// Returns at once where this process has changed nothing, or there is no mount.
  package static func run() {
    let changes = LocalChanges.ofProcess
    guard !changes.isEmpty, let folders = UserFolders.current() else { return }
    let mounts = MountRegistration.all(in: folders.runtime).filter { $0.isAlive && !$0.isStopped }
    guard !mounts.isEmpty else { return }
    let request = ControlMessage.catchUp(suites: Array(changes.suites))
    _ = Background.result(within: .seconds(patience)) {
      for mount in mounts {
        // A mount of an earlier version does not know the request; it finds the changes by itself.
        _ = try? ControlClient.ask(mount.process, in: mount.folder, request, patience: patience)
      }
    }
  }
}
