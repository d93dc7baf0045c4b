import Control
import KeychainSelection
import Model
import Store
import Suites

extension StoragePaths {
  /// The settings of the mount, where only its process reaches them; nil: they are those of this machine. Of a mount whose process has died
  /// nothing can be read or changed: it is not taken for one that was unmounted.
  var mountedSuites: (any SuiteEngine)? {
    let runtime = runtime
    if let mount = settingsMount {
      let named = MountRegistration.named(mount, in: runtime)
      // One that is gone meanwhile is not taken for one that shows this machine's own.
      if let named, !named.hasRemoteSettings { return nil }
      return MountedSuites(propertyLists: PropertyLists(), runtimeFolder: runtime) {
        named.flatMap { $0.isAlive ? $0.process : nil }
      }
    }
    guard MountRegistration.ofRemoteSettings(in: runtime) != nil else { return nil }
    return MountedSuites(propertyLists: PropertyLists(), runtimeFolder: runtime) {
      MountRegistration.newest(in: runtime)?.process
    }
  }

  /// Only the mount of a cluster's settings is notified of their changes.
  ///
  /// - Throws: `Failure` with another way, where the running mount shows such settings.
  package func requireOwnSettings() throws {
    guard mountedSuites != nil, let mount = MountRegistration.newest(in: runtime) else { return }
    let events = "\(mount.path)/.keyhole/events".quotedForShell
    throw Failure(
      mount.path,
      "its settings are those of \(mount.settings), and its process alone is notified of their changes: `tail -f \(events)` prints them, "
        + "and `keyhole watch keychain` those of secrets")
  }

  /// The settings and secrets of a cluster are in no backup of this machine.
  ///
  /// - Throws: `Failure` where a mount shows settings or a keychain of a cluster.
  package func requireNoCluster() throws {
    let mounts = MountRegistration.serving(in: runtime)
    guard let mount = mounts.first(where: { $0.hasRemoteSettings || $0.keychain.choice == .cluster }) else {
      return
    }
    throw Failure(
      mount.path,
      "it shows a store in a cluster, which is in no backup of this machine: `etcdctl snapshot save` makes one of the cluster, "
        + "and `keyhole export` writes what the mount shows. Nothing was written; --without-cluster backs up this machine's own "
        + "settings and vault")
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
