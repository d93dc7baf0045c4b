import Control
import KeychainSelection
import Model
import Platform
import Store

/// Faults that keep mounts from being made, used or ended, as `keyhole doctor` reports them.
package enum SystemChecks {
  /// fusermount3 mounts for users who may not: it has to be root's, and set-user-id.
  static var fusermount: [Problem] {
    guard User.real != 0 else { return [] }
    // libfuse looks there first, whatever PATH says.
    guard let path = find("fusermount3", besides: ["/usr/bin", "/bin"]) else {
      return [
        Problem(
          subject: "fusermount3", reason: "it is not installed, so only root can mount",
          remedy: "`sudo apt-get install fuse3`")
      ]
    }
    guard let status = try? Files.status(path), status.owner != 0 || status.permissions & 0o4000 == 0 else {
      return []
    }
    return [
      Problem(
        subject: path, reason: "it is not set-user-id root, so only root can mount",
        remedy: "`sudo chown root \(path) && sudo chmod u+s \(path)`")
    ]
  }

  /// The Secret Service that a mount shows, or that `auto` keeps, does not answer: every command of the keychain fails then.
  static func keychain(_ places: StoragePaths) -> [Problem] {
    let mounted = KeychainConfiguration.present(runtime: places.runtime).choice
    guard shownKeychain(places) == .secretService, let reason = KeychainConfiguration.whyNoSecretService()
    else { return [] }
    return [unreachableService(reason, isMounted: mounted == .secretService)]
  }

  /// The report about a Secret Service that is to be shown. `isMounted`: a mount shows it already.
  static func unreachableService(_ reason: String, isMounted: Bool) -> Problem {
    guard !isMounted else {
      return Problem(
        subject: "Secret Service", reason: "the mount shows it, and it can't be used from here: \(reason)",
        remedy:
          "log in to the desktop, or start the service again; where the mount was made on another session bus, "
          + "DBUS_SESSION_BUS_ADDRESS has to name that; until then `keyhole unmount`, then "
          + "`keyhole mount -o keychain=vault` shows the vault in its place")
    }
    return Problem(
      subject: "Secret Service",
      reason: "`keychain=auto` has chosen it first, and it can't be used: \(reason)",
      remedy:
        "log in to the desktop, or start the service again; until then `keyhole mount -o keychain=vault` "
        + "shows the vault in its place, and with `keyhole mount --keep -o keychain=vault` `auto` keeps to it from now on"
    )
  }

  /// The keychain that commands use: that of a mount, else the one that `auto` has chosen; nil: `auto` has not chosen yet.
  static func shownKeychain(_ places: StoragePaths) -> KeychainChoice? {
    let choice = KeychainConfiguration.present(runtime: places.runtime).choice
    return choice == .automatic ? ChosenKeychain.fetch(state: places.state) : choice
  }

  /// Where a program is; nil: it is in no folder of PATH, nor in one of `folders`.
  static func find(_ program: String, besides folders: [String] = []) -> String? {
    let path = Environment.value("PATH") ?? "/usr/bin:/bin"
    return (path.split(separator: ":").map(String.init) + folders)
      .map { "\($0)/\(program)" }.first { Files.allows(.execute, $0) }
  }

  /// Mounts that nothing answers for, and processes that were stopped.
  static func mounts(_ places: StoragePaths) -> [Problem] {
    let records = MountRegistration.all(in: places.runtime)
    let stopped = MountRegistration.serving(in: places.runtime).filter(\.isStopped).map { mount in
      let kind = mount.isService ? "service" : "mount"
      return Problem(
        subject: mount.path, reason: "its process is stopped, and whatever uses the \(kind) waits",
        remedy: "`kill -CONT \(mount.process)` has it go on")
    }
    let silent = dead(besides: Set(records.map(\.path))).map { path in
      Problem(
        subject: path, reason: "nothing answers for this mount any more", remedy: remedy(ofDead: path, places)
      )
    }
    return stopped + silent
  }

  /// A mount outside of the home folder may have shown other stores than those of this environment, as one with another
  /// HOME does: to mount there again would show these in their place.
  package static func remedy(ofDead path: String, _ places: StoragePaths) -> String {
    guard path.hasPrefix(places.home + "/") else {
      return "`keyhole unmount \(path.quotedForShell)` takes it away; nothing that was stored is lost"
    }
    return "`keyhole mount \(path.quotedForShell)` mounts it again; nothing that was stored is lost"
  }

  /// This user's mounts whose process has died, or whose connection was aborted. `registered`: those of which there is a
  /// note: its process is known, and one that is stopped would not answer. What an edit has left, the next one takes away.
  package static func dead(besides registered: Set<String> = []) -> [String] {
    MountTable().entries.filter { entry in
      entry.isKeyhole(of: User.real) && !registered.contains(entry.path) && !PrivateFolder.isOne(entry.path)
        && isDead(entry)
    }.map(\.path)
  }

  /// False also for one that does not answer within two seconds. The thread that waits is left alone.
  private static func isDead(_ entry: MountTable.Entry) -> Bool {
    Background.result(within: .seconds(2)) { entry.isDead } == true
  }
}
