import Control
import KeychainSelection
import Model
import Store
import Suites

extension StoragePaths {
  /// The settings of the running mount, where only its process reaches them; nil: they are those of this machine.
  var mountedSuites: (any SuiteEngine)? {
    let runtime = runtime
    guard let mount = MountRegistration.serving(in: runtime).last(where: { !$0.isService }),
      mount.hasRemoteSettings
    else { return nil }
    return MountedSuites(propertyLists: PropertyLists(), runtimeFolder: runtime) {
      MountRegistration.newest(in: runtime)?.process
    }
  }

  /// - Throws: `Failure` with the path of a mount that uses the stores, also one that was made with another runtime folder;
  ///   `rest` says what to do then.
  package func requireUnmounted(_ rest: String) throws {
    let paths = MountRegistration.all(in: runtime).filter(\.isAlive).map(\.path)
    if let path = paths.first { throw Failure(path, "it is mounted; `keyhole unmount` first\(rest)") }
    guard let path = MountLock.mountPoints(state: state).first else { return }
    // Of one that is about to be mounted, the path may not be written yet.
    throw Failure(
      path.isEmpty ? state : path,
      "these stores are mounted, from an environment with another XDG_RUNTIME_DIR; "
        + "`keyhole unmount \(path.quotedForShell)` first\(rest)")
  }
}
